"""Events say which one was the last when their transaction began, so that followers miss none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Add the column; on PostgreSQL a transaction has its number before it draws an event's."""
    op.add_column("events", sa.Column("begun_after", sa.BigInteger))
    if op.get_bind().dialect.name != "postgresql":
        return
    # A transaction that did not say it is one of which nothing is known.
    op.execute(
        "ALTER TABLE events ALTER COLUMN begun_after SET DEFAULT "
        "coalesce(nullif(current_setting('bough.begun_after', true), '')::bigint, 0)"
    )
    op.execute(
        "ALTER TABLE events ALTER COLUMN number SET DEFAULT "
        "CASE WHEN txid_current() > 0 THEN nextval('events_number_seq') END"
    )
