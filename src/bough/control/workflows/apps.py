"""Apps: workflow files that users keep on the server in versions, for everyone to submit.

Every user can read and submit an app; only its owner and administrators change it. A workflow keeps
the link to its app when the app is renamed or its versions are deleted.
"""

from __future__ import annotations

import re

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import audit
from bough.control.people.access import authorise
from bough.control.site import Site
from bough.control.workflows.rendering import CHARACTERS
from bough.control.workflows.specs import read_spec
from bough.errors import Conflict, Forbidden, Invalid, NotFound
from bough.formats.workflow.templates import is_template, read_template
from bough.model.access import Action, Actor
from bough.model.app import App, AppSource, AppStatus, AppVersion, app_name_fault
from bough.model.workflow import Workflow
from bough.store import apps as app_store
from bough.store.apps import AppFilter, ListedApp

LONGEST_DESCRIPTION = 1_000
#: So that one user cannot fill the database.
MOST_APPS = 1_000
MOST_VERSIONS = 1_000
_LONGEST_NUMBER = 15
_WORKFLOW = re.compile(r"^(?:workflow|\"workflow\"|'workflow')[ \t]*:", re.MULTILINE)


class AppView(msgspec.Struct, frozen=True):
    """An app with some of its versions, the newest first."""

    app: App
    versions: tuple[AppVersion, ...]
    #: The latest usable version, whether or not it is among these.
    latest_version: int | None = None


class AppPage(msgspec.Struct, frozen=True):
    """A part of a list."""

    apps: tuple[ListedApp, ...]
    #: Whether there is more after it.
    more: bool


def list_apps(site: Site, actor: Actor, wanted: AppFilter) -> AppPage:
    """A page of the apps that have a usable version."""
    authorise(actor, Action.APP_READ, names=site.role_names)
    one_more = msgspec.structs.replace(wanted, limit=wanted.limit + 1)
    with site.store.read() as connection:
        found = app_store.search(connection, one_more)
    return AppPage(tuple(found[: wanted.limit]), len(found) > wanted.limit)


def get_app(
    site: Site, actor: Actor, name: str, *, version: int | None = None, limit: int = 20
) -> AppView:
    """An app with its latest versions, or one of them."""
    authorise(actor, Action.APP_READ, names=site.role_names)
    with site.store.read() as connection:
        app = _require(connection, name)
        found = app_store.versions(connection, app.uuid, limit, version)
        latest = app_store.latest(connection, app.uuid)
    if version is not None and not found:
        raise NotFound(f"App {name} has no version {version}.")
    return AppView(app, tuple(found), None if latest is None else latest.version)


def get_text(site: Site, actor: Actor, name: str, version: int | None = None) -> str:
    """The workflow file of a version; by default of the latest usable one."""
    authorise(actor, Action.APP_READ, names=site.role_names)
    with site.store.read() as connection:
        app = _require(connection, name)
        number = version
        if number is None:
            latest = app_store.latest(connection, app.uuid)
            if latest is None:
                raise NotFound(f"App {name} has no version any more; all were deleted.")
            number = latest.version
        elif not app_store.versions(connection, app.uuid, 1, number):
            raise NotFound(f"App {name} has no version {number}.")
        text = app_store.text_of(connection, app.uuid, number)
    if text is None:
        raise NotFound(f"Version {number} of app {name} was deleted.")
    return text


def create_app(site: Site, actor: Actor, name: str, description: str, text: str) -> AppVersion:
    """Keep a workflow file under a new name, as version 1."""
    authorise(actor, Action.APP_CREATE, names=site.role_names)
    _check_name(name)
    _check_description(name, description)
    _check_text(name, text)
    with site.store.write() as connection:
        _check_free(connection, name)
        if app_store.count_of_owner(connection, actor.name) >= MOST_APPS:
            raise Conflict(f"{actor.name} has {MOST_APPS} apps already, the most that are allowed.")
        now_ms = site.clock.now_ms()
        app = App(site.ids.uuid(), name, actor.name, description, now_ms)
        app_store.insert(connection, app)
        version = AppVersion(app.uuid, 1, actor.name, now_ms, AppStatus.READY)
        app_store.insert_version(connection, version, text)
        audit(connection, site, actor, Action.APP_CREATE, f"app/{name}", after=app)
    return version


def update_app(site: Site, actor: Actor, name: str, text: str) -> AppVersion:
    """Add a version, which is the latest one from now on."""
    authorise(actor, Action.APP_UPDATE, names=site.role_names)
    _check_text(name, text)
    with site.store.write() as connection:
        app = _require_own(site, connection, actor, name, "changed")
        newest = app_store.versions(connection, app.uuid, 1)
        number = newest[0].version + 1 if newest else 1
        if len(app_store.ready_numbers(connection, app.uuid)) >= MOST_VERSIONS:
            raise Conflict(
                f"App {name} has {MOST_VERSIONS} versions, the most that are allowed; delete some."
            )
        version = AppVersion(app.uuid, number, actor.name, site.clock.now_ms(), AppStatus.READY)
        app_store.insert_version(connection, version, text)
        audit(connection, site, actor, Action.APP_UPDATE, f"app/{name}", after=version)
    return version


