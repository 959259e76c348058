"""The quota tree that pools, subpools, cohorts and nodes make: pure, and the only place that knows.

    osmo-default-{ns}                       own quota: the GPUs there are, less all quotas below
    ├── an organisation's cohorts           as deep as they are declared
    └── osmo-pool-{ns}-{pool}               no quota of its own; borrows and lends as configured
        ├── osmo-pool-{ns}-{pool}--_shared  what the subpools leave; also has the work of those
        │                                   that are being deleted, waiting or running
        └── osmo-pool-{ns}-{pool}--{sub}    its quota; 0 and empty while it is being deleted

The quota of an ACTIVE subpool is a promise: what it does not use is kept from the shared part.
Pools that share no nodes are counted as different flavors.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import msgspec

from bough.control.pools.pool_setup import PoolSetup, node_sets, unallocated
from bough.model.names import SHARED, NodeId, QueueName
from bough.model.pool import OfferedNode, Pool, PoolCohort
from bough.model.quota import (
    Cohort,
    FlavorQuotas,
    FlavorResource,
    Promise,
    Queue,
    Quota,
    ResourceGroup,
)
from bough.model.subpool import Subpool, SubpoolState
from bough.model.workload import Flavor

GPU = "gpu"
#: The only flavor, where all pools share the nodes.
DEFAULT_FLAVOR = "default"


class QueueRow(msgspec.Struct, frozen=True):
    """A node of the tree as administrators see it."""

    name: str
    parent: str | None
    #: Only a leaf takes work.
    leaf: bool
    #: `None`: no limit.
    quota: int | None
    #: Everything that may be used at once.
    limit: int | None = None
    weight: int = 1
    #: The pool or subpool whose work is counted here, or below.
    pool: str | None = None
    state: str | None = None


class QuotaForest(msgspec.Struct, frozen=True):
    """The tree in the core's types, with look-ups by pool and node."""

    cohorts: tuple[Cohort, ...]
    queues: tuple[Queue, ...]
    flavors: tuple[Flavor, ...]
    rows: tuple[QueueRow, ...]
    #: The leaf in which the work of a pool or a visible subpool is counted, by the name that
    #: people submit to.
    leaves: dict[str, str]
    #: By pool, not subpool; and by node.
    flavor_of_pool: dict[str, str]
    flavor_of_node: dict[NodeId, str]

    def amount(self, pool: str, gpus: int) -> dict[FlavorResource, int]:
        """GPUs of a pool, as the tree counts them."""
        return {FlavorResource(self.flavor_of_pool[pool], GPU): gpus}


def derive(config: PoolSetup, namespace: str, prefix: str = "osmo") -> QuotaForest:
    """Make the tree. Same config, same tree."""
    return _Derivation(config, QueueName(namespace, prefix=prefix)).forest()


