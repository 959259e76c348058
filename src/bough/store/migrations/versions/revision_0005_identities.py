"""Users and tokens have an identity that, unlike a name, is never given again."""

from __future__ import annotations

from uuid import uuid4

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Give every user and every token an identity."""
    for table in ("users", "tokens"):
        op.add_column(table, sa.Column("uuid", sa.Text, nullable=False, server_default=""))
        _fill(table)
    op.create_index("tokens_uuid", "tokens", ["uuid"], unique=True)


def _fill(table: str) -> None:
    connection = op.get_bind()
    keys = ("name",) if table == "users" else ("user", "name")
    columns = sa.table(table, *(sa.column(key) for key in (*keys, "uuid")))
    rows = connection.execute(sa.select(*(columns.c[key] for key in keys))).all()
    for row in rows:
        matching = [columns.c[key] == value for key, value in zip(keys, row, strict=True)]
        connection.execute(sa.update(columns).where(*matching).values(uuid=uuid4().hex))
