"""A node says why its backend lets nothing start there, apart from what administrators say."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the column; no backend has said anything yet."""
    op.add_column("nodes", sa.Column("closed", sa.Text, nullable=False, server_default=""))
