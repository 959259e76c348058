"""Workflows with their groups and tasks, unfinished and archived, and apps."""

from __future__ import annotations

import sqlalchemy as sa

from bough.store.schema.columns import BIG, JSON, METADATA

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

#: What workflows wait for before they are queued; a row is deleted when the wait ends.
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