class _Derivation:
    """What is shared by the steps that make the tree."""

    def __init__(self, config: PoolSetup, root: QueueName) -> None:
        self.config = config
        self.root = root
        sets = node_sets(config)
        alone = len(sets) <= 1
        self.flavor_of_pool: dict[str, str] = {}
        self.flavor_of_node: dict[NodeId, str] = {}
        self.capacity: dict[str, int] = {}
        self.nominal: dict[str, int] = {}
        for members, nodes in sets:
            flavor = DEFAULT_FLAVOR if alone else members[0].name
            self._count(flavor, members, nodes)
        self.own = self._own_quotas()

    def _count(
        self, flavor: str, members: tuple[Pool, ...], nodes: tuple[OfferedNode, ...]
    ) -> None:
        """What each pool of a node set has; those without limit have what the others leave."""
        capacity = sum(node.gpus for node in nodes)
        limited = sum(pool.gpu.guarantee or 0 for pool in members)
        self.capacity[flavor] = capacity
        for node in nodes:
            self.flavor_of_node[node.id] = flavor
        for pool in members:
            self.flavor_of_pool[pool.name] = flavor
            guarantee = pool.gpu.guarantee
            if guarantee is None:
                guarantee = max(0, capacity - limited)
                if pool.gpu.maximum is not None:
                    guarantee = min(guarantee, pool.gpu.maximum)
            self.nominal[pool.name] = guarantee

    def _own_quotas(self) -> dict[str, int]:
        """The root's own quota, by flavor: physical capacity minus all quotas below it."""
        own = dict(self.capacity)
        for pool, flavor in self.flavor_of_pool.items():
            own[flavor] -= self.nominal[pool]
        for cohort in self.config.cohorts:
            flavors = self._flavors_below(cohort.name)
            if flavors:
                own[flavors[0]] -= cohort.quota
        return own

    def forest(self) -> QuotaForest:
        cohorts = [self._root(), *map(self._cohort, self.config.cohorts)]
        queues: list[Queue] = []
        rows = [self._root_row(), *map(self._cohort_row, self.config.cohorts)]
        leaves: dict[str, str] = {}
        for pool in self.config.pools:
            subpools = self.config.subpools_of(pool.name)
            cohorts.append(self._container(pool))
            rows.append(self._container_row(pool))
            shared = self._queue(pool, SHARED)
            for leaf, row in self._leaves(pool, [each for each in subpools if each.visible]):
                queues.append(leaf)
                rows.append(row)
                drains = row.state == SubpoolState.DELETING
                leaves[row.pool or ""] = shared if drains else leaf.name
        return QuotaForest(
            cohorts=tuple(cohorts),
            queues=tuple(queues),
            flavors=tuple(Flavor(name) for name in sorted(self.capacity)),
            rows=tuple(rows),
            leaves=leaves,
            flavor_of_pool=self.flavor_of_pool,
            flavor_of_node=self.flavor_of_node,
        )

    # Inner nodes

    def _root(self) -> Cohort:
        quotas = {flavor: Quota(own) for flavor, own in sorted(self.own.items())}
        return Cohort(str(self.root), None, _groups(quotas))

    def _root_row(self) -> QueueRow:
        return QueueRow(str(self.root), None, leaf=False, quota=None)

    def _cohort(self, cohort: PoolCohort) -> Cohort:
        flavors = self._flavors_below(cohort.name)
        quotas = {
            flavor: Quota(
                cohort.quota if number == 0 else 0, cohort.borrowing_limit, cohort.lending_limit
            )
            for number, flavor in enumerate(flavors)
        }
        parent = cohort.parent or str(self.root)
        return Cohort(cohort.name, parent, _groups(quotas), Fraction(cohort.weight))

    def _cohort_row(self, cohort: PoolCohort) -> QueueRow:
        parent = cohort.parent or str(self.root)
        return QueueRow(cohort.name, parent, leaf=False, quota=cohort.quota, weight=cohort.weight)

    def _container(self, pool: Pool) -> Cohort:
        borrowing = _least(pool.borrowing_limit, self._borrowing(pool, self.nominal[pool.name]))
        quota = Quota(0, borrowing, pool.lending_limit)
        return Cohort(
            self._queue(pool),
            pool.cohort or str(self.root),
            _groups({self.flavor_of_pool[pool.name]: quota}),
            Fraction(pool.gpu.weight),
        )

    def _container_row(self, pool: Pool) -> QueueRow:
        return QueueRow(
            self._queue(pool),
            pool.cohort or str(self.root),
            leaf=False,
            quota=pool.gpu.guarantee,
            limit=pool.gpu.maximum,
            weight=pool.gpu.weight,
            pool=pool.name,
        )

    # Leaves

    def _leaves(self, pool: Pool, subpools: list[Subpool]) -> Iterable[tuple[Queue, QueueRow]]:
        left = unallocated(pool, subpools)
        nominal = self.nominal[pool.name] if left is None else left
        active = any(each.state is SubpoolState.ACTIVE for each in subpools)
        shared = self._leaf(pool, SHARED, nominal, Promise.REST if active else Promise.NONE)
        yield shared, self._leaf_row(pool, SHARED, left, pool.name)
        for each in subpools:
            kept = each.state is SubpoolState.ACTIVE
            promise = Promise.KEPT if kept else Promise.NONE
            row = self._leaf_row(pool, each.subpool, each.counted, each.name, each.state.value)
            yield self._leaf(pool, each.subpool, each.counted, promise), row

    def _leaf(self, pool: Pool, leaf: str, nominal: int, promise: Promise) -> Queue:
        quota = Quota(nominal, self._borrowing(pool, nominal))
        return Queue(
            self._queue(pool, leaf),
            self._queue(pool),
            _groups({self.flavor_of_pool[pool.name]: quota}),
            Fraction(pool.gpu.weight),
            promise=promise,
        )

    def _leaf_row(
        self, pool: Pool, leaf: str, quota: int | None, name: str, state: str | None = None
    ) -> QueueRow:
        return QueueRow(
            self._queue(pool, leaf),
            self._queue(pool),
            leaf=True,
            quota=quota,
            limit=pool.gpu.maximum,
            weight=pool.gpu.weight,
            pool=name,
            state=state,
        )

    # Small things

    def _queue(self, pool: Pool, leaf: str | None = None) -> str:
        return str(msgspec.structs.replace(self.root, pool=pool.name, leaf=leaf))

    def _borrowing(self, pool: Pool, nominal: int) -> int | None:
        """The pool's maximum as a limit on borrowing: a limit is nominal plus borrowing limit."""
        return None if pool.gpu.maximum is None else max(0, pool.gpu.maximum - nominal)

    def _flavors_below(self, cohort: str) -> list[str]:
        """The flavors of all pools below a cohort; of all pools, while it has none."""
        below = {cohort}
        while True:
            more = {each.name for each in self.config.cohorts if each.parent in below} - below
            if not more:
                break
            below |= more
        found = {
            self.flavor_of_pool[pool.name] for pool in self.config.pools if pool.cohort in below
        }
        return sorted(found or self.capacity)


def _groups(quotas: dict[str, Quota]) -> tuple[ResourceGroup, ...]:
    if not quotas:
        return ()
    flavors = tuple(FlavorQuotas(flavor, {GPU: quota}) for flavor, quota in quotas.items())
    return (ResourceGroup((GPU,), flavors),)


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
