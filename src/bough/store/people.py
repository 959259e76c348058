"""Users, their roles, tokens and profiles. Of a token only the hash is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from bough.model.access import (
    Profile,
    Role,
    RoleAssignment,
    Token,
    User,
)
from bough.store.rows import read_all, read_first
from bough.store.schema import (
    CREDENTIALS,
    PROFILES,
    ROLES,
    TOKEN_ROLES,
    TOKENS,
    USER_ROLES,
    USERS,
)

# What every request asks is written once: making a statement costs more than running it.
_TOKENS = sa.select(
    *(
        TOKENS.c[name]
        for name in ("user", "name", "description", "expires_ms", "created_ms", "uuid")
    )
).order_by(TOKENS.c.user, TOKENS.c.name)
_TOKENS_BY_HASH = _TOKENS.where(TOKENS.c.hash == sa.bindparam("hash"))
_TOKENS_BY_UUID = _TOKENS.where(TOKENS.c.uuid == sa.bindparam("uuid"))
_TOKENS_BY_USER = _TOKENS.where(TOKENS.c.user == sa.bindparam("user"))
_ROLES_OF_TOKEN = (
    sa.select(TOKEN_ROLES.c.role)
    .where(TOKEN_ROLES.c.user == sa.bindparam("user"))
    .where(TOKEN_ROLES.c.token == sa.bindparam("token"))
    .order_by(TOKEN_ROLES.c.role)
)
_ROLES = sa.select(ROLES).order_by(ROLES.c.name)
_ROLES_NAMED = _ROLES.where(ROLES.c.name.in_(sa.bindparam("names", expanding=True)))

# Users and their roles


def find_user(connection: sa.Connection, name: str) -> User | None:
    """The user of a name."""
    return read_first(connection, sa.select(USERS).where(USERS.c.name == name), User)


def list_users(
    connection: sa.Connection, prefix: str = "", roles: Sequence[str] | None = None
) -> list[User]:
    """All users, by name; or those that have one of some roles."""
    query = sa.select(USERS).order_by(USERS.c.name)
    if prefix:
        query = query.where(USERS.c.name.startswith(prefix, autoescape=True))
    if roles is not None:
        having = sa.select(USER_ROLES.c.user).where(USER_ROLES.c.role.in_(tuple(roles)))
        query = query.where(USERS.c.name.in_(having))
    return read_all(connection, query, User)


def insert_user(connection: sa.Connection, user: User) -> None:
    """Add a user."""
    connection.execute(sa.insert(USERS).values(**msgspec.to_builtins(user)))


def delete_user(connection: sa.Connection, name: str) -> None:
    """Remove a user with roles, tokens, profile and credentials."""
    for table in (PROFILES, CREDENTIALS):
        connection.execute(sa.delete(table).where(table.c.user == name))
    connection.execute(sa.delete(USERS).where(USERS.c.name == name))


def assignments(connection: sa.Connection, user: str) -> list[RoleAssignment]:
    """The roles of a user, by name."""
    columns = (USER_ROLES.c.role, USER_ROLES.c.assigned_by, USER_ROLES.c.assigned_ms)
    query = sa.select(*columns).where(USER_ROLES.c.user == user).order_by(USER_ROLES.c.role)
    return [RoleAssignment(*row) for row in connection.execute(query)]


def holders(connection: sa.Connection, roles: Sequence[str]) -> list[tuple[str, RoleAssignment]]:
    """The users that were given one of some roles, by name."""
    columns = (USER_ROLES.c.user, USER_ROLES.c.role, USER_ROLES.c.assigned_by)
    query = sa.select(*columns, USER_ROLES.c.assigned_ms).where(USER_ROLES.c.role.in_(roles))
    rows = connection.execute(query.order_by(USER_ROLES.c.user, USER_ROLES.c.role))
    return [(user, RoleAssignment(*given)) for user, *given in rows]


def assign(connection: sa.Connection, user: str, assignment: RoleAssignment) -> None:
    """Give a user a role."""
    connection.execute(sa.insert(USER_ROLES).values(user=user, **msgspec.to_builtins(assignment)))


def withdraw(connection: sa.Connection, user: str, role: str) -> None:
    """Take a role from a user and from all the user's tokens."""
    connection.execute(
        sa.delete(USER_ROLES).where(USER_ROLES.c.user == user, USER_ROLES.c.role == role)
    )


def given_roles(connection: sa.Connection) -> list[tuple[str, str]]:
    """All assignments of roles, as they are stored."""
    rows = connection.execute(sa.select(USER_ROLES.c.user, USER_ROLES.c.role))
    return [(row.user, row.role) for row in rows]


def forget_roles(connection: sa.Connection, roles: Sequence[str]) -> None:
    """Take roles from all users and tokens."""
    connection.execute(sa.delete(USER_ROLES).where(USER_ROLES.c.role.in_(tuple(roles))))


