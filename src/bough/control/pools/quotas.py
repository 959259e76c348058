"""What pools have, use and have left; what the nodes have; the queues as administrators see them.

Every answer is from one moment, so that what is left is always what there is minus what is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from bough.api.pools import DrainReport
from bough.control.config.policy import PolicyReader
from bough.control.people.access import authorise
from bough.control.pools.node_shares import QueueStanding, Standings
from bough.control.pools.pool_setup import (
    PoolSetup,
    node_sets,
    offline_reason,
    read_pool_setup,
    status_of,
    unallocated,
)
from bough.control.pools.pools import PoolView
from bough.control.pools.quota_tree import GPU, QueueRow, QuotaForest, derive
from bough.control.pools.startable_gpus import CanStart, startable
from bough.control.pools.subpool_drain import drain_of
from bough.control.site import Site
from bough.core.quota.fair_now import fair_now, write_part
from bough.core.quota.taken_share import Shares
from bough.core.quota.tree import QuotaTree
from bough.errors import NotFound
from bough.model.access import Action, Actor
from bough.model.names import NodeId
from bough.model.pool import OfferedNode, Pool, PoolStatus
from bough.model.quota import NodeKind, TreeNode, quotas_of
from bough.model.subpool import SubpoolState
from bough.model.workflow import TaskStatus
from bough.store import nodes as node_store
from bough.store import tasks as task_store
from bough.store.tasks import Use


class Usage(msgspec.Struct, frozen=True):
    """The six numbers of a row, or of their sum."""

    #: GPUs of HIGH and NORMAL that run; what is guaranteed; and the difference, which is negative
    #: while there is something to drain.
    quota_used: int
    quota_limit: int
    quota_free: int
    #: GPUs of everything that runs, LOW too.
    total_usage: int
    #: GPUs of the nodes, and those of them that are idle.
    total_capacity: int
    total_free: int


class PoolRow(PoolView, frozen=True, kw_only=True):
    """A pool, or a subpool, with its numbers."""

    usage: Usage
    #: What the pool has together with its subpools, where it is divided.
    quota_total: int | None = None
    #: GPUs of HIGH and NORMAL that can really start now, and why not all that is left on paper.
    can_start: int = 0
    can_start_note: str = ""


class NodeSet(msgspec.Struct, frozen=True):
    """Pools that share nodes, each followed by its subpools."""

    rows: tuple[PoolRow, ...]


class QuotaReport(msgspec.Struct, frozen=True):
    """All of it."""

    node_sets: tuple[NodeSet, ...]
    total: Usage


class QueueUse(msgspec.Struct, frozen=True):
    """A node of the quota tree with what is used at it and below it."""

    row: QueueRow
    used: int
    used_guaranteed: int
    #: What it is compared by: what it uses beyond its own quota of what its parent could lend, for
    #: its weight; or by the policy.
    share: str
    #: What is its own, and what it could have now: by the policy, or if idle capacity were divided
    #: by weight. `None`: the policy divides nothing beforehand.
    deserved: int
    fair: int | float | None


def pool_quotas(site: Site, actor: Actor, names: Sequence[str] | None = None) -> QuotaReport:
    """What pools have and use; `None`: all. A pool brings its subpools, a subpool only itself."""
    authorise(actor, Action.POOL_LIST, names=site.role_names)
    now_ms = site.clock.now_ms()
    every = site.kept.answer(site.store, "pool quotas", now_ms, partial(_read_quotas, site, now_ms))
    if names is None:
        return every
    sets = _selected(list(every.node_sets), names)
    return QuotaReport(tuple(sets), _total(sets))


def _read_quotas(site: Site, now_ms: int) -> QuotaReport:
    with site.store.read() as connection:
        config = read_pool_setup(connection)
        uses = task_store.uses(connection)
        held = task_store.node_uses(connection)
        backends = node_store.backends(connection)
        drains = {
            each.name: drain_of(connection, each)
            for each in config.subpools
            if each.state is SubpoolState.DELETING
        }
    statuses = {pool.name: status_of(pool, backends, now_ms) for pool in config.pools}
    offline = {pool.name: offline_reason(pool.backend, backends, now_ms) for pool in config.pools}
    can_start = startable(site, config, uses, held)
    sets: list[NodeSet] = []
    for members, nodes in node_sets(config):
        rows = _rows(config, members, nodes, uses, held, statuses)
        completed = (_completed(row, can_start, drains, offline) for row in rows)
        sets.append(NodeSet(tuple(completed)))
    return QuotaReport(tuple(sets), _total(sets))


def list_queues(
    site: Site, actor: Actor, decided_by: Callable[[str], Standings] | None = None
) -> list[QueueUse]:
    """The whole quota tree, hidden leaves too, in order.

    decided_by:  for a user, what the loop decides by, where its policy works out shares.
    """
    authorise(actor, Action.QUEUE_LIST, names=site.role_names)
    read = partial(_read_queues, site)
    every = site.kept.answer(site.store, "queues", site.clock.now_ms(), read)
    if decided_by is None or not every.works_out_shares:
        return list(every.queues)
    standings = {each.node: each for each in decided_by(actor.name)}
    return [_decided(each, standings.get(_node_of(each.row))) for each in every.queues]


class _Queues(msgspec.Struct, frozen=True):
    """All queues at one moment, by weights alone."""

    queues: tuple[QueueUse, ...]
    #: Whether the policy works out shares.
    works_out_shares: bool


def _read_queues(site: Site) -> _Queues:
    with site.store.read() as connection:
        config = read_pool_setup(connection)
        uses = task_store.uses(connection)
        asked = task_store.waiting_gpus(connection)
        policy = PolicyReader().read(connection)
    forest = derive(config, site.namespace, site.prefix)
    used, guaranteed = _used_below(forest, uses)
    tree = _tree_with_use(forest, uses)
    shares, portions = Shares(tree), fair_now(tree, _waiting_by_queue(forest, asked))
    found: list[QueueUse] = []
    for row in forest.rows:
        node = _node_of(row)
        portion = next(iter(portions.get(node, ())), None)
        found.append(
            QueueUse(
                row,
                used.get(row.name, 0),
                guaranteed.get(row.name, 0),
                shares.of(node).text,
                0 if portion is None else portion.deserved,
                0 if portion is None else write_part(portion.fair),
            )
        )
    return _Queues(tuple(found), policy.works_out_shares)


def _decided(queue: QueueUse, standing: QueueStanding | None) -> QueueUse:
    """The same by the loop's policy, where that computes shares."""
    if standing is None:
        return queue
    return msgspec.structs.replace(
        queue,
        share=standing.share,
        deserved=queue.deserved if standing.deserved is None else standing.deserved,
        fair=standing.fair,
    )


