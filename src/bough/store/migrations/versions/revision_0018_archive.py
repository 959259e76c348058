"""Finished workflows can be moved to an archive, with the GPU time of their attempts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

BIG = sa.BigInteger()


def upgrade() -> None:
    """Make the tables of the archive, and an index by which those are found that go there."""
    op.create_table(
        "archived_workflows",
        sa.Column("uuid", sa.Text, primary_key=True),
        sa.Column("workflow_id", sa.Text, nullable=False, unique=True),
        sa.Column("pool", sa.Text, nullable=False),
        sa.Column("submitted_by", sa.Text, nullable=False),
        sa.Column("priority", sa.Text, nullable=False),
        sa.Column("submitted_ms", BIG, nullable=False),
        sa.Column("ended_ms", BIG, nullable=False),
        sa.Column("archived_ms", BIG, nullable=False),
        sa.Column("document", sa.Text),
    )
    op.create_index("archived_workflows_ended", "archived_workflows", ["ended_ms", "uuid"])
    op.create_index("archived_workflows_pool", "archived_workflows", ["pool"])
    of_workflow = sa.ForeignKey("archived_workflows.uuid")
    op.create_table(
        "archived_stretches",
        sa.Column("workflow_uuid", sa.Text, of_workflow, primary_key=True),
        sa.Column("scheduled_ms", BIG, primary_key=True, autoincrement=False),
        sa.Column("ended_ms", BIG, primary_key=True, autoincrement=False),
        sa.Column("growth", sa.Boolean, primary_key=True),
        sa.Column("gpus", BIG, nullable=False),
    )
    op.create_index(
        "archived_stretches_ended",
        "archived_stretches",
        ["ended_ms", "workflow_uuid", "scheduled_ms", "growth", "gpus"],
    )
    op.create_index("workflows_ended", "workflows", ["ended_ms", "uuid"])
