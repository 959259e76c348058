"""What waits in each part of a pool, how much it needs, and what a new division would do to it.

A pool has one line for each ACTIVE subpool and one for its shared part, in which the work of
subpools that are being deleted waits too. Only HIGH and NORMAL are counted: LOW may borrow, so no
quota holds it up for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from bough.api.pools import AffectedWorkflow
from bough.control.gangs_of_groups import needed_gpus
from bough.control.pools.pool_setup import PoolSetup, node_sets, unallocated
from bough.model.pool import Pool
from bough.model.subpool import Subpool, SubpoolState
from bough.model.workflow import Priority, TaskStatus
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store

#: How many workflows one answer names; the others are counted.
MOST_NAMED = 1_000


class Waiter(msgspec.Struct, frozen=True):
    """A group of HIGH or NORMAL that has no GPUs yet."""

    workflow_id: str
    group: str
    #: A pool, or a subpool by its canonical name.
    pool: str
    priority: Priority
    #: What it needs to start.
    gpus: int
    submitted_ms: int
    #: Whether it waits for GPUs, and not for other groups of its workflow.
    queued: bool = True

    @property
    def place(self) -> tuple[int, int, str, str]:
        """Its place in the line."""
        return (-self.priority.rank, self.submitted_ms, self.workflow_id, self.group)


class PoolPart(NamedTuple):
    """A part of a pool that has one line: an ACTIVE subpool, or the shared part."""

    #: As people call it: the pool's own name for the shared part.
    name: str
    #: Its quota; nothing larger can ever start there.
    quota: int
    #: What can start there now, negative while there is something to drain.
    left: int
    line: tuple[Waiter, ...]
    #: Whether that quota is the pool's own, and not what others leave.
    limited: bool = True


class Consequences(msgspec.Struct, frozen=True):
    """What a new division of a pool does to those that wait; the first in line come first."""

    #: Workflows that can no longer start after the new division.
    stranded: list[AffectedWorkflow] = []
    #: Workflows that wait until more GPUs are free than before.
    delayed: list[AffectedWorkflow] = []
    stranded_count: int = 0
    delayed_count: int = 0


def consequences(
    connection: sa.Connection, pool: str, before: PoolSetup, after: PoolSetup
) -> Consequences:
    """What the change from one division of a pool to another does to what waits."""
    waiters = read_waiters(connection, [pool, *(each.name for each in after.subpools_of(pool))])
    used = guaranteed_uses(connection)
    was = {
        _key(waiter): short
        for part in parts_of(before, pool, used, waiters)
        for waiter, short in shortages(part)
    }
    stranded: dict[str, AffectedWorkflow] = {}
    delayed: dict[str, AffectedWorkflow] = {}
    for part in parts_of(after, pool, used, waiters):
        for waiter, short in shortages(part):
            # Groups that wait for other groups were in no line.
            earlier = was.get(_key(waiter), 0)
            if short is None and earlier is not None:
                text = say_stranded(part.name, part.quota, limited=part.limited)
                stranded.setdefault(waiter.workflow_id, _affected(waiter, text))
            elif short is not None and earlier is not None and short > earlier:
                more = f"waits until {gpus_text(short)} more are free in {part.name}, not {earlier}"
                delayed.setdefault(waiter.workflow_id, _affected(waiter, more))
    for name in stranded:
        delayed.pop(name, None)
    return Consequences(
        list(stranded.values())[:MOST_NAMED],
        list(delayed.values())[:MOST_NAMED],
        len(stranded),
        len(delayed),
    )


def all_together(several: Iterable[Consequences]) -> Consequences:
    """The consequences for several pools together."""
    several = tuple(several)
    return Consequences(
        [each for found in several for each in found.stranded][:MOST_NAMED],
        [each for found in several for each in found.delayed][:MOST_NAMED],
        sum(found.stranded_count for found in several),
        sum(found.delayed_count for found in several),
    )


def parts_of(
    config: PoolSetup, pool: str, used: Mapping[str, int], waiters: Iterable[Waiter]
) -> list[PoolPart]:
    """The parts of a pool with their lines; without a quota it has what the others leave."""
    found = next((each for each in config.pools if each.name == pool), None)
    if found is None:
        return []
    if found.gpu.guarantee is None:
        return [_unlimited_part(config, found, used, waiters)]
    subpools = [each for each in config.subpools_of(pool) if each.visible]
    active = {each.name: each for each in subpools if each.state is SubpoolState.ACTIVE}
    names = [pool, *(each.name for each in subpools)]
    room = found.gpu.guarantee - sum(used.get(name, 0) for name in names)
    lines: dict[str, list[Waiter]] = {}
    for waiter in waiters:
        lines.setdefault(waiter.pool if waiter.pool in active else pool, []).append(waiter)
    parts = [_shared_part(found, subpools, room, used, lines.get(pool, []))]
    for name, subpool in active.items():
        left = min(room, subpool.quota - used.get(name, 0))
        parts.append(PoolPart(name, subpool.quota, left, _in_line(lines.get(name, []))))
    return parts


def shortages(part: PoolPart) -> Iterable[tuple[Waiter, int | None]]:
    """How many GPUs more must be free before each waiter starts; `None`: it never can.

    What can never start is passed by those behind it, and what waits for other groups is in no
    line yet.
    """
    ahead = 0
    for waiter in part.line:
        if waiter.gpus > part.quota:
            yield waiter, None
        elif waiter.queued:
            ahead += waiter.gpus
            yield waiter, max(0, ahead - part.left) if waiter.gpus else 0


def read_waiters(connection: sa.Connection, pools: Sequence[str]) -> list[Waiter]:
    """All groups of HIGH and NORMAL in some pools and subpools that have no GPUs yet."""
    workflows = {
        each.uuid: each
        for each in workflow_store.alive_in(connection, pools)
        if not each.priority.preemptible
    }
    return [
        Waiter(
            workflows[group.workflow_uuid].workflow_id,
            group.name,
            workflows[group.workflow_uuid].pool,
            workflows[group.workflow_uuid].priority,
            needed_gpus(group.spec),
            workflows[group.workflow_uuid].submitted_ms,
            group.status is not TaskStatus.WAITING,
        )
        for group in task_store.groups_of(connection, list(workflows))
        if not group.status.finished and not group.status.holds_node
    ]


def guaranteed_uses(connection: sa.Connection) -> dict[str, int]:
    """GPUs of HIGH and NORMAL that are held, by pool and subpool."""
    found: dict[str, int] = {}
    for use in task_store.uses(connection):
        if use.guaranteed:
            found[use.pool] = found.get(use.pool, 0) + use.gpus
    return found


def _unlimited_part(
    config: PoolSetup, pool: Pool, used: Mapping[str, int], waiters: Iterable[Waiter]
) -> PoolPart:
    """A pool without a quota, which shares what the others leave with all that have none."""
    sharing = next(found for found in node_sets(config) if pool in found[0])
    gpus = sum(machine.gpus for machine in sharing[1])
    rest = max(0, gpus - sum(each.gpu.guarantee or 0 for each in sharing[0]))
    free = [each.name for each in sharing[0] if each.gpu.guarantee is None]
    room = rest - sum(used.get(name, 0) for name in free)
    return PoolPart(pool.name, rest, room, _in_line(waiters), limited=False)


def _shared_part(
    pool: Pool,
    subpools: list[Subpool],
    room: int,
    used: Mapping[str, int],
    line: list[Waiter],
) -> PoolPart:
    """What subpools use above their quota is not left to the shared part, either."""
    unused = sum(
        max(0, each.quota - used.get(each.name, 0))
        for each in subpools
        if each.state is SubpoolState.ACTIVE
    )
    quota = unallocated(pool, subpools)
    return PoolPart(pool.name, quota or 0, room - unused, _in_line(line))


def say_stranded(pool: str, quota: int, *, limited: bool = True) -> str:
    """Why something larger than its part of a pool cannot start."""
    if not limited:
        return f"cannot start: other pools leave {pool} only {gpus_text(quota)}"
    return f"cannot start: {pool} has a quota of {gpus_text(quota)}"


def gpus_text(number: int) -> str:
    """An amount of GPUs in words."""
    return "1 GPU" if number == 1 else f"{number} GPUs"


def _in_line(waiters: Iterable[Waiter]) -> tuple[Waiter, ...]:
    return tuple(sorted(waiters, key=lambda waiter: waiter.place))


def _affected(waiter: Waiter, message: str) -> AffectedWorkflow:
    return AffectedWorkflow(
        waiter.workflow_id, waiter.group, waiter.pool, waiter.priority, waiter.gpus, message
    )


def _key(waiter: Waiter) -> tuple[str, str]:
    return waiter.workflow_id, waiter.group
