"""Amounts by the names of Kubernetes into the amounts that placement counts.

Must not know whether they are asked for or offered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.model.cluster import Resources

if TYPE_CHECKING:
    from collections.abc import Mapping

GPU = "nvidia.com/gpu"
CPU = "cpu"
MEMORY = "memory"
PODS = "pods"


def resources_of(amounts: Mapping[str, int]) -> Resources:
    """Sort amounts (CPU in thousandths of a core) into their fields."""
    known = (GPU, CPU, MEMORY, PODS)
    return Resources(
        gpus=amounts.get(GPU, 0),
        cpu_milli=amounts.get(CPU, 0),
        memory_bytes=amounts.get(MEMORY, 0),
        pods=amounts.get(PODS, 0),
        other=tuple(sorted((name, n) for name, n in amounts.items() if name not in known)),
    )
