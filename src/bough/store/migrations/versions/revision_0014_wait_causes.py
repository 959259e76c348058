"""Why groups wait is stored once for all that wait for the same."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Give every group that waits a cause of its own; the next plan puts those together."""
    op.create_table(
        "wait_causes",
        sa.Column("cause", sa.Text, primary_key=True),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
    )
    op.add_column("task_groups", sa.Column("wait_cause", sa.Text))
    op.execute(
        "INSERT INTO wait_causes (cause, reason, message) "
        "SELECT uuid, wait_reason, coalesce(wait_message, '') FROM task_groups "
        "WHERE wait_reason IS NOT NULL"
    )
    op.execute("UPDATE task_groups SET wait_cause = uuid WHERE wait_reason IS NOT NULL")
    op.drop_column("task_groups", "wait_reason")
    op.drop_column("task_groups", "wait_message")
