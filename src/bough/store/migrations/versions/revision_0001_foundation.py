"""The first form of the tables: pools, cohorts, nodes, workflows, people, records.

A pool is a leaf here: its workflows wait in the queue of the pool itself.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

BIG = sa.BigInteger()
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON(none_as_null=True)

#: What is only ever added to, and what may get tags but is never deleted.
APPEND_ONLY = ("audit", "events")
KEPT = ("config_history",)


def upgrade() -> None:
    """Make the tables, those first that others refer to."""
    for make in (
        _pools,
        _cohorts,
        _backends,
        _nodes,
        _settings,
        _counters,
        _workflows,
        _workflow_specs,
        _task_groups,
        _tasks,
        _users,
        _roles,
        _user_roles,
        _tokens,
        _token_roles,
        _profiles,
        _credentials,
        _config_history,
        _audit,
        _events,
        _outbox,
    ):
        make()
    if op.get_bind().dialect.name == "sqlite":
        _guard_sqlite()
    else:
        _guard_postgresql()


def _pools() -> None:
    op.create_table(
        "pools",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("gpu_guarantee", BIG),
        sa.Column("gpu_maximum", BIG),
        sa.Column("gpu_weight", sa.Integer, nullable=False, server_default="1"),
        sa.Column("cohort", sa.Text),
        sa.Column("borrowing_limit", BIG),
        sa.Column("lending_limit", BIG),
        sa.Column("user_gpu_limit", BIG),
        sa.Column("config", JSON),
        sa.Column("created_ms", BIG, nullable=False),
    )


def _cohorts() -> None:
    op.create_table(
        "cohorts",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("parent", sa.Text),
        sa.Column("quota", BIG, nullable=False),
        sa.Column("borrowing_limit", BIG),
        sa.Column("lending_limit", BIG),
        sa.Column("weight", sa.Integer, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
    )


def _backends() -> None:
    op.create_table(
        "backends",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("last_heartbeat_ms", BIG),
    )


def _nodes() -> None:
    op.create_table(
        "nodes",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("backend", sa.Text, nullable=False),
        sa.Column("gpus", BIG, nullable=False),
        sa.Column("cpu_milli", BIG, nullable=False),
        sa.Column("memory_bytes", BIG, nullable=False),
        sa.Column("storage_bytes", BIG, nullable=False),
        sa.Column("task_slots", BIG, nullable=False),
        sa.Column("labels", JSON, nullable=False),
        sa.Column("pools", JSON),
        sa.Column("platform", sa.Text),
        sa.Column("cordoned", sa.Boolean, nullable=False),
    )


def _settings() -> None:
    op.create_table(
        "settings",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", JSON, nullable=False),
    )


def _counters() -> None:
    op.create_table(
        "counters",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", BIG, nullable=False),
    )


def _workflows() -> None:
    op.create_table(
        "workflows",
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
        sa.UniqueConstraint("name", "number", name="workflows_name_number"),
    )
    op.create_index("workflows_pool_status", "workflows", ["pool", "status", "submitted_ms"])
    op.create_index("workflows_submitted", "workflows", ["submitted_ms"])
    op.create_index("workflows_user", "workflows", ["submitted_by", "status"])


def _workflow_specs() -> None:
    op.create_table(
        "workflow_specs",
        sa.Column("workflow_uuid", sa.Text, sa.ForeignKey("workflows.uuid"), primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("template", sa.Text),
    )


def _task_groups() -> None:
    op.create_table(
        "task_groups",
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
        sa.Column("wait_reason", sa.Text),
        sa.Column("wait_message", sa.Text),
        sa.UniqueConstraint("workflow_uuid", "name", name="task_groups_workflow_name"),
    )
    op.create_index("task_groups_status", "task_groups", ["status"])


def _tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("uuid", sa.Text, primary_key=True),
        sa.Column("retry_id", sa.Integer, primary_key=True),
        sa.Column("workflow_uuid", sa.Text, sa.ForeignKey("workflows.uuid"), nullable=False),
        sa.Column("group_uuid", sa.Text, sa.ForeignKey("task_groups.uuid"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("gpus", BIG, nullable=False),
        sa.Column("lead", sa.Boolean, nullable=False),
        sa.Column("node", sa.Text),
        sa.Column("releasing", sa.Text),
        sa.Column("growth", sa.Boolean, nullable=False),
        sa.Column("exit_code", sa.Integer),
        sa.Column("failure_message", sa.Text),
        sa.Column("queued_ms", BIG),
        sa.Column("scheduled_ms", BIG),
        sa.Column("started_ms", BIG),
        sa.Column("ended_ms", BIG),
        sa.UniqueConstraint("workflow_uuid", "name", "retry_id", name="tasks_workflow_name_retry"),
    )
    op.create_index("tasks_status", "tasks", ["status"])
    op.create_index("tasks_group", "tasks", ["group_uuid"])


def _users() -> None:
    op.create_table(
        "users",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("created_ms", BIG, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
    )


def _roles() -> None:
    op.create_table(
        "roles",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("statements", JSON, nullable=False),
    )


def _user_roles() -> None:
    op.create_table(
        "user_roles",
        sa.Column(
            "user", sa.Text, sa.ForeignKey("users.name", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("role", sa.Text, primary_key=True),
        sa.Column("assigned_by", sa.Text, nullable=False),
        sa.Column("assigned_ms", BIG, nullable=False),
    )


def _tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column(
            "user", sa.Text, sa.ForeignKey("users.name", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("hash", sa.Text, nullable=False, unique=True),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("expires_ms", BIG, nullable=False),
        sa.Column("created_ms", BIG, nullable=False),
    )


def _token_roles() -> None:
    op.create_table(
        "token_roles",
        sa.Column("user", sa.Text, primary_key=True),
        sa.Column("token", sa.Text, primary_key=True),
        sa.Column("role", sa.Text, primary_key=True),
        sa.ForeignKeyConstraint(
            ["user", "token"], ["tokens.user", "tokens.name"], ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user", "role"], ["user_roles.user", "user_roles.role"], ondelete="CASCADE"
        ),
    )


def _profiles() -> None:
    op.create_table(
        "profiles",
        sa.Column("user", sa.Text, primary_key=True),
        sa.Column("pool", sa.Text),
        sa.Column("email_notification", sa.Boolean, nullable=False),
        sa.Column("slack_notification", sa.Boolean, nullable=False),
    )


def _credentials() -> None:
    op.create_table(
        "credentials",
        sa.Column("user", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("payload", JSON, nullable=False),
        sa.Column("created_ms", BIG, nullable=False),
    )


def _config_history() -> None:
    op.create_table(
        "config_history",
        sa.Column("config_type", sa.Text, primary_key=True),
        sa.Column("revision", BIG, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("username", sa.Text, nullable=False),
        sa.Column("created_ms", BIG, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("tags", JSON, nullable=False),
        sa.Column("data", JSON),
        sa.Column("differences", JSON, nullable=False),
    )
    op.create_index("config_history_name", "config_history", ["config_type", "name", "revision"])


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("at_ms", BIG, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("token", sa.Text),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("before", JSON),
        sa.Column("after", JSON),
        sqlite_autoincrement=True,
    )
    op.create_index("audit_subject", "audit", ["subject", "number"])


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("at_ms", BIG, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("pool", sa.Text),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("data", JSON),
        sa.Column("written_in", BIG, nullable=False, server_default="0"),
        sqlite_autoincrement=True,
    )
    op.create_index("events_subject", "events", ["subject", "number"])


def _outbox() -> None:
    op.create_table(
        "outbox",
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


def _guard_sqlite() -> None:
    for table in APPEND_ONLY:
        _refuse_sqlite(table, "UPDATE")
    for table in (*APPEND_ONLY, *KEPT):
        _refuse_sqlite(table, "DELETE")


def _refuse_sqlite(table: str, operation: str) -> None:
    op.execute(
        f"CREATE TRIGGER {table}_no_{operation.lower()} BEFORE {operation} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} is never changed by {operation}'); END"
    )


def _guard_postgresql() -> None:
    op.execute(
        "CREATE FUNCTION bough_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION '% is never changed by %', TG_TABLE_NAME, TG_OP "
        "USING ERRCODE = 'integrity_constraint_violation'; END $$"
    )
    for table in APPEND_ONLY:
        _refuse_postgresql(table, "UPDATE OR DELETE", "ROW")
    for table in KEPT:
        _refuse_postgresql(table, "DELETE", "ROW")
    for table in (*APPEND_ONLY, *KEPT):
        _refuse_postgresql(table, "TRUNCATE", "STATEMENT")
    op.execute("ALTER TABLE events ALTER COLUMN written_in SET DEFAULT txid_current()")


def _refuse_postgresql(table: str, operation: str, level: str) -> None:
    op.execute(
        f"CREATE TRIGGER {table}_refuse_{level.lower()} BEFORE {operation} ON {table} "
        f"FOR EACH {level} EXECUTE FUNCTION bough_refuse()"
    )
