"""Cohorts above the pools: create, change, delete, list; each answer says what the change does.

A cycle is accepted, and stops everything below it until it is broken. A cohort that is deleted
while others name it goes on without quota and parent. Both follow from the quota tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import NO_NOTE, Note, audit, happen, revise
from bough.control.fields import read_gpus, read_limit, read_weight
from bough.control.people.access import authorise
from bough.control.pools import quota_effects
from bough.control.pools.pool_setup import PoolSetup, read_pool_setup
from bough.control.pools.quota_effects import changing
from bough.control.site import Site
from bough.errors import Conflict, Invalid, NotFound
from bough.model.access import Action, Actor
from bough.model.change_record import ConfigType, EventKind
from bough.model.names import DELIMITER, plain_name_fault
from bough.model.pool import Json, PoolCohort
from bough.store import pools as pool_store
from bough.store import settings as setting_store

_FIELDS = set(PoolCohort.__struct_fields__) - {"name"}


class CohortChange(msgspec.Struct, frozen=True):
    """The result of a change, made or only planned."""

    cohort: PoolCohort | None
    effects: quota_effects.Effects
    #: Only planned: nothing was changed.
    planned: bool = False


def create_cohort(
    site: Site, actor: Actor, name: str, fields: Json, note: Note = NO_NOTE, *, plan: bool = False
) -> CohortChange:
    """Create a cohort."""

    def change(connection: sa.Connection) -> PoolCohort:
        _check_name(site, name)
        if pool_store.lock_cohort(connection, name) is not None:
            raise Conflict(f"Cohort {name} already exists.")
        cohort = _changed(connection, PoolCohort(name), fields)
        pool_store.insert_cohort(connection, cohort)
        _write_down(site, connection, actor, "cohort:Create", None, cohort, note)
        return cohort

    return _make(site, actor, change, plan=plan)


def update_cohort(
    site: Site, actor: Actor, name: str, fields: Json, note: Note = NO_NOTE, *, plan: bool = False
) -> CohortChange:
    """Change some fields of a cohort; its parent is one of them."""

    def change(connection: sa.Connection) -> PoolCohort:
        before = _require(connection, name)
        cohort = _changed(connection, before, fields)
        pool_store.update_cohort(connection, cohort)
        _write_down(site, connection, actor, "cohort:Update", before, cohort, note)
        return cohort

    return _make(site, actor, change, plan=plan)


def delete_cohort(
    site: Site, actor: Actor, name: str, note: Note = NO_NOTE, *, plan: bool = False
) -> CohortChange:
    """Delete a cohort at once, even where others name it."""

    def change(connection: sa.Connection) -> None:
        before = _require(connection, name)
        pool_store.delete_cohort(connection, name)
        _write_down(site, connection, actor, "cohort:Delete", before, None, note)

    return _make(site, actor, change, plan=plan)


def list_cohorts(site: Site, actor: Actor) -> list[PoolCohort]:
    """All cohorts, by name."""
    authorise(actor, Action.COHORT_READ, names=site.role_names)
    with site.store.read() as connection:
        return pool_store.list_cohorts(connection)


def get_cohort(site: Site, actor: Actor, name: str) -> PoolCohort:
    """One cohort."""
    authorise(actor, Action.COHORT_READ, names=site.role_names)
    with site.store.read() as connection:
        found = pool_store.find_cohort(connection, name)
    if found is None:
        raise NotFound(f"Cohort {name} not found.")
    return found


def _make(site: Site, actor: Actor, change: Any, *, plan: bool) -> CohortChange:
    """Make a change in a transaction, see what it does, and keep it unless it is only planned."""
    authorise(actor, Action.COHORT_UPDATE, names=site.role_names)
    with changing(site, plan=plan) as connection:
        before: PoolSetup = read_pool_setup(connection)
        cohort = change(connection)
        setting_store.raise_version(connection)
        after = read_pool_setup(connection)
        made = CohortChange(cohort, quota_effects.of_change(site, connection, before, after), plan)
        _tell(site, connection, made)
    return made


def _tell(site: Site, connection: sa.Connection, made: CohortChange) -> None:
    """Events for queues that stop, and that run again, because of the change."""
    for node in made.effects.tangled:
        happen(
            connection,
            site,
            EventKind.COHORT_CHANGED,
            node.name,
            message="stopped: its cohorts form a cycle",
        )
    for node in made.effects.untangled:
        happen(
            connection,
            site,
            EventKind.COHORT_CHANGED,
            node.name,
            message="free of the cycle: new admissions are possible again",
        )


def _changed(connection: sa.Connection, cohort: PoolCohort, fields: Json) -> PoolCohort:
    where = f"Cohort {cohort.name}"
    if not isinstance(fields, Mapping):
        raise Invalid(f"{where}: expected an object with its fields.")
    unknown = sorted(str(key) for key in fields if key not in _FIELDS)
    if unknown:
        raise Invalid(f"{where}: there is no field {', '.join(unknown)}.")
    values: dict[str, Any] = dict(fields)
    if "quota" in values:
        values["quota"] = read_gpus(f"{where}: quota", values["quota"])
    if "weight" in values:
        values["weight"] = read_weight(f"{where}: weight", values["weight"])
    for key in ("borrowing_limit", "lending_limit"):
        if key in values:
            values[key] = read_limit(f"{where}: {key}", values[key])
    parent = values.get("parent")
    if parent is not None and parent != cohort.parent and not isinstance(parent, str):
        raise Invalid(f"{where}: the parent must be the name of a cohort.")
    if (
        parent is not None
        and parent not in (cohort.parent, cohort.name)
        and (pool_store.find_cohort(connection, parent) is None)
    ):
        raise Invalid(f"{where}: the cohort {parent} does not exist; create it first.")
    if not isinstance(values.get("description", ""), str):
        raise Invalid(f"{where}: the description must be text.")
    return msgspec.structs.replace(cohort, **values)


def _check_name(site: Site, name: str) -> None:
    fault = plain_name_fault("Cohort", name)
    if fault is None and (DELIMITER in name or name.startswith(f"{site.prefix}-")):
        fault = (
            f'Cohort name "{name}" is not valid! "{DELIMITER}" and names that begin with '
            f'"{site.prefix}-" are kept for the queues of pools.'
        )
    if fault is not None:
        raise Invalid(fault)


def _require(connection: sa.Connection, name: str) -> PoolCohort:
    found = pool_store.lock_cohort(connection, name)
    if found is None:
        raise NotFound(f"Cohort {name} not found.")
    return found


def _write_down(
    site: Site,
    connection: sa.Connection,
    actor: Actor,
    action: str,
    before: PoolCohort | None,
    after: PoolCohort | None,
    note: Note,
) -> None:
    name = (after or before or PoolCohort("")).name
    revise(connection, site, actor, ConfigType.COHORT, name, msgspec.to_builtins(after), note)
    audit(connection, site, actor, action, f"cohort/{name}", before, after)
    happen(connection, site, EventKind.COHORT_CHANGED, name, message=action)
