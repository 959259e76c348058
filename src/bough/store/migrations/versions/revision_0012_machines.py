"""A backend that belongs to one machine and folder says so, and which server speaks for it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the columns; the first server that has the folder fills them."""
    for name in ("machine", "place", "speaker", "address"):
        op.add_column("backends", sa.Column(name, sa.Text))