def _node_of(row: QueueRow) -> TreeNode:
    return TreeNode(NodeKind.QUEUE if row.leaf else NodeKind.COHORT, row.name)


def _used_below(forest: QuotaForest, uses: Iterable[Use]) -> tuple[dict[str, int], dict[str, int]]:
    """By node, what is held at it and below it; and what of that is guaranteed."""
    used: dict[str, int] = {}
    guaranteed: dict[str, int] = {}
    parents = {row.name: row.parent for row in forest.rows}
    for use in uses:
        node = forest.leaves.get(use.pool)
        seen: set[str] = set()
        while node is not None and node not in seen:
            seen.add(node)
            used[node] = used.get(node, 0) + use.gpus
            if use.guaranteed:
                guaranteed[node] = guaranteed.get(node, 0) + use.gpus
            node = parents.get(node)
    return used, guaranteed


def _tree_with_use(forest: QuotaForest, uses: Iterable[Use]) -> QuotaTree:
    """The quota tree in the core's words, with everything that is held."""
    tree = QuotaTree.of(forest.cohorts, forest.queues)
    listed = {each.name: next(iter(quotas_of(each.resource_groups))) for each in forest.queues}
    for use in uses:
        leaf = forest.leaves.get(use.pool)
        if leaf is not None:
            tree.add_usage(leaf, {listed[leaf]: use.gpus})
    return tree


