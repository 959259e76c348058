"""What is kept: tables, migrations, named queries; SQLite and PostgreSQL. No rule but constraints.

database     opening, reading and writing in transactions
migration    bringing a database up to date
schema       the tables as they are now
pools, cohorts, nodes, people, workflows, tasks, records, settings
             named queries: functions that take a connection and return model types
lease        who of several servers decides
"""

from __future__ import annotations

from bough.store.database import Store

__all__ = ["Store"]
