"""Apps: workflow files under a name, and which workflows were submitted from them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"

BIG = sa.BigInteger()


def upgrade() -> None:
    """Create the tables of apps, and the columns that link a workflow to its app."""
    op.create_table(
        "apps",
        sa.Column("uuid", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("created_ms", BIG, nullable=False),
    )
    op.create_index("apps_owner", "apps", ["owner"])
    op.create_index("apps_created", "apps", ["created_ms", "uuid"])
    op.create_table(
        "app_versions",
        sa.Column("app_uuid", sa.Text, sa.ForeignKey("apps.uuid"), primary_key=True),
        sa.Column("version", BIG, primary_key=True, autoincrement=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("created_ms", BIG, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("text", sa.Text),
    )
    op.create_index("app_versions_created_by", "app_versions", ["created_by"])
    op.add_column("workflows", sa.Column("app_uuid", sa.Text))
    op.add_column("workflows", sa.Column("app_version", BIG))
    op.create_index(
        "workflows_app",
        "workflows",
        ["app_uuid", "submitted_ms", "number", "uuid"],
        sqlite_where=sa.text("app_uuid IS NOT NULL"),
        postgresql_where=sa.text("app_uuid IS NOT NULL"),
    )
