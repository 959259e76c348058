"""Settings, roles, history and audit: how the site is configured, and how it came to be so."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar.params import FromPath, FromQuery, JSONBody

from bough.control import history, people, settings
from bough.control.recording import Note
from bough.errors import Invalid
from bough.model.access import Action, Effect, Role, Statement
from bough.model.record import AuditEntry, ConfigType, Difference, Revision
from bough.server.people_shapes import AuditLine, AuditPage
from bough.server.routes.declare import Limit, Number, Offset, OptionalNumber, Visit, caller, route
from bough.server.shapes import ConfigHistory, ConfigRevision, PatchSettings, RoleBody, Rollback
from bough.server.wire import time_text


@route("GET", "/api/configs/workflow", Action.CONFIG_READ)
def get_settings(request: Visit) -> dict[str, Any]:
    """The workflow configuration, the interval of drain checks among it."""
    site, actor = caller(request)
    return settings.settings_document(settings.get_workflow_settings(site, actor))


@route("PATCH", "/api/configs/workflow", Action.CONFIG_UPDATE)
def patch_settings(request: Visit, data: JSONBody[PatchSettings]) -> dict[str, Any]:
    """Change some of it."""
    site, actor = caller(request)
    note = Note(data.description, tuple(data.tags))
    changed = settings.patch_workflow_settings(site, actor, data.configs_dict, note)
    return settings.settings_document(changed)


@route("GET", "/api/configs/role", Action.ROLE_READ)
def list_roles(request: Visit) -> list[dict[str, Any]]:
    """The roles that administrators wrote; those of pools and `osmo-admin` are always there."""
    site, actor = caller(request)
    return [_role(role) for role in people.list_roles(site, actor)]


@route("PUT", "/api/configs/role/{role:str}", Action.ROLE_UPDATE)
def put_role(request: Visit, role: FromPath[str], data: JSONBody[RoleBody]) -> dict[str, Any]:
    """Write a role, or write it anew."""
    site, actor = caller(request)
    statements = tuple(_statement(role, each) for each in data.policies)
    return _role(people.put_role(site, actor, Role(role, data.description, statements)))


@route("DELETE", "/api/configs/role/{role:str}", Action.ROLE_UPDATE)
def delete_role(request: Visit, role: FromPath[str]) -> None:
    """Remove a role, and take it from all who have it."""
    site, actor = caller(request)
    people.delete_role(site, actor, role)


@route("GET", "/api/configs/history", Action.CONFIG_READ)
def config_history(
    request: Visit,
    config_types: FromQuery[list[str] | None] = None,
    name: FromQuery[str | None] = None,
    revision: OptionalNumber = None,
    omit_data: FromQuery[bool] = False,
    order: FromQuery[str] = "DESC",
    limit: Limit = 20,
    offset: Offset = 0,
) -> ConfigHistory:
    """How configuration was changed."""
    site, actor = caller(request)
    types = tuple(_config_type(each) for each in config_types or ())
    if revision is not None:
        found = history.find_revisions(site, actor, revision, types=types, name=name)
    else:
        found = history.list_revisions(
            site,
            actor,
            types=types,
            name=name,
            newest_first=order.upper() != "ASC",
            limit=limit,
            offset=offset,
        )
    return ConfigHistory([revision_body(each, omit_data=omit_data) for each in found])


@route("GET", "/api/configs/diff", Action.CONFIG_READ)
def config_diff(
    request: Visit, config_type: FromQuery[str], first: Number, second: Number
) -> list[Difference]:
    """What is different between two revisions of a kind."""
    site, actor = caller(request)
    return history.diff(site, actor, _config_type(config_type), first, second)


@route("POST", "/api/configs/history/rollback", Action.CONFIG_UPDATE)
def rollback(request: Visit, data: JSONBody[Rollback]) -> None:
    """Configure the pools as they were; subpools are no configuration, and stay as they are."""
    site, actor = caller(request)
    if _config_type(data.config_type) is not ConfigType.POOL:
        raise Invalid(f"Only POOL can be rolled back, not {data.config_type[:40]}.")
    history.rollback_pools(site, actor, data.revision)


@route("GET", "/api/audit", Action.AUDIT_READ)
def list_audit(
    request: Visit,
    subject: FromQuery[str | None] = None,
    user: FromQuery[str | None] = None,
    before: OptionalNumber = None,
    limit: Limit = 100,
) -> AuditPage:
    """Who changed what, the latest first; `before` is the number of the last one that is known."""
    site, actor = caller(request)
    found = history.list_audit(site, actor, subject=subject, who=user, before=before, limit=limit)
    return AuditPage([_audit_line(each) for each in found])


#: Learnt here: a type must not be learnt by two threads at the same time.
_STATEMENT = msgspec.json.Decoder(Statement).type


def revision_body(revision: Revision, *, omit_data: bool = False) -> ConfigRevision:
    """A change as it is sent."""
    return ConfigRevision(
        config_type=revision.config_type.value,
        revision=revision.revision,
        name=revision.name,
        username=revision.username,
        created_at=time_text(revision.created_ms) or "",
        description=revision.description,
        tags=list(revision.tags),
        data=None if omit_data else revision.data,
        differences=[msgspec.to_builtins(each) for each in revision.differences],
    )


def _audit_line(entry: AuditEntry) -> AuditLine:
    return AuditLine(
        number=entry.number,
        at=time_text(entry.at_ms),
        actor=entry.actor,
        action=entry.action,
        subject=entry.subject,
        origin=entry.origin,
        token=entry.token,
        before=entry.before,
        after=entry.after,
    )


def _config_type(text: str) -> ConfigType:
    try:
        return ConfigType(text.upper())
    except ValueError:
        known = ", ".join(ConfigType)
        raise Invalid(f"There is no configuration {text[:40]!r}; there is {known}.") from None


def _statement(role: str, policy: Any) -> Statement:
    try:
        return msgspec.convert({"effect": Effect.ALLOW.value, **policy}, _STATEMENT)
    except (msgspec.ValidationError, TypeError) as error:
        raise Invalid(f"Role {role}: a policy has effect, actions and resources: {error}") from None


def _role(role: Role) -> dict[str, Any]:
    return {
        "name": role.name,
        "description": role.description,
        "policies": [msgspec.to_builtins(each) for each in role.statements],
        "immutable": role.immutable,
    }


HANDLERS = (
    get_settings,
    patch_settings,
    list_roles,
    put_role,
    delete_role,
    config_history,
    config_diff,
    rollback,
    list_audit,
)
