"""Pod templates: what pods of a pool or platform have beside what their tasks ask for.

Pools name them in `common_pod_template`, platforms in `override_pod_template`; a later one is
merged over an earlier one, and those of the platform over those of the pool.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from bough.control.change_recording import NO_NOTE, Note, audit, revise
from bough.control.config.template_variables import faults
from bough.control.people.access import authorise
from bough.control.site import Site
from bough.errors import Conflict, Invalid, NotFound
from bough.model.access import Action, Actor
from bough.model.change_record import ConfigType
from bough.model.names import plain_name_fault
from bough.model.pool import Json, Pool
from bough.store import pools as pool_store
from bough.store import settings as setting_store

_SETTING = "pod_templates"
_WHERE = "config/pod_template"
#: What a template can have, and what Bough decides itself.
_PARTS = ("metadata", "spec")
_METADATA = ("labels", "annotations")
_OWN = ("nodeName", "restartPolicy", "hostname", "subdomain", "schedulerName")
#: All templates together, as JSON.
_MOST_CHARACTERS = 1 << 20


def read_templates(connection: sa.Connection) -> dict[str, Json]:
    """All templates, by name."""
    return setting_store.get(connection, _SETTING) or {}


def get_templates(site: Site, actor: Actor) -> dict[str, Json]:
    """All templates, if the actor may read them."""
    authorise(actor, Action.CONFIG_READ, _WHERE, site.role_names)
    with site.store.read() as connection:
        return read_templates(connection)


def put_templates(
    site: Site, actor: Actor, changes: Mapping[str, Json], note: Note = NO_NOTE
) -> dict[str, Json]:
    """Add or replace templates by name; `null` removes one that no pool names."""
    authorise(actor, Action.CONFIG_UPDATE, _WHERE, site.role_names)
    for name, template in changes.items():
        _check(name, template)
    with site.store.write() as connection:
        before = read_templates(connection)
        after = with_changes("Pod templates", before, changes)
        _check_named(pool_store.list_pools(connection), set(before) - set(after))
        _check_untested(connection, set(before) - set(after))
        setting_store.put(connection, _SETTING, after)
        # They say where tasks can run.
        setting_store.raise_version(connection)
        revise(connection, site, actor, ConfigType.POD_TEMPLATE, _SETTING, after, note)
        audit(connection, site, actor, "config:Update", _WHERE, before, after)
    return after


def with_changes(
    what: str, before: Mapping[str, Json], changes: Mapping[str, Json]
) -> dict[str, Json]:
    """Templates with some of them added, replaced or, by `null`, removed; bounded together."""
    after = {**before, **changes}
    after = {name: after[name] for name in sorted(after) if after[name] is not None}
    if len(str(after)) > _MOST_CHARACTERS:
        raise Invalid(f"{what}: together they have more than {_MOST_CHARACTERS:,} bytes.")
    return after


def get_template(site: Site, actor: Actor, name: str) -> Json:
    """One template."""
    found = get_templates(site, actor)
    if name not in found:
        raise NotFound(f"Pod template {name[:60]} not found.")
    return found[name]


def delete_template(site: Site, actor: Actor, name: str, note: Note = NO_NOTE) -> None:
    """Remove a template that no pool names."""
    get_template(site, actor, name)
    put_templates(site, actor, {name: None}, note)


def names_for(pool: Pool | None, platform: str | None) -> tuple[str, ...]:
    """The templates of the pods of a pool and platform, the last of them on top."""
    if pool is None:
        return ()
    found = pool.platforms.get(platform or pool.default_platform or "")
    return (*pool.common_pod_template, *(() if found is None else found.override_pod_template))


def _check(name: str, template: Json) -> None:
    fault = plain_name_fault("Pod template", name)
    if fault is not None:
        raise Invalid(fault)
    if template is None:
        return
    where = f"Pod template {name}"
    for path, value, allowed in (
        ("", template, _PARTS),
        (".metadata", _part(template, "metadata"), _METADATA),
        (".spec", _part(template, "spec"), None),
    ):
        if not isinstance(value, Mapping):
            raise Invalid(f"{where}{path}: expected an object, not {str(value)[:40]!r}.")
        for key in value if allowed is not None else ():
            if key not in allowed:
                raise Invalid(f"{where}{path}: there is no field {str(key)[:40]!r} here.")
    for fault in faults(template):
        raise Invalid(f"{where}{fault}")
    for key in _OWN:
        if key in _part(template, "spec"):
            raise Invalid(f"{where}.spec.{key}: is decided by Bough.")


def _part(template: Json, name: str) -> Json:
    found = template.get(name) if isinstance(template, Mapping) else None
    return {} if found is None else found


def _check_untested(connection: sa.Connection, gone: set[str]) -> None:
    for test, fields in setting_store.backend_tests(connection).items():
        for name in sorted(set(fields.common_pod_template) & gone):
            raise Conflict(f"Pod template {name} is used by backend test {test}.")


def _check_named(pools: list[Pool], gone: set[str]) -> None:
    for pool in pools:
        platforms = pool.platforms.values()
        named = {
            *pool.common_pod_template,
            *(t for p in platforms for t in p.override_pod_template),
        }
        for name in sorted(named & gone):
            raise Conflict(f"Pod template {name} is used by pool {pool.name}.")
