"""Remedies in the words of pools: quotas, what is lent, priorities, subpools of one pool.

Remedies change what people set; the quota tree is derived from that, as for every snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

import msgspec

from bough.control.pools.pool_setup import PoolSetup, uses
from bough.control.pools.quota_tree import derive
from bough.core.explain.changed_snapshot import new_nodes
from bough.core.explain.declared_snapshot import Source
from bough.core.explain.judge import find_gang
from bough.model.gang import Gang
from bough.model.names import SHARED, QueueName, canonical_name
from bough.model.pool import OfferedNode, Pool, PoolCohort
from bough.model.quota import FlavorResource, TreeNode
from bough.model.remedy import (
    AddNodes,
    BePreemptible,
    Change,
    Knob,
    Move,
    Raise,
    RaisePriority,
    Step,
    Weigh,
)
from bough.model.snapshot import Snapshot
from bough.model.subpool import Subpool, SubpoolState
from bough.model.workflow import Priority

replace = msgspec.structs.replace
_LENDING_LIMIT = "the lending limit"


class PoolSource(Source):
    """Pools and subpools as they are configured."""

    def __init__(
        self,
        snapshot: Snapshot,
        config: PoolSetup,
        namespace: str,
        prefix: str = "osmo",
        allowed: Collection[str] = (),
    ) -> None:
        """allowed:  other pools to which the user may submit."""
        super().__init__(snapshot)
        self._allowed = allowed
        self._estate = config
        self._namespace = namespace
        self._prefix = prefix

    def take(self, snapshot: Snapshot, workload: str, step: Step) -> Snapshot:
        """What may borrow has the priority LOW; pool and priority are those of a whole workflow."""
        if isinstance(step, BePreemptible):
            step = RaisePriority(Priority.LOW.rank, Priority.LOW.value, preemptible=True)
        if not isinstance(step, (RaisePriority, Move)):
            return super().take(snapshot, workload, step)
        for gang in self._gangs_beside(workload):
            snapshot = super().take(snapshot, gang.name, step)
        return snapshot

    def declare(self, snapshot: Snapshot, steps: Sequence[Step]) -> Snapshot:
        """The tree of the pools as they would be."""
        config = self._estate
        for step in steps:
            if isinstance(step, Raise):
                config = self._raised(config, step)
            elif isinstance(step, Weigh):
                config = self._weighed(config, step)
            elif isinstance(step, AddNodes):
                config = self._with_machines(config, step)
        if config is self._estate:
            return super().declare(snapshot, steps)
        forest = derive(config, self._namespace, self._prefix)
        return replace(snapshot, cohorts=forest.cohorts, queues=forest.queues)

    def can_raise(self, node: TreeNode, what: FlavorResource, knob: Knob) -> bool:
        """Whether a pool has a quota, a maximum or a lending limit that could be higher.

        Of a cohort, its lending limit.
        """
        del what
        pool, subpool = self._owner(node.name)
        if knob is Knob.LENDING:
            lender = pool or self._cohort(node.name)
            return lender is not None and lender.lending_limit is not None
        if pool is None:
            return False
        if knob is Knob.LIMIT:
            return pool.gpu.maximum is not None
        return subpool is not None or pool.gpu.guarantee is not None

    def weight_of(self, node: TreeNode) -> Fraction | None:
        """The weight of a pool, which its parts have too, or of a cohort."""
        pool, _ = self._owner(node.name)
        cohort = self._cohort(node.name)
        if pool is not None:
            return Fraction(pool.gpu.weight)
        return None if cohort is None else Fraction(cohort.weight)

    def queues_for(self, workload: str) -> list[str]:
        """The other parts of its pool, then other pools with the same nodes and platforms."""
        gang = find_gang(self.snapshot, workload)
        pool, _ = (None, None) if gang is None else self._owner(gang.queue)
        if gang is None or pool is None or not self._waits(workload):
            return []
        others = [
            each
            for each in self._estate.pools
            if each.name in self._allowed and self._is_like(each, pool)
        ]
        names = [
            self._queue(each.name, leaf) for each in (pool, *others) for leaf in self._leaves(each)
        ]
        return [name for name in names if name != gang.queue]

    def can_be_preemptible(self, workload: str) -> bool:
        """Whether its workflow can be changed."""
        return self._waits(workload)

    def priorities_for(self, workload: str) -> list[RaisePriority]:
        """HIGH, NORMAL and LOW, as far as they are higher."""
        gang = find_gang(self.snapshot, workload)
        if gang is None or not self._waits(workload):
            return []
        higher = sorted((each for each in Priority if each.rank > gang.priority), key=_rank)
        return [RaisePriority(each.rank, each.value, each.preemptible) for each in higher]

    def _gangs_beside(self, workload: str) -> list[Gang]:
        """All groups of its workflow that are there."""
        workflow = workload.partition("/")[0]
        rows = self.snapshot.gangs.values()
        return [gang for row in rows for gang in row if gang.name.partition("/")[0] == workflow]

    def _waits(self, workload: str) -> bool:
        """Whether no group of its workflow holds GPUs; otherwise it cannot be changed."""
        pods = (pod for gang in self._gangs_beside(workload) for pod in gang.pods)
        return all(pod.node is None or not pod.requests.gpus for pod in pods)

    def _leaves(self, pool: Pool) -> list[str]:
        """The parts of a pool to which work can be submitted."""
        subpools = self._estate.subpools_of(pool.name)
        return [SHARED, *(each.subpool for each in subpools if each.state is SubpoolState.ACTIVE)]

    def _is_like(self, other: Pool, pool: Pool) -> bool:
        """Whether the same pods could run in another pool."""
        if other.name == pool.name or other.enable_maintenance:
            return False
        nodes = ([uses(each, node) for node in self._estate.nodes] for each in (other, pool))
        same_nodes = next(nodes) == next(nodes)
        return same_nodes and (other.backend, other.platforms) == (pool.backend, pool.platforms)

    # How it is told

    def kind_of(self, workload: str) -> str:  # noqa: ARG002
        """A gang is a group of a workflow."""
        return "group"

    def tell_workload(self, name: str, step: Step) -> Iterable[Change]:
        """What a step changes in a workflow."""
        gang = find_gang(self.snapshot, name)
        if gang is not None and isinstance(step, Move):
            before, after = (self._shown(each) for each in (gang.queue, step.queue))
            yield Change("workflow", name.partition("/")[0], "pool", before, after, "pool")
        elif gang is not None and isinstance(step, (BePreemptible, RaisePriority)):
            ranks = {each.rank: each.value for each in Priority}
            lower = isinstance(step, BePreemptible)
            before, after = ranks.get(gang.priority), Priority.LOW.value if lower else step.word
            yield Change("workflow", name.partition("/")[0], "priority", before, after)
        else:
            yield from super().tell_workload(name, step)

    def tell_cluster(self, step: Step) -> Iterable[Change]:
        """What a step changes in pools and subpools."""
        if isinstance(step, Weigh):
            pool, _ = self._owner(step.node.name)
            kind, name = ("cohort", step.node.name) if pool is None else ("pool", pool.name)
            field = "weight" if pool is None else "gpu.weight"
            before = self.written_weight(step)
            yield Change(kind, name, field, before, step.weight, "the weight")
            return
        if not isinstance(step, Raise):
            yield from super().tell_cluster(step)
            return
        raised = self._raised(self._estate, step)
        pairs = zip(self._estate.subpools, raised.subpools, strict=True)
        for before, after in pairs:
            if before != after:
                yield Change(
                    "subpool", before.name, "quota", before.quota, after.quota, "the quota"
                )
        for pool, now in zip(self._estate.pools, raised.pools, strict=True):
            yield from _pool_changes(pool, now)
        for cohort, now in zip(self._estate.cohorts, raised.cohorts, strict=True):
            if cohort != now:
                lent = (cohort.lending_limit, now.lending_limit, _LENDING_LIMIT)
                yield Change("cohort", cohort.name, "lending_limit", *lent)

    # What is raised

    def _raised(self, config: PoolSetup, step: Raise) -> PoolSetup:
        """A subpool never has more than its pool, nor a quota more than the maximum.

        Every step counts from what is set now, so that it can be told by itself.
        """
        pool, subpool = self._owner(step.node.name)
        if step.knob is Knob.LENDING:
            return _lending_more(config, step.by, pool or self._cohort(step.node.name))
        if pool is None:
            return config
        gpu = next(each.gpu for each in config.pools if each.name == pool.name)
        subpools, set_now = config.subpools, pool.gpu
        if step.knob is Knob.LIMIT:
            gpu = replace(gpu, maximum=max(gpu.maximum or 0, (set_now.maximum or 0) + step.by))
        elif subpool is not None:
            subpools = tuple(
                replace(each, quota=each.quota + step.by) if each.name == subpool.name else each
                for each in subpools
            )
            divided = sum(each.counted for each in subpools if each.parent == pool.name)
            if gpu.guarantee is not None:
                gpu = replace(gpu, guarantee=max(gpu.guarantee, divided))
        else:
            raised = (set_now.guarantee or 0) + step.by
            gpu = replace(gpu, guarantee=max(gpu.guarantee or 0, raised))
        if gpu.maximum is not None and gpu.guarantee is not None:
            gpu = replace(gpu, maximum=max(gpu.maximum, gpu.guarantee))
        pools = tuple(
            replace(each, gpu=gpu) if each.name == pool.name else each for each in config.pools
        )
        return replace(config, pools=pools, subpools=subpools)

    def _weighed(self, config: PoolSetup, step: Weigh) -> PoolSetup:
        pool, _ = self._owner(step.node.name)
        if pool is not None:
            pools = (
                replace(each, gpu=replace(each.gpu, weight=step.weight))
                if each.name == pool.name
                else each
                for each in config.pools
            )
            return replace(config, pools=tuple(pools))
        cohorts = (
            replace(each, weight=step.weight) if each.name == step.node.name else each
            for each in config.cohorts
        )
        return replace(config, cohorts=tuple(cohorts))

    def _with_machines(self, config: PoolSetup, step: AddNodes) -> PoolSetup:
        names = config.node_names()
        model = next((each for each in config.nodes if names.of(each.id) == step.like), None)
        if model is None:
            return config
        more: list[OfferedNode] = [
            replace(model, name=node.name, gpus=node.capacity.gpus, cordoned=False)
            for node in new_nodes(self.snapshot, step)
        ]
        return replace(config, nodes=(*config.nodes, *more))

    def _owner(self, queue: str) -> tuple[Pool | None, Subpool | None]:
        """The pool that a queue is of and, for its own leaf, the subpool."""
        name = QueueName.parse(queue, self._namespace, self._prefix)
        if name is None or name.pool is None:
            return None, None
        pool = next((each for each in self._estate.pools if each.name == name.pool), None)
        if pool is None or name.leaf in (None, SHARED):
            return pool, None
        of_pool = self._estate.subpools_of(pool.name)
        return pool, next((each for each in of_pool if each.subpool == name.leaf), None)

    def _cohort(self, name: str) -> PoolCohort | None:
        return next((each for each in self._estate.cohorts if each.name == name), None)

    def _queue(self, pool: str, leaf: str) -> str:
        return str(QueueName(self._namespace, pool, leaf, prefix=self._prefix))

    def _shown(self, queue: str) -> str:
        """The name under which work is submitted."""
        name = QueueName.parse(queue, self._namespace, self._prefix)
        if name is None or name.pool is None:
            return queue
        shared = name.leaf is None or name.leaf == SHARED
        return name.pool if shared else canonical_name(name.pool, name.leaf or "")


def _rank(priority: Priority) -> int:
    return priority.rank


def _lending_more(config: PoolSetup, by: int, lender: Pool | PoolCohort | None) -> PoolSetup:
    if lender is None:
        return config
    more = (lender.lending_limit or 0) + by
    if isinstance(lender, Pool):
        pools = (
            replace(each, lending_limit=more) if each.name == lender.name else each
            for each in config.pools
        )
        return replace(config, pools=tuple(pools))
    cohorts = (
        replace(each, lending_limit=more) if each.name == lender.name else each
        for each in config.cohorts
    )
    return replace(config, cohorts=tuple(cohorts))


def _pool_changes(pool: Pool, now: Pool) -> Iterable[Change]:
    fields = (
        ("gpu.guarantee", "the quota", pool.gpu.guarantee, now.gpu.guarantee),
        ("gpu.maximum", "the maximum", pool.gpu.maximum, now.gpu.maximum),
        ("lending_limit", _LENDING_LIMIT, pool.lending_limit, now.lending_limit),
    )
    for field, word, before, after in fields:
        if before != after:
            yield Change("pool", pool.name, field, before, after, word)
