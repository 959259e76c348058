"""Groups for which room is being made remember the nodes, so that moved groups get them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Add the column; groups that were nominated before continue without nodes."""
    op.add_column("task_groups", sa.Column("nominated_places", sa.JSON(none_as_null=True)))
