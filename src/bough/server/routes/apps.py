"""Apps: workflow files that users keep here, in versions."""

from __future__ import annotations

from typing import Annotated

from litestar import Response
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.response import Stream

from bough.api.apps import (
    AppAnswer,
    AppLine,
    AppList,
    AppVersionLine,
    DeletedVersions,
    NewAppVersion,
)
from bough.control.workflows import apps
from bough.control.workflows.apps import AppView
from bough.errors import Invalid
from bough.model.access import Action
from bough.model.app import AppVersion
from bough.server.route_declaration import (
    MAXIMUM_NUMBER,
    Limit,
    Offset,
    Visit,
    caller,
    json_text,
    route,
    text_route,
)
from bough.server.values import time_text
from bough.store.apps import AppFilter

_APP = "/api/app/user/{app_name:str}"
Version = Annotated[int | None, QueryParameter(ge=1, le=MAXIMUM_NUMBER)]


@route("GET", "/api/app", Action.APP_READ)
def list_apps(
    request: Visit,
    name: FromQuery[str] = "",
    users: FromQuery[list[str] | None] = None,
    all_users: FromQuery[bool] = False,
    order: FromQuery[str] = "ASC",
    limit: Limit = 20,
    offset: Offset = 0,
) -> AppList:
    """A page of apps: by default those that the caller created, changed or submitted.

    The first page has the newest ones, whatever the order in which they are shown.
    """
    site, actor = caller(request)
    mine = not users and not all_users
    wanted = AppFilter(
        name=name,
        owners=tuple(users or ()),
        used_by=actor.name if mine else "",
        newest_first=True,
        limit=limit,
        offset=offset,
    )
    page = apps.list_apps(site, actor, wanted)
    found = [
        AppLine(
            each.uuid,
            each.name,
            each.description,
            time_text(each.created_ms) or "",
            each.owner,
            each.latest_version,
        )
        for each in page.apps
    ]
    return AppList(found if order.upper() == "DESC" else found[::-1], page.more)


@route("GET", _APP, Action.APP_READ)
def get_app(
    request: Visit,
    app_name: FromPath[str],
    version: Version = None,
    order: FromQuery[str] = "ASC",
    limit: Limit = 20,
) -> AppAnswer:
    """An app with its latest versions, or with one version."""
    site, actor = caller(request)
    view = apps.get_app(site, actor, app_name, version=version, limit=limit)
    return _answer(view, newest_first=order.upper() == "DESC")


@text_route(f"{_APP}/spec", Action.APP_READ)
def get_app_spec(request: Visit, app_name: FromPath[str], version: Version = None) -> Stream:
    """The workflow file of a version (default: the latest)."""
    site, actor = caller(request)
    return Stream(iter((apps.get_text(site, actor, app_name, version),)), media_type="text/plain")


@route("POST", _APP, Action.APP_CREATE)
def create_app(
    request: Visit, app_name: FromPath[str], data: JSONBody[str], description: FromQuery[str]
) -> None:
    """Create an app. The body is the workflow file as a JSON string."""
    site, actor = caller(request)
    apps.create_app(site, actor, app_name, description, data)


@route("PATCH", _APP, Action.APP_UPDATE)
def update_app(request: Visit, app_name: FromPath[str], data: JSONBody[str]) -> NewAppVersion:
    """Add a version. The body is the workflow file as a JSON string."""
    site, actor = caller(request)
    return _new_version(app_name, apps.update_app(site, actor, app_name, data))


@route("POST", f"{_APP}/rename", Action.APP_UPDATE, answer=str)
def rename_app(request: Visit, app_name: FromPath[str], data: JSONBody[str]) -> Response[bytes]:
    """Rename an app. The body is the new name as a JSON string."""
    site, actor = caller(request)
    apps.rename_app(site, actor, app_name, data)
    return json_text(data)


@route("DELETE", _APP, Action.APP_DELETE)
def delete_app(
    request: Visit,
    app_name: FromPath[str],
    version: Version = None,
    all_versions: FromQuery[bool] = False,
) -> DeletedVersions:
    """Delete one version of an app, or all of them."""
    site, actor = caller(request)
    if (version is None) is not all_versions:
        raise Invalid("Send either a version or all_versions=true, not both.")
    return DeletedVersions(list(apps.delete_versions(site, actor, app_name, version)))


def _answer(view: AppView, *, newest_first: bool) -> AppAnswer:
    versions = [
        AppVersionLine(
            each.version, each.created_by, time_text(each.created_ms) or "", each.status.value
        )
        for each in view.versions
    ]
    return AppAnswer(
        uuid=view.app.uuid,
        name=view.app.name,
        description=view.app.description,
        created_date=time_text(view.app.created_ms) or "",
        owner=view.app.owner,
        latest_version=view.latest_version,
        versions=versions if newest_first else versions[::-1],
    )


def _new_version(name: str, made: AppVersion) -> NewAppVersion:
    return NewAppVersion(
        made.app_uuid, made.version, name, made.created_by, time_text(made.created_ms) or ""
    )


HANDLERS = (
    list_apps,
    get_app,
    get_app_spec,
    create_app,
    update_app,
    rename_app,
    delete_app,
)
