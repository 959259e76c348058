"""The tables as they are after the last migration. Queries are written against these.

The migrations do not import this folder: they say what was true when they were written. A test
compares the two.

- columns: what all tables share
- cluster: pools, cohorts, backends, nodes
- work: workflows, groups, tasks, arrays, apps, the archive
- people: users, roles, tokens, profiles, credentials
- records: history, audit, events, the outbox, notifications, settings, counters

All tables are imported from here, so that the collection of them is always whole.
"""

from __future__ import annotations

from bough.store.schema.cluster import (
    BACKENDS,
    COHORTS,
    DRAIN_MONITORS,
    NODES,
    POOLS,
)
from bough.store.schema.columns import METADATA
from bough.store.schema.people import (
    CREDENTIALS,
    PROFILES,
    ROLES,
    TOKEN_ROLES,
    TOKENS,
    USER_ROLES,
    USERS,
)
from bough.store.schema.records import (
    AUDIT,
    CONFIG_HISTORY,
    COUNTERS,
    EVENTS,
    LEADERSHIP,
    NOTIFICATIONS,
    OUTBOX,
    SETTINGS,
)
from bough.store.schema.work import (
    APP_VERSIONS,
    APPS,
    ARCHIVE,
    ARCHIVED_STRETCHES,
    ARRAYS,
    GROUPS,
    PREDECESSORS,
    SPECS,
    TASKS,
    WAIT_CAUSES,
    WORKFLOWS,
)

__all__ = [
    "APPS",
    "APP_VERSIONS",
    "ARCHIVE",
    "ARCHIVED_STRETCHES",
    "ARRAYS",
    "AUDIT",
    "BACKENDS",
    "COHORTS",
    "CONFIG_HISTORY",
    "COUNTERS",
    "CREDENTIALS",
    "DRAIN_MONITORS",
    "EVENTS",
    "GROUPS",
    "LEADERSHIP",
    "METADATA",
    "NODES",
    "NOTIFICATIONS",
    "OUTBOX",
    "POOLS",
    "PREDECESSORS",
    "PROFILES",
    "ROLES",
    "SETTINGS",
    "SPECS",
    "TASKS",
    "TOKENS",
    "TOKEN_ROLES",
    "USERS",
    "USER_ROLES",
    "WAIT_CAUSES",
    "WORKFLOWS",
]
