"""A workflow can wait for the end of others."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Create the table of the workflows that others wait for."""
    op.create_table(
        "workflow_predecessors",
        sa.Column("workflow_uuid", sa.Text, primary_key=True),
        sa.Column("predecessor_uuid", sa.Text, primary_key=True),
        sa.Column("predecessor_id", sa.Text, nullable=False),
        sa.Column("completed", sa.Boolean, nullable=False),
    )
    op.create_index(
        "workflow_predecessors_predecessor", "workflow_predecessors", ["predecessor_uuid"]
    )
