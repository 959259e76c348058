"""Pools and subpools, which are rows of one table; the monitors of drains; cohorts above pools.

A rule about a pool and its subpools is checked under `lock`: every change of one of them holds the
pool's row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from bough.model.pool import GpuQuota, Pool, PoolCohort
from bough.model.subpool import Subpool, SubpoolState
from bough.store.rows import convert, read_all, read_first
from bough.store.schema import COHORTS, DRAIN_MONITORS, EVENTS, POOLS

# What every submission asks is written once: making a statement costs more than running it.
_NAMED = sa.select(POOLS).where(POOLS.c.name == sa.bindparam("name"))
_NAMES = sa.select(POOLS.c.uuid, POOLS.c.name).where(
    POOLS.c.parent_pool.is_(None), POOLS.c.uuid.in_(sa.bindparam("uuids", expanding=True))
)
_LAST_EVENT = sa.select(sa.func.coalesce(sa.func.max(EVENTS.c.number), 0)).scalar_subquery()
_TOP = _NAMED.where(POOLS.c.parent_pool.is_(None))
_LOCKED = _TOP.with_for_update()
_HELD = _TOP.with_only_columns(POOLS.c.name).with_for_update(read=True)
_SHORT = sa.select(POOLS).where(
    POOLS.c.parent_pool == sa.bindparam("parent"), POOLS.c.subpool_name == sa.bindparam("subpool")
)
_ACTIVE_QUOTA = sa.select(sa.func.coalesce(sa.func.sum(POOLS.c.gpu_guarantee), 0)).where(
    POOLS.c.parent_pool == sa.bindparam("parent"),
    POOLS.c.subpool_state == SubpoolState.ACTIVE.value,
)

#: What has a column of its own; everything else that is configured is in `config`.
_COLUMNS = ("cohort", "borrowing_limit", "lending_limit", "user_gpu_limit")
_APART = {"name", "gpu", *_COLUMNS}


def find(connection: sa.Connection, name: str) -> Pool | Subpool | None:
    """The pool or subpool of a name."""
    return _one(connection, _NAMED, name=name)


def identities(connection: sa.Connection, names: Iterable[str] | None = None) -> dict[str, str]:
    """The identity of each pool, or of some, by name; that of a subpool is its pool's."""
    of_pool = POOLS.alias()
    query = sa.select(POOLS.c.name, of_pool.c.uuid).where(
        of_pool.c.name == sa.func.coalesce(POOLS.c.parent_pool, POOLS.c.name),
    )
    if names is not None:
        query = query.where(POOLS.c.name.in_(tuple(names)))
    return {row.name: row.uuid for row in connection.execute(query)}


def find_pool(connection: sa.Connection, name: str) -> Pool | None:
    """The top-level pool of a name."""
    found = find(connection, name)
    return found if isinstance(found, Pool) else None


def uuid_of(connection: sa.Connection, name: str) -> str | None:
    """The identity of the top-level pool of a name."""
    query = sa.select(POOLS.c.uuid).where(POOLS.c.name == name, POOLS.c.parent_pool.is_(None))
    return connection.execute(query).scalar_one_or_none()


def names_of(connection: sa.Connection, uuids: Sequence[str]) -> dict[str, str]:
    """The names of the top-level pools of some identities; those that are gone are missing."""
    return {row.uuid: row.name for row in connection.execute(_NAMES, {"uuids": uuids})}


def named_after(connection: sa.Connection, names: Iterable[str]) -> dict[str, int]:
    """The last event of before each pool got its name."""
    query = sa.select(POOLS.c.name, POOLS.c.named_after).where(POOLS.c.name.in_(tuple(names)))
    return {row.name: row.named_after for row in connection.execute(query)}


def lock(connection: sa.Connection, name: str) -> Pool | None:
    """The top-level pool of a name, locked with its subpools until the transaction ends."""
    found = _one(connection, _LOCKED, name=name)
    return found if isinstance(found, Pool) else None


def hold(connection: sa.Connection, name: str) -> None:
    """The same for readers: several may hold a pool, and none can lock it meanwhile.

    SQLite has one writer at a time.
    """
    if connection.dialect.name != "sqlite":
        connection.execute(_HELD, {"name": name}).first()


def list_pools(connection: sa.Connection) -> list[Pool]:
    """All top-level pools, by name."""
    query = sa.select(POOLS).where(POOLS.c.parent_pool.is_(None)).order_by(POOLS.c.name)
    return [_pool(row) for row in connection.execute(query).mappings()]


def list_subpools(connection: sa.Connection, parent: str | None = None) -> list[Subpool]:
    """The subpools of a pool, or of all, by pool and name, archived ones too."""
    query = sa.select(POOLS).where(POOLS.c.parent_pool.is_not(None))
    if parent is not None:
        query = query.where(POOLS.c.parent_pool == parent)
    rows = connection.execute(query.order_by(POOLS.c.parent_pool, POOLS.c.subpool_name)).mappings()
    return [_subpool(row) for row in rows]


def find_subpool(connection: sa.Connection, parent: str, subpool: str) -> Subpool | None:
    """The subpool of a short name."""
    found = _one(connection, _SHORT, parent=parent, subpool=subpool)
    return found if isinstance(found, Subpool) else None


def active_quota(connection: sa.Connection, parent: str) -> int:
    """What the ACTIVE subpools of a pool have together."""
    return int(connection.execute(_ACTIVE_QUOTA, {"parent": parent}).scalar_one())


def insert_pool(connection: sa.Connection, pool: Pool, now_ms: int) -> None:
    """Add a top-level pool."""
    named = {"created_ms": now_ms, "named_after": _LAST_EVENT}
    connection.execute(sa.insert(POOLS).values(**named, **_values(pool)))


