"""What happened and what is still to be told, settings, and what servers agree on."""

from __future__ import annotations

import sqlalchemy as sa

from bough.store.schema.columns import BIG, JSON, METADATA, NUMBER

CONFIG_HISTORY = sa.Table(
    "config_history",
    METADATA,
    sa.Column("config_type", sa.Text, primary_key=True),
    sa.Column("revision", BIG, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("username", sa.Text, nullable=False),
    sa.Column("created_ms", BIG, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("tags", JSON, nullable=False),
    sa.Column("data", JSON),
    sa.Column("differences", JSON, nullable=False),
    sa.Column("removed_ms", BIG),
    sa.Column("removed_by", sa.Text),
    sa.Index("config_history_name", "config_type", "name", "revision"),
)

AUDIT = sa.Table(
    "audit",
    METADATA,
    sa.Column("number", NUMBER, primary_key=True),
    sa.Column("at_ms", BIG, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("token", sa.Text),
    sa.Column("origin", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("before", JSON),
    sa.Column("after", JSON),
    sa.Index("audit_subject", "subject", "number"),
    sqlite_autoincrement=True,
)

EVENTS = sa.Table(
    "events",
    METADATA,
    sa.Column("number", NUMBER, primary_key=True),
    sa.Column("at_ms", BIG, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("pool", sa.Text),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("data", JSON),
    #: On PostgreSQL the transaction that wrote it: numbers are given before the commit.
    sa.Column("written_in", BIG, nullable=False, server_default="0"),
    #: On PostgreSQL the last number that was drawn when that transaction began (`event_order`).
    sa.Column("begun_after", BIG),
    sa.Index("events_subject", "subject", "number"),
    sqlite_autoincrement=True,
)

OUTBOX = sa.Table(
    "outbox",
    METADATA,
    sa.Column("number", NUMBER, primary_key=True),
    sa.Column("created_ms", BIG, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("backend", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("payload", JSON),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("error", sa.Text),
    sqlite_autoincrement=True,
)

#: What users have not been told yet by e-mail or webhook.
NOTIFICATIONS = sa.Table(
    "notifications",
    METADATA,
    sa.Column("number", NUMBER, primary_key=True),
    sa.Column("user", sa.Text, nullable=False),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("data", JSON, nullable=False),
    sa.Column("created_ms", BIG, nullable=False),
    #: When to try it next.
    sa.Column("due_ms", BIG, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("error", sa.Text),
    sa.Index("notifications_due", "due_ms"),
    sqlite_autoincrement=True,
)

SETTINGS = sa.Table(
    "settings",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", JSON, nullable=False),
)

#: One row: which server decides. See `lease`.
LEADERSHIP = sa.Table(
    "leadership",
    METADATA,
    sa.Column("number", BIG, primary_key=True, autoincrement=False),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("beat", BIG, nullable=False),
)

COUNTERS = sa.Table(
    "counters",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", BIG, nullable=False),
)
