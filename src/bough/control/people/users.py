"""Users and roles. Only administrators give and take rights."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import NO_NOTE, Note, audit, revise
from bough.control.people.access import authorise, authorise_granting, change_access
from bough.control.people.administrators import keeping_administrators
from bough.control.people.role_bindings import (
    PresentNames,
    bind_role,
    bind_statements,
    is_pool_role,
    stored_forms,
)
from bough.control.site import Site
from bough.errors import Conflict, Invalid, NotFound
from bough.model.access import Action, Actor, Role, RoleAssignment, Statement, User
from bough.model.change_record import ConfigType
from bough.model.names import plain_name_fault
from bough.store import arrays as array_store
from bough.store import change_records as record_store
from bough.store import people as people_store
from bough.store import workflows as workflow_store

#: The most users to give a role to at a time.
MOST_USERS = 1_000
_USER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._@+-]{0,253})\Z")
_ACTION = re.compile(r"(\*|[a-z]+):(\*|[A-Z][a-zA-Z]*)\Z")
_RESOURCE = re.compile(r"\*\Z|[a-z]+/(\*|[^*/]+)\Z")


class UserView(msgspec.Struct, frozen=True):
    """A user with the roles that were given."""

    user: User
    roles: tuple[RoleAssignment, ...]


class RoleGrant(msgspec.Struct, frozen=True):
    """The result of giving a role to several users."""

    assigned: tuple[str, ...]
    #: Users who had it before.
    had: tuple[str, ...]
    #: Users who do not exist.
    unknown: tuple[str, ...]


def create_user(site: Site, actor: Actor, name: str, roles: Sequence[str] = ()) -> UserView:
    """Add a user."""
    authorise(actor, Action.USER_UPDATE, names=site.role_names)
    if roles:
        authorise_granting(site, actor)
    if not _USER.match(name):
        raise Invalid(
            f"User name {name[:60]!r} is not valid; letters, digits and . _ @ + - are allowed."
        )
    with site.store.write() as connection:
        if people_store.find_user(connection, name) is not None:
            raise Conflict(f"User {name} already exists.")
        _refuse_namesake(connection, name)
        people_store.insert_user(
            connection, User(name, site.clock.now_ms(), actor.name, site.ids.uuid())
        )
        _assign(site, connection, actor, name, roles)
        view = _view(site, connection, name)
        audit(connection, site, actor, "user:Create", f"user/{name}", None, view)
    return view


def _refuse_namesake(connection: sa.Connection, name: str) -> None:
    """What a user who was deleted left running would get the credentials of a new one."""
    last = record_store.list_audit(connection, subject=f"user/{name}", limit=1)
    if not last or last[0].action != "user:Delete":
        return
    left = workflow_store.count_alive_of_user(connection, name)
    left += array_store.count_open(connection, user=name)
    if left:
        raise Conflict(
            f"An earlier user {name} was deleted, and has {left} workflows that are not finished.",
            hint="cancel them or wait for their end, or choose another name",
        )


def change_roles(
    site: Site, actor: Actor, name: str, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> UserView:
    """Give roles to a user and take some away, from the user's tokens too."""
    authorise(actor, Action.USER_UPDATE, names=site.role_names)
    authorise_granting(site, actor)
    with site.store.write() as connection:
        change_access(connection)
        before = _view(site, connection, name)
        with keeping_administrators(site, connection):
            for role in remove:
                for stored in stored_forms(site, connection, role):
                    people_store.withdraw(connection, name, stored)
            _assign(site, connection, actor, name, add)
        view = _view(site, connection, name)
        audit(connection, site, actor, "user:Update", f"user/{name}", before, view)
    return view


def give_role(site: Site, actor: Actor, role: str, names: Sequence[str]) -> RoleGrant:
    """Give a role to several users at once; those that do not exist are named."""
    authorise(actor, Action.USER_UPDATE, names=site.role_names)
    authorise_granting(site, actor)
    if len(names) > MOST_USERS:
        raise Invalid(f"user_ids: {len(names)} users; at most {MOST_USERS} at a time are possible.")
    assigned: list[str] = []
    had: list[str] = []
    unknown: list[str] = []
    with site.store.write() as connection:
        change_access(connection)
        for name in sorted(set(names)):
            if people_store.find_user(connection, name) is None:
                unknown.append(name)
                continue
            before = _view(site, connection, name)
            _assign(site, connection, actor, name, (role,))
            after = _view(site, connection, name)
            if before.roles == after.roles:
                had.append(name)
                continue
            assigned.append(name)
            audit(connection, site, actor, "user:Update", f"user/{name}", before, after)
    return RoleGrant(tuple(assigned), tuple(had), tuple(unknown))


def delete_user(site: Site, actor: Actor, name: str) -> None:
    """Remove a user with roles, tokens and credentials; workflows keep the name.

    Only an administrator can remove a user who has roles.
    """
    authorise(actor, Action.USER_UPDATE, names=site.role_names)
    with site.store.write() as connection:
        change_access(connection)
        before = _view(site, connection, name)
        if before.roles:
            authorise_granting(site, actor)
        with keeping_administrators(site, connection):
            people_store.delete_user(connection, name)
        audit(connection, site, actor, "user:Delete", f"user/{name}", before, None)


