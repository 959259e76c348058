"""What an earlier pool left behind is not the business of a later one of its name.

Workflows of pools that were deleted say so, and a pool knows the last event of before it got its
name. Of the events of before this step it is not known whose they are; they stay as they are.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the column, and mark the workflows."""
    column = sa.Column("named_after", sa.BigInteger, nullable=False, server_default="0")
    op.add_column("pools", column)
    op.execute(
        "UPDATE workflows SET pool = pool || ' (deleted)' "
        "WHERE pool NOT IN (SELECT name FROM pools)"
    )
