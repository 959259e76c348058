"""Nodes that stand for a cluster in which another scheduler decides where tasks run.

For such a cluster the core decides quota and order only: whatever quota admits fits on one of these
nodes, and running tasks take nothing from them. They offer far more than the cluster has, so that
excess work waits in the cluster, whose scheduler decides what gives way; but not without limit, so
that the cluster does not get more pods than it can bear.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bough.control.pools.pool_setup import PoolSetup
from bough.model.pool import OfferedNode

#: GPUs of each; no machine has more.
_GPUS = 128
#: How many times as much they offer as the cluster has, and how many there are at least.
_TIMES = 8
_LEAST = 64
#: A character that no node name of Kubernetes contains.
_MARK = ":"
_AMPLE = 1 << 50


def with_stand_ins(config: PoolSetup, is_elsewhere: Callable[[str], bool]) -> PoolSetup:
    """The same pools; all nodes of backends where they are not ours to choose are stand-ins."""
    backends = sorted({pool.backend for pool in config.pools if is_elsewhere(pool.backend)})
    if not backends:
        return config
    kept = [each for each in config.nodes if each.backend not in backends]
    for backend in backends:
        there = sum(each.gpus for each in config.nodes if each.backend == backend)
        count = max(_LEAST, -(-_TIMES * there // _GPUS))
        kept += (_stand_in(backend, number) for number in range(count))
    return msgspec.structs.replace(config, nodes=tuple(kept))


def _stand_in(backend: str, number: int) -> OfferedNode:
    return OfferedNode(
        f"{backend}{_MARK}{number:05}",
        backend,
        gpus=_GPUS,
        cpu_milli=_AMPLE,
        memory_bytes=_AMPLE,
        storage_bytes=_AMPLE,
        task_slots=_AMPLE,
    )