def update_pool(connection: sa.Connection, pool: Pool) -> None:
    """Replace what is configured for a top-level pool."""
    values = _values(pool)
    connection.execute(sa.update(POOLS).where(POOLS.c.name == pool.name).values(**values))


def rename_pool(connection: sa.Connection, name: str, new_name: str) -> None:
    """Give a top-level pool another name."""
    named = {"name": new_name, "named_after": _LAST_EVENT}
    connection.execute(sa.update(POOLS).where(POOLS.c.name == name).values(**named))


def delete_pool(connection: sa.Connection, name: str) -> None:
    """Remove a top-level pool."""
    connection.execute(sa.delete(POOLS).where(POOLS.c.name == name))


def insert_subpool(connection: sa.Connection, subpool: Subpool, now_ms: int) -> None:
    """Add a subpool."""
    connection.execute(
        sa.insert(POOLS).values(
            name=subpool.name,
            parent_pool=subpool.parent,
            subpool_name=subpool.subpool,
            subpool_state=subpool.state.value,
            gpu_guarantee=subpool.quota,
            created_ms=now_ms,
        )
    )


def update_subpool(connection: sa.Connection, subpool: Subpool) -> None:
    """Write the state and the quota of a subpool."""
    connection.execute(
        sa.update(POOLS)
        .where(POOLS.c.name == subpool.name)
        .values(subpool_state=subpool.state.value, gpu_guarantee=subpool.quota)
    )


# Monitors


def arm_monitor(connection: sa.Connection, subpool: str, due_ms: int) -> None:
    """Look at a subpool at this time; there is one monitor for each, however often it is armed."""
    updated = connection.execute(
        sa.update(DRAIN_MONITORS).where(DRAIN_MONITORS.c.pool == subpool).values(due_ms=due_ms)
    )
    if not updated.rowcount:
        connection.execute(sa.insert(DRAIN_MONITORS).values(pool=subpool, due_ms=due_ms))


def disarm_monitor(connection: sa.Connection, subpool: str) -> None:
    """Drop the monitor of a subpool."""
    connection.execute(sa.delete(DRAIN_MONITORS).where(DRAIN_MONITORS.c.pool == subpool))


def hasten_monitors(connection: sa.Connection, due_ms: int) -> None:
    """Let no monitor be later than this."""
    late = DRAIN_MONITORS.c.due_ms > due_ms
    query = sa.select(DRAIN_MONITORS.c.pool).where(late).order_by(DRAIN_MONITORS.c.pool)
    if connection.scalars(query.with_for_update()).all():
        connection.execute(sa.update(DRAIN_MONITORS).where(late).values(due_ms=due_ms))


def list_monitors(connection: sa.Connection) -> dict[str, int]:
    """When each subpool that is being deleted is looked at next."""
    query = sa.select(DRAIN_MONITORS).order_by(DRAIN_MONITORS.c.due_ms, DRAIN_MONITORS.c.pool)
    return {row.pool: row.due_ms for row in connection.execute(query)}


# Rows


def find_cohort(connection: sa.Connection, name: str) -> PoolCohort | None:
    """The cohort of a name."""
    query = sa.select(COHORTS).where(COHORTS.c.name == name)
    return read_first(connection, query, PoolCohort)


def lock_cohort(connection: sa.Connection, name: str) -> PoolCohort | None:
    """The same, locked until the transaction ends."""
    query = sa.select(COHORTS).where(COHORTS.c.name == name).with_for_update()
    return read_first(connection, query, PoolCohort)


def list_cohorts(connection: sa.Connection) -> list[PoolCohort]:
    """All cohorts, by name."""
    return read_all(connection, sa.select(COHORTS).order_by(COHORTS.c.name), PoolCohort)


def insert_cohort(connection: sa.Connection, cohort: PoolCohort) -> None:
    """Add a cohort."""
    connection.execute(sa.insert(COHORTS).values(**msgspec.to_builtins(cohort)))


def update_cohort(connection: sa.Connection, cohort: PoolCohort) -> None:
    """Replace the declaration of a cohort."""
    values = msgspec.to_builtins(cohort)
    connection.execute(sa.update(COHORTS).where(COHORTS.c.name == cohort.name).values(**values))


def delete_cohort(connection: sa.Connection, name: str) -> None:
    """Delete a cohort, even where others name it."""
    connection.execute(sa.delete(COHORTS).where(COHORTS.c.name == name))


def _one(connection: sa.Connection, query: sa.Select[Any], **values: str) -> Pool | Subpool | None:
    row = connection.execute(query, values).mappings().first()
    if row is None:
        return None
    return _pool(row) if row["parent_pool"] is None else _subpool(row)


def _values(pool: Pool) -> dict[str, Any]:
    config: dict[str, Any] = msgspec.to_builtins(pool)
    return {
        "name": pool.name,
        "gpu_guarantee": pool.gpu.guarantee,
        "gpu_maximum": pool.gpu.maximum,
        "gpu_weight": pool.gpu.weight,
        **{column: config[column] for column in _COLUMNS},
        "config": {key: value for key, value in config.items() if key not in _APART},
    }


def _pool(row: sa.RowMapping) -> Pool:
    gpu = GpuQuota(row["gpu_guarantee"], row["gpu_maximum"], row["gpu_weight"])
    apart = {column: row[column] for column in _COLUMNS}
    values = {**(row["config"] or {}), **apart, "name": row["name"]}
    return msgspec.structs.replace(convert(values, Pool), gpu=gpu)


def _subpool(row: sa.RowMapping) -> Subpool:
    state = SubpoolState(row["subpool_state"])
    return Subpool(row["parent_pool"], row["subpool_name"], state, row["gpu_guarantee"])
