"""Pools have an identity that, unlike a name, is never given again."""

from __future__ import annotations

from uuid import uuid4

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Give every pool and subpool an identity."""
    op.add_column("pools", sa.Column("uuid", sa.Text, nullable=False, server_default=""))
    pools = sa.table("pools", sa.column("name"), sa.column("uuid"))
    connection = op.get_bind()
    for name in connection.execute(sa.select(pools.c.name)).scalars().all():
        identity = sa.update(pools).where(pools.c.name == name).values(uuid=uuid4().hex)
        connection.execute(identity)
