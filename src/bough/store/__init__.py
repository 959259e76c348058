"""What is kept: tables, migrations, named queries; SQLite and PostgreSQL. No rule but constraints.

- database: opening a database; reading and writing in transactions
- write_batches: many writers of one SQLite file with one commit
- change_detection: whether anything has changed, asked for every request
- sqlite_turns: turns of the processes that write one SQLite file
- migration: bringing a database up to date; the steps are in `migrations`
- dump: all rows as a file, and back
- sqlite_reserve: room inside the files of SQLite for when the disk is full
- schema: the tables as they are now, in a folder
- rows: rows into model types
- prepared_statements: statements that are compiled once, for what runs most often
- lease: which of several servers decides
- notices: notices between servers that share a PostgreSQL database
- event_order: following events by their numbers, so that none is passed over
- changed_subjects: what has changed since the last look

Named queries, functions that take a connection and return model types:

- pools: pools, subpools, cohorts, monitors of drains
- nodes: backends and their nodes
- people: users, roles, tokens, profiles
- credentials: credentials of users, encrypted
- workflows: workflows
- apps: workflow files under a name, in versions
- submissions: all rows of a submission, in few statements
- tasks: groups and tasks, in bulk
- wait_causes: why groups wait, once for each cause
- arrays: arrays of workflows, and how far their elements are
- predecessors: which workflows wait for the end of which others
- archive: finished workflows, one row each
- task_search: tasks with their workflows, filtered
- change_records: audit, history, events, the outbox
- notifications: what users have not been told yet
- settings: settings, and the counters of versions

Data enters through `Store.write` and leaves through `Store.read`; both give a connection.

Rows are locked in one order: cohorts, pools, monitors, the counter of rights, people, apps,
settings, counters of revisions, the version, backends, nodes, counters of names, arrays,
workflows, their groups and tasks, predecessors, the archive; rows of one kind by name or uuid.
docs/contributing/database.md has the reasons, and what is done where PostgreSQL still gives a
transaction up.
"""

from __future__ import annotations

from bough.store.database import Store

__all__ = ["Store"]
