"""Indexes in the order of lists of workflows, so that these cost by what they show."""

from __future__ import annotations

from alembic import op

revision = "0016"
down_revision = "0015"

_ORDER = ("submitted_ms", "number", "uuid")


def upgrade() -> None:
    """Add the columns of the order to the index by time, and indexes for each filter."""
    op.drop_index("workflows_submitted", "workflows")
    op.create_index("workflows_submitted", "workflows", [*_ORDER])
    op.create_index("workflows_user_submitted", "workflows", ["submitted_by", *_ORDER])
    op.create_index("workflows_pool_submitted", "workflows", ["pool", *_ORDER])
    op.create_index("workflows_status_submitted", "workflows", ["status", *_ORDER])
