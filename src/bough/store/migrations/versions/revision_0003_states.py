"""Groups know since when they have their status, when that is too long, and what is freed for them.

What is waiting or running gets its limit from now on as if it had come to its status when it last
got anywhere. Errands that tell backends to start something carried whole specs; they are forgotten,
as every server that takes over tells its backends anew what is to run.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_OF_WORKFLOW = "(SELECT {} FROM workflows WHERE workflows.uuid = task_groups.workflow_uuid)"


def upgrade() -> None:
    """Add the columns and fill them for what is not over."""
    op.add_column("task_groups", sa.Column("since_ms", sa.BigInteger))
    op.add_column("task_groups", sa.Column("due_ms", sa.BigInteger))
    op.add_column(
        "task_groups",
        sa.Column("nominated", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.add_column("tasks", sa.Column("released_ms", sa.BigInteger))
    op.create_index("task_groups_due", "task_groups", ["due_ms"])
    op.create_index("tasks_ended", "tasks", ["ended_ms"])
    _since("SCHEDULING", "queued_ms", "queue_timeout_s")
    _since("RUNNING", "started_ms", "exec_timeout_s")
    op.execute("DELETE FROM outbox WHERE kind = 'start'")


def _since(status: str, column: str, limit: str) -> None:
    submitted = _OF_WORKFLOW.format("submitted_ms")
    op.execute(
        f"UPDATE task_groups SET since_ms = COALESCE({column}, {submitted}) "  # noqa: S608
        f"WHERE status = '{status}'"
    )
    op.execute(
        f"UPDATE task_groups SET due_ms = since_ms + 1000 * {_OF_WORKFLOW.format(limit)} "  # noqa: S608
        f"WHERE status = '{status}'"
    )
