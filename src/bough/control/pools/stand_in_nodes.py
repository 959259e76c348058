"""Nodes that stand for a cluster in which another scheduler decides where tasks run.

For the core such a cluster is quota and order alone: whatever quota admits has room on one of
these, and what runs holds nothing of them. They offer far more than there is, so that what exceeds
the cluster waits there, where it is decided which of it gives way; and not without end, so that a
site does not hand over more pods than a cluster can bear.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bough.control.pools.pool_config import PoolSetup
from bough.model.pool import OfferedNode

#: GPUs of each; no machine has more.
_GPUS = 128
#: How much more they offer than the cluster has; and at least how many there are.
_TIMES = 8
_LEAST = 64
#: In no name of a node of Kubernetes.
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
