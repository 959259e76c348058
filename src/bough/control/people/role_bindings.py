"""Roles and policies are bound to pools by identity; people read and write them with names.

A role of a pool is stored as `pool/{uuid}/user` or `…/admin`, and a policy's resource `pool/team`
as `pool/{uuid}/team`, so both follow a pool that is renamed, and say nothing about a new pool of an
old name. A name that is stored as it was written found no pool when roles were bound: an Allow
grants nothing, a Deny stays closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from bough.control.site import Site
from bough.errors import Invalid
from bough.model.access import Effect, Role, RoleNames, Statement
from bough.model.names import DELIMITER
from bough.model.subpool import Subpool
from bough.store import people as people_store
from bough.store import pools as pool_store

POOL = "pool/"
_KINDS = ("user", "admin")
_EVERY = "*"


class _PoolRole(NamedTuple):
    pool: str
    #: One of `_KINDS`.
    kind: str


# Writing


def bind_role(site: Site, connection: sa.Connection, role: str) -> str:
    """How a newly granted role is stored; refuses one of a pool that does not exist."""
    found = _pool_role(site.role_names, role)
    if found is None or people_store.list_roles(connection, (role,)):
        return role
    uuid = _identity(connection, found.pool, f"Role {role}")
    return f"{POOL}{uuid}/{found.kind}"


def pool_roles(uuid: str | None) -> tuple[str, ...]:
    """The roles of a pool as they are stored."""
    return () if uuid is None else tuple(f"{POOL}{uuid}/{kind}" for kind in _KINDS)


def stored_forms(site: Site, connection: sa.Connection, role: str) -> tuple[str, ...]:
    """Every form in which a role of this name may be stored."""
    found = _pool_role(site.role_names, role)
    uuid = None if found is None else pool_store.uuid_of(connection, found.pool)
    return (role,) if found is None or uuid is None else (role, f"{POOL}{uuid}/{found.kind}")


def is_pool_role(names: RoleNames, role: str) -> bool:
    """Whether a name is that of a role that comes with a pool."""
    return _pool_role(names, role) is not None


def bind_statements(connection: sa.Connection, role: Role) -> Role:
    """A role as it is stored; refuses a policy about a subpool or a pool that does not exist."""
    bound: list[Statement] = []
    for statement in role.statements:
        resources = [_bind_resource(connection, role, each) for each in statement.resources]
        bound.append(msgspec.structs.replace(statement, resources=tuple(resources)))
    return msgspec.structs.replace(role, statements=tuple(bound))


def _bind_resource(connection: sa.Connection, role: Role, resource: str) -> str:
    name = resource.removeprefix(POOL)
    if name in (resource, _EVERY):
        return resource
    return f"{POOL}{_identity(connection, name, f'Role {role.name}: {resource}')}/{name}"


def _identity(connection: sa.Connection, name: str, where: str) -> str:
    found = pool_store.find(connection, name)
    if isinstance(found, Subpool):
        raise Invalid(
            f"{where}: {name} is a subpool, and there are no roles of subpools; what a role may "
            f"do with pool {found.parent} it may do with all its subpools."
        )
    uuid = pool_store.uuid_of(connection, name)
    if uuid is None:
        raise Invalid(f"{where}: there is no pool {name[:60]}; create it first.")
    return uuid


# Reading


class PresentNames:
    """Stored roles and policies in the names that the pools have now."""

    def __init__(self, names: RoleNames, pools: Mapping[str, str]) -> None:
        self._names = names
        #: By identity.
        self._pools = pools

    @classmethod
    def of(
        cls,
        site: Site,
        connection: sa.Connection,
        roles: Iterable[str],
        written: Iterable[Role] = (),
    ) -> PresentNames:
        """Read the names that these roles and policies need, as they are now."""
        resources = [
            each for role in written for item in role.statements for each in item.resources
        ]
        uuids = sorted({each[0] for each in map(_parts, (*roles, *resources)) if each is not None})
        return cls(site.role_names, pool_store.names_of(connection, uuids) if uuids else {})

    def shown(self, stored: str) -> str:
        """A stored role by the name that people know it by."""
        parts = _parts(stored)
        if parts is None:
            return stored
        return self._role(self._pools.get(parts[0], parts[0]), parts[1])

    def effective(self, stored: Sequence[str]) -> set[str]:
        """The roles that count, by name: what is bound to no pool grants nothing."""
        found: set[str] = set()
        for each in stored:
            parts = _parts(each)
            if parts is not None:
                name = self._pools.get(parts[0])
                found |= set() if name is None else {self._role(name, parts[1])}
            elif not is_pool_role(self._names, each):
                found.add(each)
        return found

    def shown_role(self, role: Role) -> Role:
        """A custom role as people wrote it, with today's names."""
        shown = [
            msgspec.structs.replace(each, resources=tuple(map(self._resource, each.resources)))
            for each in role.statements
        ]
        return msgspec.structs.replace(role, statements=tuple(shown))

    def effective_role(self, role: Role) -> Role:
        """A custom role with the policies that count."""
        kept: list[Statement] = []
        for each in role.statements:
            closed = each.effect is Effect.DENY
            counting = [
                self._resource(item)
                for item in each.resources
                if self._is_alive(item) or (closed and _parts(item) is None)
            ]
            # Without any resource a policy would be about what belongs to no pool.
            if counting or not each.resources:
                kept.append(msgspec.structs.replace(each, resources=tuple(counting)))
        return msgspec.structs.replace(role, statements=tuple(kept))

    def faults(self, role: Role) -> list[str]:
        """Warnings about the policies of a custom role."""
        found: list[str] = []
        for each in role.statements:
            for resource in each.resources:
                if not self._is_alive(resource):
                    found.append(_policy_fault(role, each, self._resource(resource)))
        return found

    def _resource(self, stored: str) -> str:
        parts = _parts(stored)
        return stored if parts is None else POOL + self._pools.get(*parts)

    def _is_alive(self, stored: str) -> bool:
        parts = _parts(stored)
        if parts is not None:
            return parts[0] in self._pools
        return stored.removeprefix(POOL) in (stored, _EVERY)

    def _role(self, pool: str, kind: str) -> str:
        names = self._names
        return names.pool_admin(pool) if kind == "admin" else names.pool_user(pool)


