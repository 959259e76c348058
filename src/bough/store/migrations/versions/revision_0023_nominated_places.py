"""Groups for which room is being made remember where, so that what moves gets there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Add the column; what was nominated before goes on without places."""
    op.add_column("task_groups", sa.Column("nominated_places", sa.JSON(none_as_null=True)))
