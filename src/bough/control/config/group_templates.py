"""Group templates: objects of Kubernetes that are made for each group before its pods.

Pools name them in `common_group_templates`. Each is a whole manifest without a namespace; its name
holds the identity of the group, so that groups which run at once do not share an object, and none
of others is ever touched. Later templates of the same object are merged over earlier ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import sqlalchemy as sa

from bough.control.change_recording import NO_NOTE, Note, audit, revise
from bough.control.config.pod_templates import with_changes
from bough.control.config.template_variables import UnknownVariable, faults, fill
from bough.control.people.access import authorise
from bough.control.site import Site
from bough.errors import Conflict, Invalid, NotFound
from bough.model.access import Action, Actor
from bough.model.change_record import ConfigType
from bough.model.names import plain_name_fault
from bough.model.pool import Json, Pool
from bough.store import pools as pool_store
from bough.store import settings as setting_store

_SETTING = "group_templates"
_WHERE = "config/group_template"
_METADATA = ("name", "labels", "annotations")
_API_VERSION = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/)?v[0-9][a-z0-9]*")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_IDENTITY = re.compile(r"\{\{\s*WF_GROUP_UUID\s*\}\}")
#: What a name looks like with an identity in it.
_EXAMPLE = {"WF_GROUP_UUID": "0" * 32}
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")


def read_templates(connection: sa.Connection) -> dict[str, Json]:
    """All templates, by name."""
    return setting_store.get(connection, _SETTING) or {}


def get_templates(site: Site, actor: Actor) -> dict[str, Json]:
    """All templates, if the actor may read them."""
    authorise(actor, Action.CONFIG_READ, _WHERE, site.role_names)
    with site.store.read() as connection:
        return read_templates(connection)


def get_template(site: Site, actor: Actor, name: str) -> Json:
    """One template."""
    found = get_templates(site, actor)
    if name not in found:
        raise NotFound(f"Group template {name[:60]} not found.")
    return found[name]


def put_templates(
    site: Site, actor: Actor, changes: Mapping[str, Json], note: Note = NO_NOTE
) -> dict[str, Json]:
    """Add or replace templates by name; `null` removes one that no pool names."""
    authorise(actor, Action.CONFIG_UPDATE, _WHERE, site.role_names)
    for name, template in changes.items():
        _check(name, template)
    with site.store.write() as connection:
        before = read_templates(connection)
        after = with_changes("Group templates", before, changes)
        for pool in pool_store.list_pools(connection):
            for name in sorted(set(pool.common_group_templates) & (set(before) - set(after))):
                raise Conflict(f"Group template {name} is used by pool {pool.name}.")
        setting_store.put(connection, _SETTING, after)
        revise(connection, site, actor, ConfigType.GROUP_TEMPLATE, _SETTING, after, note)
        audit(connection, site, actor, "config:Update", _WHERE, before, after)
    return after


def delete_template(site: Site, actor: Actor, name: str, note: Note = NO_NOTE) -> None:
    """Remove a template that no pool names."""
    get_template(site, actor, name)
    put_templates(site, actor, {name: None}, note)


def check_pool(site: Site, connection: sa.Connection, pool: Pool, before: Pool | None) -> None:
    """Refuse templates that a pool newly names, if there are none, or its backend makes no pods."""
    kept = () if before is None else before.common_group_templates
    if before is not None and before.backend != pool.backend:
        kept = ()
    news = [name for name in pool.common_group_templates if name not in kept]
    if not news:
        return
    where = f"Pool {pool.name}: common_group_templates"
    if not site.abilities_of(pool.backend).makes_pods:
        raise Invalid(
            f"{where}: backend {pool.backend} makes no pods, and so nothing of {news[0][:60]!r}."
        )
    known = read_templates(connection)
    for name in news:
        if name not in known:
            raise Invalid(f"{where}: group template {name[:60]!r} not found; write it first.")


def _check(name: str, template: Json) -> None:
    fault = plain_name_fault("Group template", name)
    if fault is not None:
        raise Invalid(fault)
    if template is None:
        return
    where = f"Group template {name}"
    if not isinstance(template, Mapping):
        raise Invalid(f"{where}: expected an object, not {str(template)[:40]!r}.")
    for field, form, example in (
        ("apiVersion", _API_VERSION, "resource.nvidia.com/v1beta1"),
        ("kind", _KIND, "ConfigMap"),
    ):
        value = template.get(field)
        if not isinstance(value, str) or not form.fullmatch(value):
            raise Invalid(f"{where}.{field}: must be a text like {example}, not {_shown(value)}.")
    for fault in faults(template):
        raise Invalid(f"{where}{fault}")
    _check_metadata(f"{where}.metadata", template.get("metadata"))


def _check_metadata(where: str, metadata: Json) -> None:
    if not isinstance(metadata, Mapping):
        raise Invalid(f"{where}: expected an object with a name, not {_shown(metadata)}.")
    for key in metadata:
        if key == "namespace":
            raise Invalid(f"{where}.namespace: is decided by Bough.")
        if key not in _METADATA:
            raise Invalid(f"{where}: there is no field {str(key)[:40]!r} here.")
    for key in ("labels", "annotations"):
        if not isinstance(metadata.get(key, {}), Mapping):
            raise Invalid(f"{where}.{key}: expected an object, not {_shown(metadata[key])}.")
    name = metadata.get("name")
    if not isinstance(name, str) or not _IDENTITY.search(name):
        raise Invalid(
            f"{where}.name: must contain {{{{WF_GROUP_UUID}}}}, so that each group has an object "
            f"of its own, not {_shown(name)}."
        )
    try:
        filled = fill(name, _EXAMPLE)
    except UnknownVariable as error:
        raise Invalid(f"{where}.name: has no variable but WF_GROUP_UUID, not {error}.") from None
    if not isinstance(filled, str) or not _NAME.fullmatch(filled) or len(filled) > 253:
        raise Invalid(f"{where}.name: {_shown(name)} is not the name of an object of Kubernetes.")


def _shown(value: Json) -> str:
    return repr(value)[:60]