def rename_app(site: Site, actor: Actor, name: str, new_name: str) -> None:
    """Rename an app; workflows that were submitted from it show the new name."""
    authorise(actor, Action.APP_UPDATE, names=site.role_names)
    _check_name(new_name)
    with site.store.write() as connection:
        app = _require_own(site, connection, actor, name, "renamed")
        if new_name == name:
            return
        _check_free(connection, new_name)
        app_store.rename(connection, app.uuid, new_name)
        before, after = {"name": name}, {"name": new_name}
        audit(connection, site, actor, Action.APP_UPDATE, f"app/{name}", before, after)


def delete_versions(
    site: Site, actor: Actor, name: str, version: int | None = None
) -> tuple[int, ...]:
    """Delete a version, or all, and return which existed. The app's name stays taken."""
    authorise(actor, Action.APP_DELETE, names=site.role_names)
    with site.store.write() as connection:
        app = _require_own(site, connection, actor, name, "deleted")
        if version is not None and not app_store.versions(connection, app.uuid, 1, version):
            raise NotFound(f"App {name} has no version {version}.")
        ready = app_store.ready_numbers(connection, app.uuid)
        gone = tuple(each for each in ready if version is None or each == version)
        app_store.delete_versions(connection, app.uuid, gone)
        if gone:
            audit(connection, site, actor, Action.APP_DELETE, f"app/{name}", {"versions": gone})
    return gone


def source_of(site: Site, actor: Actor, uuid: str, version: int | None) -> AppSource:
    """The version of an app that a workflow says it was made from."""
    authorise(actor, Action.APP_READ, names=site.role_names)
    with site.store.read() as connection:
        found = app_store.of_uuids(connection, (uuid,))
        if uuid not in found:
            raise Invalid(f"app_uuid: there is no app {uuid[:60]!r}.")
        if version is None:
            latest = app_store.latest(connection, uuid)
            number = 0 if latest is None else latest.version
        else:
            number = version
        if not app_store.versions(connection, uuid, 1, number):
            raise Invalid(f"app_version: app {found[uuid].name} has no version {number}.")
    return AppSource(uuid, number)


def app_of(workflow: Workflow) -> AppSource | None:
    """The version of an app that a workflow was submitted from."""
    if workflow.app_uuid is None or workflow.app_version is None:
        return None
    return AppSource(workflow.app_uuid, workflow.app_version)


def find_filter(site: Site, actor: Actor, app: str) -> AppSource | None:
    """The filter that `NAME` or `NAME:VERSION` means in a list of workflows; version 0: all."""
    name, colon, number = app.partition(":")
    if app_name_fault(name) is not None or (colon and not number.isascii()):
        raise Invalid(f"app: expected NAME or NAME:VERSION, not {app[:60]!r}.")
    if colon and not (number.isdigit() and len(number) <= _LONGEST_NUMBER and int(number)):
        raise Invalid(f"app: a version is a number from 1 on, not {number[:60]!r}.")
    authorise(actor, Action.APP_READ, names=site.role_names)
    with site.store.read() as connection:
        found = app_store.find(connection, name)
    return None if found is None else AppSource(found.uuid, int(number or 0))


def _require(connection: sa.Connection, name: str, *, locked: bool = False) -> App:
    app = app_store.find(connection, name, locked=locked)
    if app is None:
        raise NotFound(f"App {name[:60]} not found.")
    return app


def _require_own(site: Site, connection: sa.Connection, actor: Actor, name: str, done: str) -> App:
    """The app, locked, if the actor owns it or is an administrator."""
    app = _require(connection, name, locked=True)
    if app.owner != actor.name and site.role_names.admin not in actor.roles:
        raise Forbidden(
            f"App {name} belongs to {app.owner}: only they and administrators can have it {done}."
        )
    return app


def _check_name(name: str) -> None:
    fault = app_name_fault(name)
    if fault is not None:
        raise Invalid(fault)


def _check_free(connection: sa.Connection, name: str) -> None:
    if app_store.find(connection, name) is not None:
        raise Conflict(
            f"App {name} already exists.", hint=f"add a version to it: bough app update {name}"
        )


def _check_description(name: str, description: str) -> None:
    if not description.strip() or len(description) > LONGEST_DESCRIPTION:
        raise Invalid(
            f"App {name}: a description has 1 to {LONGEST_DESCRIPTION:,} characters, not "
            f"{len(description):,}."
        )


def _check_text(name: str, text: str) -> None:
    """Check what is visible before variables are set: that it is a workflow, and its length."""
    if not text.strip():
        raise Invalid(f"App {name}: its workflow file is empty.")
    if len(text) > CHARACTERS:
        raise Invalid(f"App {name}: its workflow file has more than {CHARACTERS:,} characters.")
    if "\x00" in text:
        raise Invalid(f"App {name}: its workflow file has a NUL character.")
    if not is_template(text):
        read_spec(text, uploading=True)
        return
    read_template(text, {})
    if not _WORKFLOW.search(text):
        raise Invalid(f"App {name}: its workflow file has no field workflow.")
