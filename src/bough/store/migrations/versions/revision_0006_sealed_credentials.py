"""Credentials are stored encrypted; what is stored in clear is encrypted at the next start."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the columns; the key is not known here."""
    op.add_column("credentials", sa.Column("sealed", sa.Text))
    op.add_column("credentials", sa.Column("key_names", sa.JSON))
    op.add_column("credentials", sa.Column("opens", sa.Text))
