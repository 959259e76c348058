"""Who changed what: the history of configuration, with rollback, and the audit."""

from __future__ import annotations

from collections.abc import Sequence

from litestar.params import FromPath, FromQuery, JSONBody

from bough.api.configs import (
    AuditLine,
    AuditPage,
    ChangeTags,
    ConfigDiff,
    ConfigHistory,
    Rollback,
)
from bough.control.change_recording import Note, differences
from bough.control.records import change_history
from bough.errors import Invalid
from bough.model.access import Action
from bough.model.change_record import AuditEntry, ConfigType, Revision
from bough.server.route_declaration import (
    Limit,
    Number,
    Offset,
    OptionalNumber,
    Visit,
    caller,
    route,
)
from bough.server.values import read_time_ms, time_text
from bough.server.workflow_documents import config_revision, field_difference


@route("GET", "/api/configs/history", Action.CONFIG_READ)
def config_history(
    request: Visit,
    config_types: FromQuery[list[str] | None] = None,
    name: FromQuery[str | None] = None,
    revision: OptionalNumber = None,
    at_timestamp: FromQuery[str | None] = None,
    omit_data: FromQuery[bool] = False,
    order: FromQuery[str] = "DESC",
    limit: Limit = 20,
    offset: Offset = 0,
) -> ConfigHistory:
    """Changes of the configuration; with `at_timestamp`, the last one of each type by then."""
    site, actor = caller(request)
    types = tuple(_config_type(each) for each in config_types or ())
    at_ms = read_time_ms("at_timestamp", at_timestamp)
    found: Sequence[Revision] = ()
    if at_ms is not None:
        found = change_history.revisions_at(site, actor, at_ms, types)
    elif revision is not None:
        found = change_history.find_revisions(site, actor, revision, types=types, name=name)
    else:
        found = change_history.list_revisions(
            site,
            actor,
            types=types,
            name=name,
            newest_first=order.upper() != "ASC",
            limit=limit,
            offset=offset,
        )
    return ConfigHistory([config_revision(each, omit_data=omit_data) for each in found])


@route("GET", "/api/configs/diff", Action.CONFIG_READ)
def config_diff(
    request: Visit, config_type: FromQuery[str], first_revision: Number, second_revision: Number
) -> ConfigDiff:
    """Two revisions of a config type, and how they differ."""
    site, actor = caller(request)
    kind = _config_type(config_type)
    first = change_history.config_at(site, actor, kind, first_revision)
    second = change_history.config_at(site, actor, kind, second_revision)
    found = [field_difference(each) for each in differences(first, second)]
    return ConfigDiff(kind, first_revision, second_revision, first, second, found)


@route("POST", "/api/configs/history/rollback", Action.CONFIG_UPDATE)
def rollback(request: Visit, data: JSONBody[Rollback]) -> None:
    """Roll pools, settings or the policy back to a revision; subpools stay as they are."""
    site, actor = caller(request)
    note = Note(data.description or f"rolled back to revision {data.revision}", tuple(data.tags))
    kind = _config_type(data.config_type)
    if kind is ConfigType.POOL:
        change_history.rollback_pools(site, actor, data.revision, note)
    elif kind is ConfigType.WORKFLOW:
        change_history.rollback_settings(site, actor, data.revision, note)
    elif kind is ConfigType.SERVICE:
        change_history.rollback_service(site, actor, data.revision, note)
    elif kind is ConfigType.POLICY:
        change_history.rollback_policy(site, actor, data.revision, note)
    elif kind in change_history.BY_NAME:
        change_history.rollback_named(site, actor, kind, data.revision, note)
    else:
        known = f"POOL, WORKFLOW, SERVICE, POLICY, {', '.join(change_history.BY_NAME)}"
        raise Invalid(f"Only {known} can be rolled back, not {kind}.")


@route(
    "POST",
    "/api/configs/history/{config_type:str}/revision/{revision:int}/tags",
    Action.CONFIG_UPDATE,
)
def tag_revision(
    request: Visit, config_type: FromPath[str], revision: FromPath[int], data: JSONBody[ChangeTags]
) -> None:
    """Add tags to a change, and remove tags from it."""
    site, actor = caller(request)
    kind = _config_type(config_type)
    add, remove = data.set_tags or (), data.delete_tags or ()
    change_history.tag_revision(site, actor, kind, revision, add, remove)


@route(
    "DELETE",
    "/api/configs/history/{config_type:str}/revision/{revision:int}",
    Action.CONFIG_UPDATE,
)
def remove_revision(request: Visit, config_type: FromPath[str], revision: FromPath[int]) -> None:
    """Delete a change from the history; not the latest of its type, nor one of a subpool."""
    site, actor = caller(request)
    change_history.remove_revision(site, actor, _config_type(config_type), revision)


@route("GET", "/api/audit", Action.AUDIT_READ)
def list_audit(
    request: Visit,
    subject: FromQuery[str | None] = None,
    user: FromQuery[str | None] = None,
    before: OptionalNumber = None,
    limit: Limit = 100,
) -> AuditPage:
    """Who changed what, newest first; with `before`, only entries with a lower number."""
    site, actor = caller(request)
    found = change_history.list_audit(
        site, actor, subject=subject, who=user, before=before, limit=limit
    )
    return AuditPage([_audit_line(each) for each in found])


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


HANDLERS = (
    config_history,
    config_diff,
    rollback,
    tag_revision,
    remove_revision,
    list_audit,
)
