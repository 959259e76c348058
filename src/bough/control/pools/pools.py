"""Top-level pools: create, change, rename, delete, show. Subpools are in `subpools`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import sqlalchemy as sa

from bough.api.pools import DrainReport
from bough.control.change_recording import NO_NOTE, Note, audit, happen, revise
from bough.control.config import group_templates
from bough.control.people.access import authorise, change_access, resource_of
from bough.control.people.role_bindings import pool_roles
from bough.control.pools import quota_effects
from bough.control.pools.pool_fields import merge_pool, pool_document, read_pool
from bough.control.pools.pool_setup import (
    PoolSetup,
    offline_reason,
    read_pool_setup,
    status_of,
)
from bough.control.pools.quota_effects import changing
from bough.control.pools.waiting_work import Consequences, all_together, consequences
from bough.control.site import Site
from bough.errors import Broken, Conflict, Invalid, NotFound
from bough.model.access import Action, Actor
from bough.model.change_record import ConfigType, EventKind
from bough.model.names import SHARED, QueueName, pool_name_fault, queue_name_fault
from bough.model.pool import BackendRecord, Json, Pool, PoolStatus
from bough.model.subpool import Subpool
from bough.store import archive as archive_store
from bough.store import arrays as array_store
from bough.store import nodes as node_store
from bough.store import people as people_store
from bough.store import pools as pool_store
from bough.store import settings as setting_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store


class PoolView(msgspec.Struct, frozen=True):
    """A pool, or a subpool with what it inherits, as it is shown."""

    name: str
    #: For a subpool, its pool.
    pool: Pool
    status: PoolStatus
    subpool: Subpool | None = None
    #: What keeps a subpool that is being deleted from being archived, where that was asked for.
    drain: DrainReport | None = None
    #: Why it is OFFLINE.
    offline: str | None = None


class PoolChange(msgspec.Struct, frozen=True):
    """The result of a change, made or only planned."""

    views: tuple[PoolView, ...]
    effects: quota_effects.Effects
    #: The workflows that cannot start any more, or only later.
    consequences: Consequences
    #: Only planned: nothing was changed.
    planned: bool = False


def put_pools(
    site: Site,
    actor: Actor,
    configs: Mapping[str, Json],
    note: Note = NO_NOTE,
    *,
    plan: bool = False,
) -> PoolChange:
    """Create pools, or replace their configuration; all of them, or none."""
    for name in configs:
        authorise(actor, Action.POOL_UPDATE, resource_of(name), site.role_names)
    wanted = [read_pool(name, configs[name]) for name in sorted(configs)]
    with changing(site, plan=plan) as connection:
        before = read_pool_setup(connection)
        for pool in wanted:
            pool_store.lock(connection, pool.name)
        for pool in wanted:
            _put(site, connection, actor, pool, note)
        changed = _finish(site, connection, before, wanted)
    return msgspec.structs.replace(changed, planned=plan)


def create_pool(
    site: Site, actor: Actor, name: str, config: Json, note: Note = NO_NOTE
) -> PoolChange:
    """Create a pool."""
    authorise(actor, Action.POOL_CREATE, resource_of(name), site.role_names)
    pool = read_pool(name, config)
    with site.store.write() as connection:
        before = read_pool_setup(connection)
        if isinstance(pool_store.find(connection, name), Pool):
            raise Conflict(f"Pool {name} already exists.")
        _put(site, connection, actor, pool, note)
        changed = _finish(site, connection, before, (pool,))
    site.wake()
    return changed


def patch_pool(
    site: Site,
    actor: Actor,
    name: str,
    changes: Json,
    note: Note = NO_NOTE,
    *,
    plan: bool = False,
) -> PoolChange:
    """Change some fields of a pool."""
    authorise(actor, Action.POOL_UPDATE, resource_of(name), site.role_names)
    with changing(site, plan=plan) as connection:
        before = read_pool_setup(connection)
        pool = merge_pool(_lock(connection, name), changes)
        _put(site, connection, actor, pool, note)
        changed = _finish(site, connection, before, (pool,))
    return msgspec.structs.replace(changed, planned=plan)


def rename_pool(site: Site, actor: Actor, name: str, new_name: str, note: Note = NO_NOTE) -> Pool:
    """Give a pool another name; its workflows go with it."""
    authorise(actor, Action.POOL_UPDATE, resource_of(name), site.role_names)
    authorise(actor, Action.POOL_UPDATE, resource_of(new_name), site.role_names)
    with site.store.write() as connection:
        pool = _lock(connection, name)
        subpools = pool_store.list_subpools(connection, name)
        if subpools:
            listed = ", ".join(each.name for each in subpools)
            raise Conflict(f"Pool {name} cannot be renamed: it has the subpools {listed}.")
        _check_new_name(site, new_name)
        if pool_store.find(connection, new_name) is not None:
            raise Conflict(f"Pool {new_name} already exists.")
        pool_store.rename_pool(connection, name, new_name)
        change_access(connection)
        people_store.forget_default_pool(connection, name, new_name)
        renamed = msgspec.structs.replace(pool, name=new_name)
        revise(connection, site, actor, ConfigType.POOL, name, None, note)
        revise(connection, site, actor, ConfigType.POOL, new_name, pool_document(renamed), note)
        audit(connection, site, actor, "pool:Rename", f"pool/{name}", pool, renamed)
        happen(
            connection,
            site,
            EventKind.POOL_CHANGED,
            new_name,
            pool=new_name,
            message=f"renamed from {name}",
        )
        setting_store.raise_version(connection)
        array_store.move(connection, name, new_name)
        workflow_store.move(connection, name, new_name)
        task_store.move_queue(connection, site.leaf_queue(name), site.leaf_queue(new_name))
        task_store.move_queue(connection, site.pool_queue(name), site.pool_queue(new_name))
        archive_store.move(connection, name, new_name)
    site.wake()
    return renamed


def delete_pool(site: Site, actor: Actor, name: str, note: Note = NO_NOTE) -> bool:
    """Remove a pool, and say whether there was one."""
    authorise(actor, Action.POOL_DELETE, resource_of(name), site.role_names)
    with site.store.write() as connection:
        if pool_store.find(connection, name) is None:
            return False
        pool = _lock(connection, name)
        _check_deletable(connection, name)
        roles = pool_roles(pool_store.uuid_of(connection, name))
        pool_store.delete_pool(connection, name)
        change_access(connection)
        people_store.forget_roles(connection, roles)
        people_store.forget_default_pool(connection, name)
        revise(connection, site, actor, ConfigType.POOL, name, None, note)
        audit(connection, site, actor, "pool:Delete", f"pool/{name}", pool)
        happen(connection, site, EventKind.POOL_CHANGED, name, pool=name, message="deleted")
        setting_store.raise_version(connection)
        # A later pool of that name is another one, and its users may not read these.
        array_store.move(connection, name, f"{name} (deleted)")
        workflow_store.move(connection, name, f"{name} (deleted)")
        archive_store.move(connection, name, f"{name} (deleted)")
    site.wake()
    return True


def list_pools(
    site: Site, actor: Actor, backend: str | None = None, *, subpools: bool = False
) -> list[PoolView]:
    """All pools, by name; with subpools, each is followed by those that are not archived."""
    authorise(actor, Action.POOL_LIST, names=site.role_names)
    with site.store.read() as connection:
        config = read_pool_setup(connection)
        backends = node_store.backends(connection)
    views: list[PoolView] = []
    for pool in config.pools:
        if backend is not None and pool.backend != backend:
            continue
        status, offline = _status(site, pool, backends)
        views.append(PoolView(pool.name, pool, status, offline=offline))
        if subpools:
            visible = [each for each in config.subpools_of(pool.name) if each.visible]
            views += [PoolView(each.name, pool, status, each, offline=offline) for each in visible]
    return views


def get_pool(site: Site, actor: Actor, name: str) -> PoolView:
    """One pool, or a subpool by its canonical name."""
    authorise(actor, Action.POOL_LIST, names=site.role_names)
    with site.store.read() as connection:
        found = pool_store.find(connection, name)
        if found is None:
            raise NotFound(f"Pool {name} not found.")
        return view(site, connection, found)


def view(site: Site, connection: sa.Connection, found: Pool | Subpool) -> PoolView:
    """How a pool or subpool is shown at this moment."""
    subpool = found if isinstance(found, Subpool) else None
    pool = found if isinstance(found, Pool) else pool_store.find_pool(connection, found.parent)
    if pool is None:
        raise Broken(f"the pool of {found.name} is missing")
    status, offline = _status(site, pool, node_store.backends(connection))
    return PoolView(found.name, pool, status, subpool, offline=offline)


def _status(
    site: Site, pool: Pool, backends: dict[str, BackendRecord]
) -> tuple[PoolStatus, str | None]:
    """The status of a pool, and why it is OFFLINE."""
    now_ms = site.clock.now_ms()
    return status_of(pool, backends, now_ms), offline_reason(pool.backend, backends, now_ms)


# Rules


def _put(site: Site, connection: sa.Connection, actor: Actor, pool: Pool, note: Note) -> None:
    _refuse_subpool(connection, pool.name)
    current = pool_store.lock(connection, pool.name)
    if pool.cohort is not None and pool_store.find_cohort(connection, pool.cohort) is None:
        kept = current is not None and current.cohort == pool.cohort
        if not kept:
            raise Invalid(f"Cohort {pool.cohort} not found; create it first.")
    group_templates.check_pool(site, connection, pool, current)
    if current is None:
        _check_new_name(site, pool.name)
        pool_store.insert_pool(connection, pool, site.clock.now_ms())
    else:
        _check_quota(connection, pool)
        pool_store.update_pool(connection, pool)
    if current != pool:
        revise(connection, site, actor, ConfigType.POOL, pool.name, pool_document(pool), note)
        action = "pool:Create" if current is None else "pool:Update"
        audit(connection, site, actor, action, f"pool/{pool.name}", current, pool)
        happen(connection, site, EventKind.POOL_CHANGED, pool.name, pool=pool.name)


def _finish(
    site: Site, connection: sa.Connection, before: PoolSetup, changed: Sequence[Pool]
) -> PoolChange:
    setting_store.raise_version(connection)
    after = read_pool_setup(connection)
    # Pools without a quota have less where others have more.
    others = [each for each in after.pools if each.gpu.guarantee is None and each not in changed]
    found = [consequences(connection, each.name, before, after) for each in (*changed, *others)]
    return PoolChange(
        tuple(view(site, connection, pool) for pool in changed),
        quota_effects.of_change(site, connection, before, after),
        all_together(found),
    )


def _check_new_name(site: Site, name: str) -> None:
    queue = QueueName(site.namespace, name, SHARED, site.prefix)
    fault = pool_name_fault(name) or queue_name_fault("Pool", name, queue)
    if fault:
        raise Invalid(fault)


def _check_quota(connection: sa.Connection, pool: Pool) -> None:
    """The shared part must not become negative: subpools keep their quotas."""
    allocated = pool_store.active_quota(connection, pool.name)
    guarantee = pool.gpu.guarantee
    if guarantee is None:
        visible = [each for each in pool_store.list_subpools(connection, pool.name) if each.visible]
        if visible:
            raise Invalid(f"Pool {pool.name} is divided into subpools, so it needs a GPU quota.")
    elif guarantee < allocated:
        raise Invalid(
            f"The quota of pool {pool.name} cannot be {guarantee} GPUs: {allocated} GPUs are "
            "allocated to subpools."
        )


def _check_deletable(connection: sa.Connection, name: str) -> None:
    subpools = pool_store.list_subpools(connection, name)
    visible = [f"{each.name} ({each.state})" for each in subpools if each.visible]
    if visible:
        raise Conflict(f"Pool {name} cannot be deleted: it has the subpools {', '.join(visible)}.")
    if subpools:
        listed = ", ".join(each.name for each in subpools)
        raise Conflict(
            f"Pool {name} cannot be deleted: the history of its archived subpools {listed} is kept."
        )
    alive = workflow_store.count_alive(connection, name)
    if alive:
        raise Conflict(f"Pool {name} cannot be deleted: {alive} of its workflows are not finished.")


def _lock(connection: sa.Connection, name: str) -> Pool:
    _refuse_subpool(connection, name)
    pool = pool_store.lock(connection, name)
    if pool is None:
        raise NotFound(f"Pool {name} not found.")
    return pool


def _refuse_subpool(connection: sa.Connection, name: str) -> None:
    found = pool_store.find(connection, name)
    if isinstance(found, Subpool):
        raise Invalid(
            f"Pool {name} is a subpool of {found.parent}; its quota is changed, and it is deleted, "
            f"through /api/configs/pool/{found.parent}/subpool/{found.subpool}."
        )
