"""A node has taints, which keep tasks away that do not tolerate them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add the column; backends tell of taints when they are asked for their nodes again."""
    op.add_column("nodes", sa.Column("taints", sa.JSON, nullable=False, server_default="[]"))
