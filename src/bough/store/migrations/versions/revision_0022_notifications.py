"""Users are notified by e-mail and webhooks; unsent notifications are stored."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

BIG = sa.BigInteger()


def upgrade() -> None:
    """Create the table, and let profiles choose webhooks."""
    op.create_table(
        "notifications",
        sa.Column("number", BIG.with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_ms", BIG, nullable=False),
        sa.Column("due_ms", BIG, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("error", sa.Text),
        sqlite_autoincrement=True,
    )
    op.create_index("notifications_due", "notifications", ["due_ms"])
    op.add_column(
        "profiles",
        sa.Column("webhook_notification", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.add_column(
        "workflow_arrays",
        sa.Column("end_told", sa.Boolean, nullable=False, server_default=sa.false()),
    )