def stored_role_faults(site: Site) -> list[str]:
    """Warnings about stored roles and policies of pools that do not exist."""
    with site.store.read() as connection:
        written = people_store.list_roles(connection)
        present = PresentNames.of(site, connection, (), written)
        given = people_store.given_roles(connection)
    known = {role.name for role in written}
    found = [fault for role in written for fault in present.faults(role)]
    for role in sorted({each for _, each in given} - known):
        if is_pool_role(site.role_names, role):
            users = ", ".join(sorted(user for user, each in given if each == role))
            found.append(
                f"The role {role} of {users} is of no pool there is, and grants nothing, also not "
                "on a new pool of that name; take it away, or give it again."
            )
    return found


def _policy_fault(role: Role, statement: Statement, resource: str) -> str:
    name = resource.removeprefix(POOL)
    what = "a subpool, and there are no roles of subpools" if DELIMITER in name else "no pool"
    closed = statement.effect is Effect.DENY
    means = "the Deny keeps it closed" if closed else "the Allow grants nothing"
    return f"Role {role.name} has a policy about {resource}, which is {what}: {means}. Rewrite it."


def _parts(stored: str) -> tuple[str, str] | None:
    """The identity of a pool, and what follows it; `None`: bound to no pool."""
    if not stored.startswith(POOL) or stored.count("/") != 2:
        return None
    _, uuid, rest = stored.split("/")
    return uuid, rest


def _pool_role(names: RoleNames, role: str) -> _PoolRole | None:
    """The pool and the kind of a name like `osmo-team-user`."""
    start = f"{names.prefix}-"
    pool, _, kind = role.removeprefix(start).rpartition("-")
    return _PoolRole(pool, kind) if role.startswith(start) and pool and kind in _KINDS else None
