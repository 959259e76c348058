"""The index of ended attempts has all that usage is counted by."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Replace the index."""
    op.drop_index("tasks_ended", "tasks")
    columns = ["ended_ms", "workflow_uuid", "scheduled_ms", "growth", "gpus"]
    op.create_index("tasks_ended", "tasks", columns)