def get_user(site: Site, actor: Actor, name: str) -> UserView:
    """One user."""
    authorise(actor, Action.USER_READ, names=site.role_names)
    with site.store.read() as connection:
        return _view(site, connection, name)


def list_users(site: Site, actor: Actor, prefix: str = "", role: str | None = None) -> list[User]:
    """Users by name: all, or those with a prefix or a role."""
    authorise(actor, Action.USER_READ, names=site.role_names)
    with site.store.read() as connection:
        forms = None if role is None else stored_forms(site, connection, role)
        return people_store.list_users(connection, prefix, forms)


def list_holders(site: Site, actor: Actor, role: str) -> dict[str, RoleAssignment]:
    """The users that were given a role, by name."""
    authorise(actor, Action.USER_READ, names=site.role_names)
    with site.store.read() as connection:
        return dict(people_store.holders(connection, stored_forms(site, connection, role)))


# Custom roles


def put_role(site: Site, actor: Actor, role: Role, note: Note = NO_NOTE) -> Role:
    """Write a role, new or changed."""
    return put_roles(site, actor, (role,), note)[0]


def put_roles(
    site: Site, actor: Actor, roles: Sequence[Role], note: Note = NO_NOTE
) -> Sequence[Role]:
    """Write roles, new or changed: all of them, or none."""
    authorise(actor, Action.ROLE_UPDATE, names=site.role_names)
    authorise_granting(site, actor)
    for role in roles:
        _check_role(site, role)
    with site.store.write() as connection:
        change_access(connection)
        for role in sorted(roles, key=lambda each: each.name):
            before = people_store.list_roles(connection, (role.name,))
            if not before and is_pool_role(site.role_names, role.name):
                raise Invalid(f"Role {role.name} has the name of a role of a pool; choose another.")
            people_store.put_role(connection, bind_statements(connection, role))
            data = msgspec.to_builtins(role)
            revise(connection, site, actor, ConfigType.ROLE, role.name, data, note)
            audit(connection, site, actor, "role:Update", f"role/{role.name}", before, role)
    return roles


def _check_role(site: Site, role: Role) -> None:
    fault = plain_name_fault("Role", role.name)
    if fault is not None:
        raise Invalid(fault)
    if role.name in (site.role_names.admin, site.role_names.everybody):
        raise Conflict(f"Role {role.name} comes with the product and cannot be changed.")
    for statement in role.statements:
        _check_statement(role, statement)


def delete_role(site: Site, actor: Actor, name: str, note: Note = NO_NOTE) -> None:
    """Remove a custom role."""
    authorise(actor, Action.ROLE_UPDATE, names=site.role_names)
    authorise_granting(site, actor)
    with site.store.write() as connection:
        change_access(connection)
        before = people_store.list_roles(connection, (name,))
        if not before:
            raise NotFound(f"Role {name} not found.")
        people_store.delete_role(connection, name)
        revise(connection, site, actor, ConfigType.ROLE, name, None, note)
        audit(connection, site, actor, "role:Delete", f"role/{name}", before[0], None)


def list_roles(site: Site, actor: Actor) -> list[Role]:
    """The roles that administrators wrote."""
    authorise(actor, Action.ROLE_READ, names=site.role_names)
    with site.store.read() as connection:
        written = people_store.list_roles(connection)
        present = PresentNames.of(site, connection, (), written)
        return [present.shown_role(each) for each in written]


def _check_statement(role: Role, statement: Statement) -> None:
    for action in statement.actions:
        if not _ACTION.match(action):
            raise Invalid(
                f"Role {role.name}: {action[:60]!r} is not an action like workflow:Create."
            )
    for resource in statement.resources:
        if not _RESOURCE.match(resource):
            raise Invalid(
                f"Role {role.name}: {resource[:60]!r} is not a resource like pool/team, pool/* or "
                "*; a part of a name is not possible."
            )


def _assign(
    site: Site, connection: sa.Connection, actor: Actor, name: str, roles: Sequence[str]
) -> None:
    has = {each.role for each in people_store.assignments(connection, name)}
    for role in dict.fromkeys(roles):
        fault = plain_name_fault("Role", role)
        if fault is not None:
            raise Invalid(fault)
        stored = bind_role(site, connection, role)
        if stored not in has:
            if stored != role:
                # An older role of that name belongs to no existing pool.
                people_store.withdraw(connection, name, role)
            assignment = RoleAssignment(stored, actor.name, site.clock.now_ms())
            people_store.assign(connection, name, assignment)


def _view(site: Site, connection: sa.Connection, name: str) -> UserView:
    user = people_store.find_user(connection, name)
    if user is None:
        raise NotFound(f"User {name} not found.")
    given = people_store.assignments(connection, name)
    present = PresentNames.of(site, connection, [each.role for each in given])
    shown = [msgspec.structs.replace(each, role=present.shown(each.role)) for each in given]
    return UserView(user, tuple(sorted(shown, key=lambda each: each.role)))
