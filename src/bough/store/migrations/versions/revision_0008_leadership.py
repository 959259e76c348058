"""The server that decides holds a lease with a number: one row, for all servers of a database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the table, with the row that servers change."""
    made = op.create_table(
        "leadership",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("beat", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(made, [{"number": 0, "holder": "", "beat": 0}])
