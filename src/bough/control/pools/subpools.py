"""Subpools: create, change the quota, delete, create again; show, list, history.

Every rule is checked while the pool is locked, so that `_shared + sum(active) = pool` holds at all
times: what is shared is derived and never stored. Decreases are soft: nothing is ended.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import NO_NOTE, Note, subpool_changed
from bough.control.fields import read_gpus
from bough.control.people.access import authorise, resource_of, resource_within
from bough.control.pools import quota_effects, subpool_drain
from bough.control.pools.pool_setup import PoolSetup, read_pool_setup
from bough.control.pools.pools import PoolView, view
from bough.control.pools.quota_effects import changing
from bough.control.pools.waiting_work import Consequences, consequences
from bough.control.site import Site
from bough.errors import Conflict, Invalid, NotFound
from bough.model.access import Action, Actor
from bough.model.change_record import ConfigType, Revision
from bough.model.names import (
    DELIMITER,
    QueueName,
    canonical_name,
    queue_name_fault,
    subpool_name_fault,
)
from bough.model.pool import Json, Pool
from bough.model.subpool import Subpool, SubpoolState, SubpoolStep, next_state
from bough.store import change_records as record_store
from bough.store import pools as pool_store
from bough.store import settings as setting_store
from bough.store import workflows as workflow_store


class SubpoolChange(msgspec.Struct, frozen=True):
    """The result of a change, made or only planned."""

    view: PoolView
    effects: quota_effects.Effects
    #: The workflows that cannot start any more, or only later.
    consequences: Consequences
    #: Whether a subpool of this name was archived before.
    reactivated: bool = False
    #: Only planned: nothing was changed.
    planned: bool = False


def create_subpool(
    site: Site,
    actor: Actor,
    parent: str,
    name: str,
    quota: Json,
    note: Note = NO_NOTE,
    *,
    plan: bool = False,
) -> SubpoolChange:
    """Give a part of a pool to a new subpool, or to one that was archived."""
    with changing(site, plan=plan) as connection:
        pool = _lock_parent(site, connection, actor, parent, Action.SUBPOOL_CREATE)
        _check_name(site, pool, name)
        gpus = read_gpus(f"The quota of subpool {canonical_name(parent, name)}", quota)
        if pool.gpu.guarantee is None:
            raise Invalid(f"Pool {parent} has no GPU quota to partition; give it one first.")
        current = pool_store.find_subpool(connection, parent, name)
        state = _step(current, canonical_name(parent, name), SubpoolStep.CREATE)
        before = read_pool_setup(connection)
        subpool = Subpool(parent, name, state, gpus)
        _check_room(connection, pool, subpool)
        if current is None:
            pool_store.insert_subpool(connection, subpool, site.clock.now_ms())
        else:
            pool_store.update_subpool(connection, subpool)
        subpool_changed(connection, site, actor, "subpool:Create", current, subpool, note)
        change = _finish(site, connection, before, subpool, plan=plan)
    return msgspec.structs.replace(change, reactivated=current is not None)


def update_subpool(
    site: Site,
    actor: Actor,
    parent: str,
    name: str,
    changes: Json,
    note: Note = NO_NOTE,
    *,
    plan: bool = False,
) -> SubpoolChange:
    """Change the quota of a subpool, which is all that can be changed."""
    with changing(site, plan=plan) as connection:
        pool = _lock_parent(site, connection, actor, parent, Action.SUBPOOL_UPDATE)
        current = _require(connection, parent, name)
        if not isinstance(changes, Mapping) or set(changes) != {"quota"}:
            raise Invalid(
                f"Only the quota of subpool {current.name} can be changed; send "
                f'{{"quota": <gpus>}}. Everything else is configured for pool {parent}.'
            )
        gpus = read_gpus(f"The quota of subpool {current.name}", changes["quota"])
        state = _step(current, current.name, SubpoolStep.UPDATE)
        before = read_pool_setup(connection)
        subpool = msgspec.structs.replace(current, state=state, quota=gpus)
        if subpool != current:
            _check_room(connection, pool, subpool, given=current.counted)
            pool_store.update_subpool(connection, subpool)
            subpool_changed(connection, site, actor, "subpool:Update", current, subpool, note)
        return _finish(site, connection, before, subpool, plan=plan)


def delete_subpool(
    site: Site, actor: Actor, parent: str, name: str, note: Note = NO_NOTE, *, plan: bool = False
) -> SubpoolChange:
    """Give the quota of a subpool back at once; it is archived when nothing is left in it."""
    with changing(site, plan=plan) as connection:
        _lock_parent(site, connection, actor, parent, Action.SUBPOOL_DELETE)
        current = _require(connection, parent, name)
        busy = workflow_store.count_alive(connection, current.name) > 0
        step = SubpoolStep.DELETE_BUSY if busy else SubpoolStep.DELETE_EMPTY
        state = _step(current, current.name, step)
        before = read_pool_setup(connection)
        subpool = msgspec.structs.replace(current, state=state)
        pool_store.update_subpool(connection, subpool)
        if busy:
            subpool_drain.arm(site, connection, subpool)
        subpool_changed(connection, site, actor, "subpool:Delete", current, subpool, note)
        return _finish(site, connection, before, subpool, plan=plan)


def get_subpool(site: Site, actor: Actor, parent: str, name: str) -> PoolView:
    """One subpool, whatever its state; with what keeps its drain open, if it is being deleted."""
    with site.store.read() as connection:
        _authorise(site, connection, actor, parent, Action.SUBPOOL_READ)
        subpool = _require(connection, parent, name)
        shown = view(site, connection, subpool)
        if subpool.state is SubpoolState.DELETING:
            kept_open = subpool_drain.drain_of(connection, subpool)
            shown = msgspec.structs.replace(shown, drain=kept_open)
        return shown


def list_subpools(
    site: Site, actor: Actor, parent: str, *, include_archived: bool = False
) -> list[PoolView]:
    """The subpools of a pool, by name."""
    with site.store.read() as connection:
        _authorise(site, connection, actor, parent, Action.SUBPOOL_READ)
        subpools = pool_store.list_subpools(connection, parent)
        shown = [each for each in subpools if include_archived or each.visible]
        return [view(site, connection, each) for each in shown]


def subpool_history(site: Site, actor: Actor, parent: str, name: str) -> list[Revision]:
    """All changes of a subpool in order, including those before it was archived."""
    with site.store.read() as connection:
        _authorise(site, connection, actor, parent, Action.SUBPOOL_READ)
        subpool = _require(connection, parent, name)
        return record_store.list_revisions(
            connection, types=(ConfigType.SUBPOOL,), name=subpool.name
        )


# Rules


def _check_name(site: Site, pool: Pool, name: str) -> None:
    queue = QueueName(site.namespace, pool.name, name, site.prefix)
    fault = subpool_name_fault(name) or queue_name_fault("Subpool", name, queue)
    if fault:
        raise Invalid(fault)
    if DELIMITER in pool.name:
        raise Invalid(
            f'Pool {pool.name} cannot have subpools while its name contains "{DELIMITER}"; '
            "rename it first."
        )


def _step(current: Subpool | None, name: str, step: SubpoolStep) -> SubpoolState:
    state = next_state(None if current is None else current.state, step)
    if state is not None:
        return state
    found = current.state if current is not None else "missing"
    if step is SubpoolStep.CREATE:
        raise Conflict(f"Subpool {name} already exists ({found}).")
    verb = "updated" if step is SubpoolStep.UPDATE else "deleted"
    raise Conflict(f"Subpool {name} is {found} and cannot be {verb}.")


def _check_room(connection: sa.Connection, pool: Pool, subpool: Subpool, *, given: int = 0) -> None:
    """The quota must be unallocated; `given` is what the subpool has already."""
    allocated = pool_store.active_quota(connection, pool.name) - given
    left = (pool.gpu.guarantee or 0) - allocated
    if subpool.quota > left:
        raise Conflict(
            f"Subpool {subpool.name} requires {subpool.quota} GPUs but pool {pool.name} has only "
            f"{left} unallocated GPUs."
        )


def _finish(
    site: Site, connection: sa.Connection, before: PoolSetup, subpool: Subpool, *, plan: bool
) -> SubpoolChange:
    setting_store.raise_version(connection)
    after = read_pool_setup(connection)
    return SubpoolChange(
        view(site, connection, subpool),
        quota_effects.of_change(site, connection, before, after),
        consequences(connection, subpool.parent, before, after),
        planned=plan,
    )


def _lock_parent(
    site: Site, connection: sa.Connection, actor: Actor, parent: str, action: Action
) -> Pool:
    _authorise(site, connection, actor, parent, action)
    pool = pool_store.lock(connection, parent)
    if pool is None:
        raise NotFound(f"Pool {parent} not found.")
    return pool


def _authorise(
    site: Site, connection: sa.Connection, actor: Actor, parent: str, action: Action
) -> None:
    """Check the right to the pool first, then whether it can be divided."""
    found = pool_store.find(connection, parent)
    asked = resource_of(found) if isinstance(found, Subpool) else resource_within(found or parent)
    authorise(actor, action, asked, site.role_names)
    if found is None:
        raise NotFound(f"Pool {parent} not found.")
    if isinstance(found, Subpool):
        raise Invalid(
            f"Pool {parent} is a subpool of {found.parent}; a subpool cannot be divided again."
        )


def _require(connection: sa.Connection, parent: str, name: str) -> Subpool:
    subpool = pool_store.find_subpool(connection, parent, name)
    if subpool is None:
        raise NotFound(f"Subpool {canonical_name(parent, name)} not found.")
    return subpool
