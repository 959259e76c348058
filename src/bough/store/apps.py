"""Rows of apps and their versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import sqlalchemy as sa

from bough.model.app import App, AppStatus, AppVersion
from bough.store.rows import read_all, read_first
from bough.store.schema import APP_VERSIONS, APPS, WORKFLOWS

_READY = APP_VERSIONS.c.status == AppStatus.READY.value
#: A version without its text, which may be large.
_VERSION = tuple(column for column in APP_VERSIONS.c if column.name != "text")


class AppFilter(msgspec.Struct, frozen=True):
    """Which apps to list; empty fields do not filter."""

    #: Text that the name contains.
    name: str = ""
    owners: tuple[str, ...] = ()
    #: Those that this user created or changed, or submitted workflows from.
    used_by: str = ""
    newest_first: bool = False
    limit: int = 20
    offset: int = 0


class ListedApp(msgspec.Struct, frozen=True):
    """An app with at least one usable version."""

    uuid: str
    name: str
    owner: str
    description: str
    created_ms: int
    latest_version: int


def insert(connection: sa.Connection, app: App) -> None:
    """Add an app, which has no versions yet."""
    connection.execute(sa.insert(APPS).values(msgspec.to_builtins(app)))


def insert_version(connection: sa.Connection, version: AppVersion, text: str) -> None:
    """Add a version."""
    values = {**msgspec.to_builtins(version), "text": text}
    connection.execute(sa.insert(APP_VERSIONS).values(values))


def find(connection: sa.Connection, name: str, *, locked: bool = False) -> App | None:
    """Find an app by name; locked with its versions for a change, if asked to."""
    query = sa.select(APPS).where(APPS.c.name == name)
    return read_first(connection, query.with_for_update() if locked else query, App)


def of_uuids(connection: sa.Connection, uuids: Iterable[str]) -> dict[str, App]:
    """Apps by their identity."""
    wanted = sorted(set(uuids))
    if not wanted:
        return {}
    query = sa.select(APPS).where(APPS.c.uuid.in_(wanted))
    return {app.uuid: app for app in read_all(connection, query, App)}


def rename(connection: sa.Connection, uuid: str, name: str) -> None:
    """Rename an app."""
    connection.execute(sa.update(APPS).where(APPS.c.uuid == uuid).values(name=name))


def versions(
    connection: sa.Connection, uuid: str, limit: int, version: int | None = None
) -> list[AppVersion]:
    """The latest versions of an app, newest first, or one of them."""
    query = sa.select(*_VERSION).where(APP_VERSIONS.c.app_uuid == uuid)
    if version is not None:
        query = query.where(APP_VERSIONS.c.version == version)
    query = query.order_by(APP_VERSIONS.c.version.desc()).limit(limit)
    return read_all(connection, query, AppVersion)


def latest(connection: sa.Connection, uuid: str) -> AppVersion | None:
    """The latest usable version."""
    query = sa.select(*_VERSION).where(APP_VERSIONS.c.app_uuid == uuid, _READY)
    return read_first(connection, query.order_by(APP_VERSIONS.c.version.desc()), AppVersion)


def text_of(connection: sa.Connection, uuid: str, version: int) -> str | None:
    """The workflow file of a version; `None`: the version was deleted."""
    query = sa.select(APP_VERSIONS.c.text).where(
        APP_VERSIONS.c.app_uuid == uuid, APP_VERSIONS.c.version == version
    )
    return connection.execute(query).scalar_one_or_none()


def delete_versions(connection: sa.Connection, uuid: str, numbers: Sequence[int]) -> None:
    """Delete the text of some versions."""
    connection.execute(
        sa.update(APP_VERSIONS)
        .where(APP_VERSIONS.c.app_uuid == uuid, APP_VERSIONS.c.version.in_(numbers))
        .values(status=AppStatus.DELETED.value, text=None)
    )


def ready_numbers(connection: sa.Connection, uuid: str) -> list[int]:
    """The usable versions, newest first."""
    query = sa.select(APP_VERSIONS.c.version).where(APP_VERSIONS.c.app_uuid == uuid, _READY)
    return list(connection.scalars(query.order_by(APP_VERSIONS.c.version.desc())))


def count_of_owner(connection: sa.Connection, owner: str) -> int:
    """How many apps a user owns."""
    query = sa.select(sa.func.count()).where(APPS.c.owner == owner)
    return connection.execute(query).scalar_one()


def search(connection: sa.Connection, wanted: AppFilter) -> list[ListedApp]:
    """One page of the apps that match a filter."""
    latest_version = (
        sa.select(APP_VERSIONS.c.app_uuid, sa.func.max(APP_VERSIONS.c.version).label("number"))
        .where(_READY)
        .group_by(APP_VERSIONS.c.app_uuid)
        .subquery()
    )
    query = sa.select(APPS, latest_version.c.number.label("latest_version")).join(
        latest_version, latest_version.c.app_uuid == APPS.c.uuid
    )
    if wanted.name:
        query = query.where(APPS.c.name.contains(wanted.name, autoescape=True))
    if wanted.owners:
        query = query.where(APPS.c.owner.in_(wanted.owners))
    if wanted.used_by:
        query = query.where(_used_by(wanted.used_by))
    order = (APPS.c.created_ms, APPS.c.uuid)
    query = query.order_by(*(each.desc() if wanted.newest_first else each for each in order))
    return read_all(connection, query.limit(wanted.limit).offset(wanted.offset), ListedApp)


def _used_by(user: str) -> sa.ColumnElement[bool]:
    written = sa.select(APP_VERSIONS.c.app_uuid).where(APP_VERSIONS.c.created_by == user)
    submitted = sa.select(WORKFLOWS.c.app_uuid).where(
        WORKFLOWS.c.app_uuid.is_not(None), WORKFLOWS.c.submitted_by == user
    )
    return sa.or_(APPS.c.uuid.in_(written), APPS.c.uuid.in_(submitted))
