"""Roles and policies are bound to the identities of pools, and not to their names.

What a role of today means is kept. What names a pool that does not exist, or a subpool, keeps its
name: it grants nothing, and a start tells of it.
"""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_POOL_ROLE = re.compile(r"osmo-(.+)-(user|admin)\Z")
_POOLS = sa.table("pools", sa.column("name"), sa.column("uuid"), sa.column("parent_pool"))
_ROLES = sa.table("roles", sa.column("name"), sa.column("statements", sa.JSON))
_GIVEN = sa.table(
    "user_roles",
    *(sa.column(name) for name in ("user", "role", "assigned_by", "assigned_ms")),
)
_OF_TOKENS = sa.table("token_roles", *(sa.column(name) for name in ("user", "token", "role")))


def upgrade() -> None:
    """Bind what is stored."""
    connection = op.get_bind()
    top = sa.select(_POOLS.c.name, _POOLS.c.uuid).where(_POOLS.c.parent_pool.is_(None))
    uuids = {row.name: row.uuid for row in connection.execute(top)}
    written = list(connection.execute(sa.select(_ROLES)))
    names = {row.name for row in written}
    for row in list(connection.execute(sa.select(_GIVEN))):
        found = _POOL_ROLE.match(row.role)
        if found is not None and found[1] in uuids:
            _bind(connection, row, f"pool/{uuids[found[1]]}/{found[2]}", kept=row.role in names)
    for row in written:
        bound = [_bound(each, uuids) for each in row.statements]
        if bound != row.statements:
            change = sa.update(_ROLES).where(_ROLES.c.name == row.name)
            connection.execute(change.values(statements=bound))


def _bind(connection: sa.Connection, row: Any, role: str, *, kept: bool) -> None:
    """A new row before the old one goes: those of tokens hang on them."""
    values = {"user": row.user, "assigned_by": row.assigned_by, "assigned_ms": row.assigned_ms}
    connection.execute(sa.insert(_GIVEN).values(role=role, **values))
    same = (_OF_TOKENS.c.user == row.user, _OF_TOKENS.c.role == row.role)
    tokens = connection.execute(sa.select(_OF_TOKENS.c.token).where(*same)).scalars().all()
    for token in tokens:
        connection.execute(sa.insert(_OF_TOKENS).values(user=row.user, token=token, role=role))
    if not kept:
        connection.execute(sa.delete(_OF_TOKENS).where(*same))
        connection.execute(
            sa.delete(_GIVEN).where(_GIVEN.c.user == row.user, _GIVEN.c.role == row.role)
        )


def _bound(statement: dict[str, Any], uuids: dict[str, str]) -> dict[str, Any]:
    resources = [_resource(each, uuids) for each in statement.get("resources", [])]
    return {**statement, "resources": resources}


def _resource(resource: str, uuids: dict[str, str]) -> str:
    name = resource.removeprefix("pool/")
    if name == resource or name not in uuids:
        return resource
    return f"pool/{uuids[name]}/{name}"
