"""Arrays of workflows: a row for each, from which its elements are made."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

BIG = sa.BigInteger()


def upgrade() -> None:
    """Create the table, and the columns that say which element of an array a workflow is."""
    op.create_table(
        "workflow_arrays",
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
        sa.Column("spec", sa.JSON(none_as_null=True), nullable=False),
    )
    op.create_index("workflow_arrays_open", "workflow_arrays", ["is_open"])
    op.create_index("workflow_arrays_submitted", "workflow_arrays", ["submitted_ms", "uuid"])
    op.add_column("workflows", sa.Column("array_id", sa.Text))
    op.add_column("workflows", sa.Column("array_index", BIG))
    op.create_index("workflows_array", "workflows", ["array_id", "status"])
