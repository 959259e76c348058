"""The tables as they are after the last migration. Queries are written against these.

The migrations do not import this file: they say what was true when they were written. A test
compares the two.
"""

from __future__ import annotations

from uuid import uuid4

import sqlalchemy as sa

METADATA = sa.MetaData()

#: Milliseconds since 1970, or bytes.
BIG = sa.BigInteger()
#: Counts up by itself; SQLite does that for its own INTEGER only.
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON(none_as_null=True)

POOLS = sa.Table(
    "pools",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    #: Never given again, also where a name is; the pool's data on a machine is kept by it.
    sa.Column("uuid", sa.Text, nullable=False, default=lambda: uuid4().hex, server_default=""),
    #: The last event of before it got its name: earlier ones are of another pool of that name.
    sa.Column("named_after", BIG, nullable=False, server_default="0"),
    sa.Column("gpu_guarantee", BIG),
    sa.Column("gpu_maximum", BIG),
    sa.Column("gpu_weight", sa.Integer, nullable=False, server_default="1"),
    sa.Column("cohort", sa.Text),
    sa.Column("borrowing_limit", BIG),
    sa.Column("lending_limit", BIG),
    sa.Column("user_gpu_limit", BIG),
    #: Everything else that is configured; a subpool has none of its own.
    sa.Column("config", JSON),
    sa.Column("created_ms", BIG, nullable=False),
    sa.Column("parent_pool", sa.Text, sa.ForeignKey("pools.name")),
    sa.Column("subpool_name", sa.Text),
    sa.Column("subpool_state", sa.Text),
    sa.Index("pools_parent_subpool", "parent_pool", "subpool_name", unique=True),
)

#: One for each subpool that is being deleted: when to look at it next.
DRAIN_MONITORS = sa.Table(
    "drain_monitors",
    METADATA,
    sa.Column("pool", sa.Text, sa.ForeignKey("pools.name"), primary_key=True),
    sa.Column("due_ms", BIG, nullable=False),
)

