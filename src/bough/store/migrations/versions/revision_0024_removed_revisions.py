"""Revisions of the history can be removed from it: they say when, and by which user."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Add the columns; nothing was removed so far."""
    op.add_column("config_history", sa.Column("removed_ms", sa.BigInteger))
    op.add_column("config_history", sa.Column("removed_by", sa.Text))
