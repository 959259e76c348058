"""Backends say why nothing can be started on their nodes, while that is so."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column; what answers has nothing in it."""
    op.add_column("backends", sa.Column("fault", sa.Text))
