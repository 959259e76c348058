"""Everything that the quota tree is made of, read at one moment; whether a pool can run work."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa

from bough.control.config.pod_templates import read_templates
from bough.control.pools.pod_placement import keeping_off, placements
from bough.model.names import NodeNames
from bough.model.pod_placement import PoolPlacement
from bough.model.pool import BackendRecord, OfferedNode, Pool, PoolCohort, PoolStatus
from bough.model.subpool import Subpool
from bough.store import nodes as node_store
from bough.store import pools

#: A backend that was silent for longer counts as away.
HEARTBEAT_WINDOW_MS = 2 * 60 * 1_000


class PoolSetup(msgspec.Struct, frozen=True):
    """Pools, how they are divided, what stands above them, and the nodes below."""

    pools: tuple[Pool, ...] = ()
    subpools: tuple[Subpool, ...] = ()
    cohorts: tuple[PoolCohort, ...] = ()
    nodes: tuple[OfferedNode, ...] = ()
    #: By backend on whose nodes nothing can be started now: why.
    faults: dict[str, str] = {}
    #: By pool whose pod templates say something about it: where its tasks can run.
    placements: dict[str, PoolPlacement] = {}

    def takes_work(self, node: OfferedNode) -> bool:
        """Whether something new can start on a node."""
        return not (node.cordoned or self.closed(node) or node.backend in self.faults)

    def closed(self, node: OfferedNode) -> str:
        """Why nothing can start on a node, whatever an administrator says; empty: it can."""
        if node.closed or not node.taints:
            return node.closed
        allowed = (
            self.placements[pool.name]
            for pool in self.pools
            if pool.name in self.placements and uses(pool, node)
        )
        taint = keeping_off(node, allowed)
        return "" if taint is None else f"It has the taint {taint.key}:{taint.effect.value}."

    def subpools_of(self, pool: str) -> list[Subpool]:
        """The subpools of a pool, by name, archived ones too."""
        return [each for each in self.subpools if each.parent == pool]

    def node_names(self) -> NodeNames:
        """How sentences and snapshots call the nodes."""
        return NodeNames(each.id for each in self.nodes)


def read_pool_setup(connection: sa.Connection) -> PoolSetup:
    """Read it all."""
    found = tuple(pools.list_pools(connection))
    return PoolSetup(
        pools=found,
        subpools=tuple(pools.list_subpools(connection)),
        cohorts=tuple(pools.list_cohorts(connection)),
        nodes=tuple(node_store.list_all(connection)),
        faults={
            name: record.fault
            for name, record in node_store.backends(connection).items()
            if record.fault is not None
        },
        placements=placements(found, read_templates(connection)),
    )


def unallocated(pool: Pool, subpools: list[Subpool]) -> int | None:
    """What a pool has left for itself: never stored, so that the sum is right by construction.

    `_shared.quota + sum(active subpool quotas) = pool quota`; `None`: the pool has no limit.
    """
    if pool.gpu.guarantee is None:
        return None
    return pool.gpu.guarantee - sum(each.counted for each in subpools)


def uses(pool: Pool, node: OfferedNode) -> bool:
    """Whether a pool may use a node."""
    if node.backend != pool.backend:
        return False
    return node.pools is None or pool.name in node.pools


def node_sets(config: PoolSetup) -> list[tuple[tuple[Pool, ...], tuple[OfferedNode, ...]]]:
    """Pools that share nodes, directly or through others, with those nodes; by their first pool."""
    owner: dict[str, str] = {pool.name: pool.name for pool in config.pools}

    def first(name: str) -> str:
        while owner[name] != name:
            name = owner[name]
        return name

    shared: list[tuple[OfferedNode, list[str]]] = []
    for node in config.nodes:
        sharing = [pool.name for pool in config.pools if uses(pool, node)]
        shared.append((node, sharing))
        for name in sharing[1:]:
            one, other = sorted((first(sharing[0]), first(name)))
            owner[other] = one
    found: dict[str, tuple[list[Pool], list[OfferedNode]]] = {}
    for pool in sorted(config.pools, key=lambda each: each.name):
        found.setdefault(first(pool.name), ([], []))[0].append(pool)
    for node, sharing in shared:
        if sharing:
            found[first(sharing[0])][1].append(node)
    return [(tuple(members), tuple(nodes)) for _, (members, nodes) in sorted(found.items())]


def offline_reason(backend: str, backends: Mapping[str, BackendRecord], now_ms: int) -> str | None:
    """Why pools of a backend are OFFLINE; `None`: they are not."""
    record = backends.get(backend)
    if record is not None and record.fault is not None:
        return record.fault
    if record is None or record.last_heartbeat_ms is None:
        return f"Backend {backend} was never heard of."
    silent_ms = now_ms - record.last_heartbeat_ms
    if silent_ms > HEARTBEAT_WINDOW_MS:
        return f"Backend {backend} was not heard of for {silent_ms // 60_000} minutes."
    return None


def status_of(pool: Pool, backends: Mapping[str, BackendRecord], now_ms: int) -> PoolStatus:
    """The status of a pool, by the state of its backend."""
    if pool.enable_maintenance:
        return PoolStatus.MAINTENANCE
    offline = offline_reason(pool.backend, backends, now_ms)
    return PoolStatus.ONLINE if offline is None else PoolStatus.OFFLINE
