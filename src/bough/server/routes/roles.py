"""Custom roles: list, show, put and delete."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from litestar.params import FromPath, JSONBody

from bough.api.common import Json
from bough.api.people import PutRole, PutRoles, RoleAnswer, RolePolicy
from bough.control.change_recording import Note
from bough.control.people import users
from bough.errors import Invalid, NotFound
from bough.model.access import Action, Effect, Role, Statement
from bough.server.route_declaration import Visit, caller, route
from bough.server.values import read_note


@route("GET", "/api/configs/role", Action.ROLE_READ)
def list_roles(request: Visit) -> list[RoleAnswer]:
    """The custom roles; the roles of pools and `osmo-admin` are built in."""
    site, actor = caller(request)
    return [_role(role) for role in users.list_roles(site, actor)]


@route("GET", "/api/configs/role/{role:str}", Action.ROLE_READ)
def get_role(request: Visit, role: FromPath[str]) -> RoleAnswer:
    """One custom role."""
    site, actor = caller(request)
    for each in users.list_roles(site, actor):
        if each.name == role:
            return _role(each)
    raise NotFound(f"Role {role} not found.")


@route("PUT", "/api/configs/role", Action.ROLE_UPDATE)
def put_roles(request: Visit, data: JSONBody[PutRoles]) -> list[RoleAnswer]:
    """Create or replace several roles: all of them, or none."""
    site, actor = caller(request)
    written = [_written(str(each.get("name") or ""), each) for each in data.configs]
    return [_role(role) for role in users.put_roles(site, actor, written, read_note(data))]


@route("PUT", "/api/configs/role/{role:str}", Action.ROLE_UPDATE)
def put_role(request: Visit, role: FromPath[str], data: JSONBody[PutRole]) -> RoleAnswer:
    """Create or replace a role."""
    site, actor = caller(request)
    note = Note()
    written = Role(role, data.description, tuple(_statement(role, each) for each in data.policies))
    if data.configs is not None:
        note, written = read_note(data), _written(role, data.configs)
    return _role(users.put_role(site, actor, written, note))


@route("DELETE", "/api/configs/role/{role:str}", Action.ROLE_UPDATE)
def delete_role(request: Visit, role: FromPath[str]) -> None:
    """Delete a role, and revoke it from everyone who has it."""
    site, actor = caller(request)
    users.delete_role(site, actor, role)


#: Converted here: msgspec must not see a type for the first time in two threads at once.
_STATEMENT = msgspec.json.Decoder(Statement).type


def _written(role: str, configs: Mapping[str, Json]) -> Role:
    policies = configs.get("policies")
    if not isinstance(policies, list) or configs.get("name") not in (None, role):
        raise Invalid(f"Role {role}: configs needs policies, and no other name.")
    description = str(configs.get("description") or "")
    return Role(role, description, tuple(_statement(role, each) for each in policies))


def _statement(role: str, policy: Json) -> Statement:
    fields = policy if isinstance(policy, Mapping) else {}
    try:
        return msgspec.convert({"effect": Effect.ALLOW.value, **fields}, _STATEMENT)
    except msgspec.ValidationError as error:
        raise Invalid(f"Role {role}: a policy has effect, actions and resources: {error}") from None


def _role(role: Role) -> RoleAnswer:
    return RoleAnswer(
        name=role.name,
        description=role.description,
        policies=[
            RolePolicy(each.effect, list(each.actions), list(each.resources))
            for each in role.statements
        ],
        immutable=role.immutable,
    )


HANDLERS = (list_roles, get_role, put_roles, put_role, delete_role)