def users_with(connection: sa.Connection, role: str) -> list[str]:
    """The users who have a role."""
    query = sa.select(USER_ROLES.c.user).where(USER_ROLES.c.role == role)
    return list(connection.execute(query.order_by(USER_ROLES.c.user)).scalars())


# Custom roles


def list_roles(connection: sa.Connection, names: Sequence[str] | None = None) -> list[Role]:
    """The roles that administrators wrote, all or those of some names."""
    if names is None:
        return read_all(connection, _ROLES, Role)
    return read_all(connection, _ROLES_NAMED, Role, {"names": list(names)})


def put_role(connection: sa.Connection, role: Role) -> None:
    """Write a role, new or changed."""
    values = msgspec.to_builtins(role)
    del values["immutable"]
    updated = connection.execute(sa.update(ROLES).where(ROLES.c.name == role.name).values(**values))
    if not updated.rowcount:
        connection.execute(sa.insert(ROLES).values(**values))


def delete_role(connection: sa.Connection, name: str) -> None:
    """Remove a custom role, and take it from all who have it."""
    connection.execute(sa.delete(USER_ROLES).where(USER_ROLES.c.role == name))
    connection.execute(sa.delete(ROLES).where(ROLES.c.name == name))


# Tokens


def insert_token(connection: sa.Connection, token: Token, hashed: str) -> None:
    """Add a token by the hash of its secret."""
    values = msgspec.to_builtins(token)
    del values["roles"]
    connection.execute(sa.insert(TOKENS).values(hash=hashed, **values))
    rows = [{"user": token.user, "token": token.name, "role": role} for role in token.roles]
    if rows:
        connection.execute(sa.insert(TOKEN_ROLES), rows)


def find_token(connection: sa.Connection, hashed: str) -> Token | None:
    """The token whose secret has this hash, expired or not."""
    found = _tokens(connection, _TOKENS_BY_HASH, {"hash": hashed})
    return found[0] if found else None


def find_token_by_uuid(connection: sa.Connection, uuid: str) -> Token | None:
    """The token of an identity, expired or not."""
    found = _tokens(connection, _TOKENS_BY_UUID, {"uuid": uuid})
    return found[0] if found else None


def list_tokens(connection: sa.Connection, user: str) -> list[Token]:
    """The tokens of a user, by name."""
    return _tokens(connection, _TOKENS_BY_USER, {"user": user})


def last_expiry(connection: sa.Connection, role: str) -> int | None:
    """When the last token that has a role expires; `None`: none has it."""
    same = sa.and_(TOKEN_ROLES.c.user == TOKENS.c.user, TOKEN_ROLES.c.token == TOKENS.c.name)
    query = sa.select(sa.func.max(TOKENS.c.expires_ms)).join_from(TOKENS, TOKEN_ROLES, same)
    return connection.execute(query.where(TOKEN_ROLES.c.role == role)).scalar_one()


def delete_token(connection: sa.Connection, user: str, name: str) -> bool:
    """Remove a token, and say whether there was one."""
    query = sa.delete(TOKENS).where(TOKENS.c.user == user, TOKENS.c.name == name)
    return bool(connection.execute(query).rowcount)


def _tokens(
    connection: sa.Connection, query: sa.Select[Any], values: dict[str, str]
) -> list[Token]:
    found = connection.execute(query, values).mappings().all()
    return [Token(**row, roles=_token_roles(connection, row["user"], row["name"])) for row in found]


def _token_roles(connection: sa.Connection, user: str, token: str) -> tuple[str, ...]:
    values = {"user": user, "token": token}
    return tuple(connection.execute(_ROLES_OF_TOKEN, values).scalars())


# Profiles


def find_profile(connection: sa.Connection, user: str) -> Profile:
    """What a user has chosen; the defaults, if nothing."""
    query = sa.select(PROFILES).where(PROFILES.c.user == user)
    return read_first(connection, query, Profile) or Profile(user)


def put_profile(connection: sa.Connection, profile: Profile) -> None:
    """Write what a user has chosen."""
    values = msgspec.to_builtins(profile)
    updated = connection.execute(
        sa.update(PROFILES).where(PROFILES.c.user == profile.user).values(**values)
    )
    if not updated.rowcount:
        connection.execute(sa.insert(PROFILES).values(**values))


def forget_default_pool(connection: sa.Connection, pool: str, instead: str | None = None) -> None:
    """Remove a pool that is gone or renamed from all profiles."""
    chosen = PROFILES.c.pool == pool
    query = sa.select(PROFILES.c.user).where(chosen).order_by(PROFILES.c.user)
    if connection.scalars(query.with_for_update()).all():
        connection.execute(sa.update(PROFILES).where(chosen).values(pool=instead))