#: Parents may be missing, and may form a cycle: the quota tree says what that means.
COHORTS = sa.Table(
    "cohorts",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("parent", sa.Text),
    sa.Column("quota", BIG, nullable=False),
    sa.Column("borrowing_limit", BIG),
    sa.Column("lending_limit", BIG),
    sa.Column("weight", sa.Integer, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
)

BACKENDS = sa.Table(
    "backends",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("last_heartbeat_ms", BIG),
    #: Why nothing can be started there now.
    sa.Column("fault", sa.Text),
    #: The machine and folder that it belongs to, where that is; and the server that speaks for it.
    sa.Column("machine", sa.Text),
    sa.Column("place", sa.Text),
    sa.Column("speaker", sa.Text),
    sa.Column("address", sa.Text),
)

NODES = sa.Table(
    "nodes",
    METADATA,
    sa.Column("backend", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("gpus", BIG, nullable=False),
    sa.Column("cpu_milli", BIG, nullable=False),
    sa.Column("memory_bytes", BIG, nullable=False),
    sa.Column("storage_bytes", BIG, nullable=False),
    sa.Column("task_slots", BIG, nullable=False),
    sa.Column("labels", JSON, nullable=False),
    sa.Column("pools", JSON),
    sa.Column("platform", sa.Text),
    sa.Column("cordoned", sa.Boolean, nullable=False),
    sa.Column("closed", sa.Text, nullable=False, server_default=""),
    sa.Column("taints", JSON, nullable=False, server_default="[]"),
)

WORKFLOWS = sa.Table(
    "workflows",
    METADATA,
    sa.Column("uuid", sa.Text, primary_key=True),
    sa.Column("workflow_id", sa.Text, nullable=False, unique=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("number", BIG, nullable=False),
    sa.Column("submitted_by", sa.Text, nullable=False),
    sa.Column("cancelled_by", sa.Text),
    sa.Column("pool", sa.Text, nullable=False),
    sa.Column("backend", sa.Text, nullable=False),
    sa.Column("priority", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("submitted_ms", BIG, nullable=False),
    sa.Column("started_ms", BIG),
    sa.Column("ended_ms", BIG),
    sa.Column("exec_timeout_s", BIG),
    sa.Column("queue_timeout_s", BIG),
    sa.Column("failure_message", sa.Text),
    sa.Column("labels", JSON, nullable=False),
    sa.Column("tags", JSON, nullable=False),
    sa.Column("warnings", JSON, nullable=False),
    sa.Column("restarts", sa.Text),
    sa.Column("app_uuid", sa.Text),
    sa.Column("app_version", BIG),
    #: Which element of which array it is.
    sa.Column("array_id", sa.Text),
    sa.Column("array_index", BIG),
    sa.UniqueConstraint("name", "number", name="workflows_name_number"),
    sa.Index("workflows_array", "array_id", "status"),
    sa.Index("workflows_pool_status", "pool", "status", "submitted_ms"),
    #: Lists are read in this order, as far as they are shown, by each of their filters.
    sa.Index("workflows_submitted", "submitted_ms", "number", "uuid"),
    sa.Index("workflows_user_submitted", "submitted_by", "submitted_ms", "number", "uuid"),
    sa.Index("workflows_pool_submitted", "pool", "submitted_ms", "number", "uuid"),
    sa.Index("workflows_status_submitted", "status", "submitted_ms", "number", "uuid"),
    sa.Index("workflows_user", "submitted_by", "status"),
    #: The order in which they are archived and exported.
    sa.Index("workflows_ended", "ended_ms", "uuid"),
    #: Few workflows are of an app, so the others cost nothing here.
    sa.Index(
        "workflows_app",
        "app_uuid",
        "submitted_ms",
        "number",
        "uuid",
        sqlite_where=sa.text("app_uuid IS NOT NULL"),
        postgresql_where=sa.text("app_uuid IS NOT NULL"),
    ),
)

APPS = sa.Table(
    "apps",
    METADATA,
    sa.Column("uuid", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("created_ms", BIG, nullable=False),
    sa.Index("apps_owner", "owner"),
    sa.Index("apps_created", "created_ms", "uuid"),
)

APP_VERSIONS = sa.Table(
    "app_versions",
    METADATA,
    sa.Column("app_uuid", sa.Text, sa.ForeignKey("apps.uuid"), primary_key=True),
    sa.Column("version", BIG, primary_key=True, autoincrement=False),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("created_ms", BIG, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    #: Nothing where it was deleted.
    sa.Column("text", sa.Text),
    sa.Index("app_versions_created_by", "created_by"),
)

#: Apart from the record, as they may be large and are seldom read.
SPECS = sa.Table(
    "workflow_specs",
    METADATA,
    sa.Column("workflow_uuid", sa.Text, sa.ForeignKey("workflows.uuid"), primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("template", sa.Text),
)

GROUPS = sa.Table(
    "task_groups",
    METADATA,
    sa.Column("uuid", sa.Text, primary_key=True),
    sa.Column("workflow_uuid", sa.Text, sa.ForeignKey("workflows.uuid"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("queue", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("spec", JSON, nullable=False),
    sa.Column("gpus", BIG, nullable=False),
    sa.Column("remaining_upstream", JSON, nullable=False),
    sa.Column("failure_message", sa.Text),
    sa.Column("queued_ms", BIG),
    sa.Column("scheduled_ms", BIG),
    sa.Column("started_ms", BIG),
    sa.Column("ended_ms", BIG),
    sa.Column("since_ms", BIG),
    sa.Column("due_ms", BIG),
    sa.Column("nominated", sa.Boolean, nullable=False, server_default=sa.false()),
    #: Where, by task, while it is nominated.
    sa.Column("nominated_places", JSON),
    #: One of `WAIT_CAUSES`, while it waits.
    sa.Column("wait_cause", sa.Text),
    sa.UniqueConstraint("workflow_uuid", "name", name="task_groups_workflow_name"),
    sa.Index("task_groups_status", "status"),
    sa.Index("task_groups_due", "due_ms"),
)

#: Why groups wait: once for all that wait for the same.
WAIT_CAUSES = sa.Table(
    "wait_causes",
    METADATA,
    sa.Column("cause", sa.Text, primary_key=True),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
)

TASKS = sa.Table(
    "tasks",
    METADATA,
    sa.Column("uuid", sa.Text, primary_key=True),
    sa.Column("retry_id", sa.Integer, primary_key=True),
    sa.Column("workflow_uuid", sa.Text, sa.ForeignKey("workflows.uuid"), nullable=False),
    sa.Column("group_uuid", sa.Text, sa.ForeignKey("task_groups.uuid"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("gpus", BIG, nullable=False),
    sa.Column("lead", sa.Boolean, nullable=False),
    sa.Column("node", sa.Text),
    sa.Column("backend", sa.Text),
    sa.Column("releasing", sa.Text),
    sa.Column("growth", sa.Boolean, nullable=False),
    sa.Column("exit_code", sa.Integer),
    sa.Column("failure_message", sa.Text),
    sa.Column("queued_ms", BIG),
    sa.Column("scheduled_ms", BIG),
    sa.Column("started_ms", BIG),
    sa.Column("ended_ms", BIG),
    sa.Column("released_ms", BIG),
    sa.UniqueConstraint("workflow_uuid", "name", "retry_id", name="tasks_workflow_name_retry"),
    sa.Index("tasks_status", "status"),
    sa.Index("tasks_group", "group_uuid"),
    #: All that usage is counted by, so that the rows themselves need not be read.
    sa.Index("tasks_ended", "ended_ms", "workflow_uuid", "scheduled_ms", "growth", "gpus"),
)

#: Arrays, from which workflows are made as there is room for them.
ARRAYS = sa.Table(
    "workflow_arrays",
    METADATA,
    sa.Column("uuid", sa.Text, primary_key=True),
    sa.Column("array_id", sa.Text, nullable=False, unique=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("number", BIG, nullable=False),
    sa.Column("submitted_by", sa.Text, nullable=False),
    sa.Column("pool", sa.Text, nullable=False),
    sa.Column("priority", sa.Text, nullable=False),
    sa.Column("submitted_ms", BIG, nullable=False),
    sa.Column("count", BIG, nullable=False),
    sa.Column("made", BIG, nullable=False),
    sa.Column("at_once", BIG),
    sa.Column("first_number", BIG, nullable=False),
    sa.Column("is_open", sa.Boolean, nullable=False),
    sa.Column("cancelled_by", sa.Text),
    sa.Column("cancel_message", sa.Text, nullable=False),
    sa.Column("spec", JSON, nullable=False),
    #: Whether its user is told, or was, that it has ended.
    sa.Column("end_told", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Index("workflow_arrays_open", "is_open"),
    sa.Index("workflow_arrays_submitted", "submitted_ms", "uuid"),
)

#: What workflows wait for before they are queued; a row goes when that is over.
PREDECESSORS = sa.Table(
    "workflow_predecessors",
    METADATA,
    sa.Column("workflow_uuid", sa.Text, primary_key=True),
    sa.Column("predecessor_uuid", sa.Text, primary_key=True),
    sa.Column("predecessor_id", sa.Text, nullable=False),
    #: Whether it must have completed.
    sa.Column("completed", sa.Boolean, nullable=False),
    sa.Index("workflow_predecessors_predecessor", "predecessor_uuid"),
)

#: Finished workflows that are out of the way: no list and no cycle looks here.
ARCHIVE = sa.Table(
    "archived_workflows",
    METADATA,
    sa.Column("uuid", sa.Text, primary_key=True),
    sa.Column("workflow_id", sa.Text, nullable=False, unique=True),
    sa.Column("pool", sa.Text, nullable=False),
    sa.Column("submitted_by", sa.Text, nullable=False),
    sa.Column("priority", sa.Text, nullable=False),
    sa.Column("submitted_ms", BIG, nullable=False),
    sa.Column("ended_ms", BIG, nullable=False),
    sa.Column("archived_ms", BIG, nullable=False),
    #: All of it, as JSON; nothing where it was exported and dropped.
    sa.Column("document", sa.Text),
    sa.Index("archived_workflows_ended", "ended_ms", "uuid"),
    sa.Index("archived_workflows_pool", "pool"),
)

#: What archived attempts held: all that usage is counted by.
ARCHIVED_STRETCHES = sa.Table(
    "archived_stretches",
    METADATA,
    sa.Column("workflow_uuid", sa.Text, sa.ForeignKey("archived_workflows.uuid"), primary_key=True),
    sa.Column("scheduled_ms", BIG, primary_key=True, autoincrement=False),
    sa.Column("ended_ms", BIG, primary_key=True, autoincrement=False),
    sa.Column("growth", sa.Boolean, primary_key=True),
    sa.Column("gpus", BIG, nullable=False),
    sa.Index(
        "archived_stretches_ended", "ended_ms", "workflow_uuid", "scheduled_ms", "growth", "gpus"
    ),
)

USERS = sa.Table(
    "users",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("created_ms", BIG, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("uuid", sa.Text, nullable=False, server_default=""),
)

#: The roles that administrators wrote; those of pools exist by their names alone.
ROLES = sa.Table(
    "roles",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("statements", JSON, nullable=False),
)

USER_ROLES = sa.Table(
    "user_roles",
    METADATA,
    sa.Column("user", sa.Text, sa.ForeignKey("users.name", ondelete="CASCADE"), primary_key=True),
    sa.Column("role", sa.Text, primary_key=True),
    sa.Column("assigned_by", sa.Text, nullable=False),
    sa.Column("assigned_ms", BIG, nullable=False),
)

TOKENS = sa.Table(
    "tokens",
    METADATA,
    sa.Column("user", sa.Text, sa.ForeignKey("users.name", ondelete="CASCADE"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("expires_ms", BIG, nullable=False),
    sa.Column("created_ms", BIG, nullable=False),
    sa.Column("uuid", sa.Text, nullable=False, server_default=""),
    sa.Index("tokens_uuid", "uuid", unique=True),
)

#: A token loses a role with its user.
TOKEN_ROLES = sa.Table(
    "token_roles",
    METADATA,
    sa.Column("user", sa.Text, primary_key=True),
    sa.Column("token", sa.Text, primary_key=True),
    sa.Column("role", sa.Text, primary_key=True),
    sa.ForeignKeyConstraint(["user", "token"], ["tokens.user", "tokens.name"], ondelete="CASCADE"),
    sa.ForeignKeyConstraint(
        ["user", "role"], ["user_roles.user", "user_roles.role"], ondelete="CASCADE"
    ),
)

PROFILES = sa.Table(
    "profiles",
    METADATA,
    sa.Column("user", sa.Text, primary_key=True),
    sa.Column("pool", sa.Text),
    sa.Column("email_notification", sa.Boolean, nullable=False),
    sa.Column("slack_notification", sa.Boolean, nullable=False),
    sa.Column("webhook_notification", sa.Boolean, nullable=False, server_default=sa.false()),
)

CREDENTIALS = sa.Table(
    "credentials",
    METADATA,
    sa.Column("user", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("type", sa.Text, nullable=False),
    # What an earlier version stored in clear; nothing once it is encrypted.
    sa.Column("payload", JSON, nullable=False),
    sa.Column("created_ms", BIG, nullable=False),
    sa.Column("sealed", sa.Text),
    sa.Column("key_names", JSON),
    sa.Column("opens", sa.Text),
)

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
    #: On PostgreSQL the transaction that wrote it: numbers are given before the commit, so a
    #: reader stops at the oldest transaction that is still open.
    sa.Column("written_in", BIG, nullable=False, server_default="0"),
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

#: What users are to be told by e-mail or webhook, until they were.
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
