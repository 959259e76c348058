"""Users with their roles, tokens, profiles and credentials."""

from __future__ import annotations

import sqlalchemy as sa

from bough.store.schema.columns import BIG, JSON, METADATA

USERS = sa.Table(
    "users",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("created_ms", BIG, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("uuid", sa.Text, nullable=False, server_default=""),
)

#: The roles that administrators wrote; those of pools exist by their names alone.
ROLES = sa.Table(
    "roles",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("statements", JSON, nullable=False),
)

USER_ROLES = sa.Table(
    "user_roles",
    METADATA,
    sa.Column("user", sa.Text, sa.ForeignKey("users.name", ondelete="CASCADE"), primary_key=True),
    sa.Column("role", sa.Text, primary_key=True),
    sa.Column("assigned_by", sa.Text, nullable=False),
    sa.Column("assigned_ms", BIG, nullable=False),
)

TOKENS = sa.Table(
    "tokens",
    METADATA,
    sa.Column("user", sa.Text, sa.ForeignKey("users.name", ondelete="CASCADE"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("expires_ms", BIG, nullable=False),
    sa.Column("created_ms", BIG, nullable=False),
    sa.Column("uuid", sa.Text, nullable=False, server_default=""),
    sa.Index("tokens_uuid", "uuid", unique=True),
)

#: A token loses a role with its user.
TOKEN_ROLES = sa.Table(
    "token_roles",
    METADATA,
    sa.Column("user", sa.Text, primary_key=True),
    sa.Column("token", sa.Text, primary_key=True),
    sa.Column("role", sa.Text, primary_key=True),
    sa.ForeignKeyConstraint(["user", "token"], ["tokens.user", "tokens.name"], ondelete="CASCADE"),
    sa.ForeignKeyConstraint(
        ["user", "role"], ["user_roles.user", "user_roles.role"], ondelete="CASCADE"
    ),
)

PROFILES = sa.Table(
    "profiles",
    METADATA,
    sa.Column("user", sa.Text, primary_key=True),
    sa.Column("pool", sa.Text),
    sa.Column("email_notification", sa.Boolean, nullable=False),
    sa.Column("slack_notification", sa.Boolean, nullable=False),
    sa.Column("webhook_notification", sa.Boolean, nullable=False, server_default=sa.false()),
)

CREDENTIALS = sa.Table(
    "credentials",
    METADATA,
    sa.Column("user", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("type", sa.Text, nullable=False),
    # What an earlier version stored in clear; nothing once it is encrypted.
    sa.Column("payload", JSON, nullable=False),
    sa.Column("created_ms", BIG, nullable=False),
    sa.Column("sealed", sa.Text),
    sa.Column("key_names", JSON),
    sa.Column("opens", sa.Text),
)