def _waiting_by_queue(forest: QuotaForest, asked: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """By leaf of the tree: GPUs that waiting tasks ask for."""
    found: dict[str, dict[str, int]] = {}
    for pool, gpus in asked.items():
        leaf = forest.leaves.get(pool)
        if leaf is not None:
            line = found.setdefault(leaf, {GPU: 0})
            line[GPU] += gpus
    return found


def _rows(
    config: PoolSetup,
    members: Iterable[Pool],
    nodes: Sequence[OfferedNode],
    uses: list[Use],
    held: dict[NodeId, int],
    statuses: dict[str, PoolStatus],
) -> Iterable[PoolRow]:
    capacity = sum(node.gpus for node in nodes)
    free = capacity - sum(held.get(node.id, 0) for node in nodes)
    running: dict[str, list[Use]] = {}
    for use in uses:
        if use.status is TaskStatus.RUNNING:
            running.setdefault(use.pool, []).append(use)
    for pool in members:
        subpools = [each for each in config.subpools_of(pool.name) if each.visible]
        left = unallocated(pool, subpools)
        quota = capacity if left is None else left
        yield PoolRow(
            pool.name,
            pool,
            statuses[pool.name],
            usage=_usage(running.get(pool.name, []), quota, capacity, free),
            quota_total=pool.gpu.guarantee if subpools else None,
        )
        for each in subpools:
            usage = _usage(running.get(each.name, []), each.counted, capacity, free)
            yield PoolRow(each.name, pool, statuses[pool.name], each, usage=usage)


def _completed(
    row: PoolRow,
    can_start: Mapping[str, CanStart],
    drains: Mapping[str, DrainReport],
    offline: Mapping[str, str | None],
) -> PoolRow:
    found = can_start[row.name]
    return msgspec.structs.replace(
        row,
        can_start=found.gpus,
        can_start_note=found.note if found.gpus < row.usage.quota_free else "",
        drain=drains.get(row.name),
        offline=offline[row.pool.name],
    )


def _usage(running: list[Use], limit: int, capacity: int, free: int) -> Usage:
    used = sum(use.gpus for use in running if use.guaranteed)
    total = sum(use.gpus for use in running)
    return Usage(used, limit, limit - used, total, capacity, free)


def _selected(sets: list[NodeSet], names: Sequence[str]) -> list[NodeSet]:
    wanted = set(names)
    known = {row.name for each in sets for row in each.rows}
    unknown = [name for name in dict.fromkeys(names) if name not in known]
    if unknown:
        raise NotFound(f"Pools {', '.join(unknown)} not found")
    chosen = (
        tuple(
            row
            for row in each.rows
            if row.name in wanted or (row.subpool is not None and row.subpool.parent in wanted)
        )
        for each in sets
    )
    return [NodeSet(rows) for rows in chosen if rows]


def _total(sets: list[NodeSet]) -> Usage:
    """The quota columns add up over rows; nodes are counted once for each node set."""
    rows = [row.usage for each in sets for row in each.rows]
    once = [each.rows[0].usage for each in sets if each.rows]
    return Usage(
        sum(row.quota_used for row in rows),
        sum(row.quota_limit for row in rows),
        sum(row.quota_free for row in rows),
        sum(row.total_usage for row in rows),
        sum(row.total_capacity for row in once),
        sum(row.total_free for row in once),
    )


def gpus_to_drain(report: QuotaReport) -> int:
    """GPUs that are used beyond their quota, and so still to drain."""
    rows = [row.usage for each in report.node_sets for row in each.rows]
    return sum(-row.quota_free for row in rows if row.quota_free < 0)


def subpools_by_state(site: Site) -> dict[SubpoolState, int]:
    """How many subpools are in each state, for metrics."""
    with site.store.read() as connection:
        states = [each.state for each in read_pool_setup(connection).subpools]
    return {state: states.count(state) for state in SubpoolState}
