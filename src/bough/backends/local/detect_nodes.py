"""The nodes that this machine offers, with GPUs, CPUs, memory and disk.

What an option names is offered whatever the machine has; everything else is the machine's own. Only
GPUs are made up, where no number is given and none are found, so that everything can be tried.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterable
from pathlib import Path

import msgspec

from bough.backends.local.detect_gpus import Gpu, find_gpus
from bough.backends.local.options import LocalOptions
from bough.backends.local.sandbox.cgroup_mounts import CPU, MEMORY, controlling, find_hierarchies
from bough.backends.offered_gpus import DEFAULT_GPUS
from bough.model.pool import OfferedNode

_MEMORY = Path("/proc/meminfo")
_LABEL = re.compile(r"[^A-Za-z0-9._-]+")


def find_nodes(
    options: LocalOptions, found: tuple[tuple[Gpu, ...], tuple[str, ...]] | None = None
) -> tuple[tuple[OfferedNode, ...], tuple[str, ...]]:
    """The nodes to offer, and warnings about them.

    `found`: the GPUs of this machine, if they were looked for already.
    """
    if options.nodes:
        count = len(options.nodes)
        told = f"{count} nodes are offered as told" if count > 1 else "a node is offered as told"
        return options.nodes, (f"{told}, whatever this machine has; tasks run here",)
    node = OfferedNode(
        name=host_name(),
        cpu_milli=count_cpu_milli() if options.cpu_milli is None else options.cpu_milli,
        memory_bytes=count_memory() if options.memory_bytes is None else options.memory_bytes,
        storage_bytes=_count_storage(options.folder)
        if options.storage_bytes is None
        else options.storage_bytes,
        labels={"kubernetes.io/hostname": host_name()},
    )
    if options.gpus is not None:
        return _offer(node, options.gpus)
    gpus, warnings = find_gpus() if found is None else found
    if not gpus and not warnings:
        # Only where nothing went wrong: real GPUs that cannot be queried are not replaced.
        return _offer(node, DEFAULT_GPUS)
    labels = node.labels | _product(gpus)
    return (msgspec.structs.replace(node, gpus=len(gpus), labels=labels),), warnings


def number_gpus(
    offered: Iterable[OfferedNode], found: tuple[Gpu, ...] = ()
) -> dict[str, tuple[int, ...]]:
    """The indices of each node's GPUs for CUDA_VISIBLE_DEVICES, by the name of the node.

    GPUs that were found are divided between the nodes in order. If more are offered than were
    found, each node counts its own from 0.
    """
    nodes = tuple(offered)
    real = [each.index for each in found]
    if sum(each.gpus for each in nodes) > len(real):
        return {each.name: tuple(range(each.gpus)) for each in nodes}
    numbers: dict[str, tuple[int, ...]] = {}
    for each in nodes:
        numbers[each.name], real = tuple(real[: each.gpus]), real[each.gpus :]
    return numbers


def host_name() -> str:
    """The host name, made a valid name of a node."""
    name = _LABEL.sub("-", socket.gethostname())[:63].strip("-._")
    if not name:
        return "localhost"
    return name if name[0].isalpha() else f"node-{name}"[:63].rstrip("-._")


def count_cpu_milli() -> int:
    """The CPUs that this process can use, in thousandths."""
    count = len(os.sched_getaffinity(0)) * 1_000
    tree = controlling(find_hierarchies(), CPU)
    quotas = () if tree is None else (_cpu_quota(each) for each in tree.ancestors())
    return min([count, *(each for each in quotas if each is not None)])


def count_memory() -> int:
    """The memory that this process can use."""
    total = next(
        int(line.split()[1]) * 1024
        for line in _MEMORY.read_text().splitlines()
        if line.startswith("MemTotal:")
    )
    tree = controlling(find_hierarchies(), MEMORY)
    limits = () if tree is None else (_memory_limit(each) for each in tree.ancestors())
    return min([total, *(each for each in limits if each is not None)])


def _offer(node: OfferedNode, gpus: int) -> tuple[tuple[OfferedNode, ...], tuple[str, ...]]:
    warning = (
        f"{gpus} GPUs are offered, whatever this machine has, with "
        f"{node.cpu_milli // 1_000} CPUs and {node.memory_bytes // 2**30} GiB of memory"
    )
    return (msgspec.structs.replace(node, gpus=gpus),), (warning,)


def _product(gpus: tuple[Gpu, ...]) -> dict[str, str]:
    """The label with the GPU model, if all have the same."""
    names = {_LABEL.sub("-", each.name)[:63].strip("-._") for each in gpus}
    return {"nvidia.com/gpu.product": names.pop()} if len(names) == 1 and "" not in names else {}


def _count_storage(folder: Path) -> int:
    """The size of the disk with the backend's folder, which need not exist yet."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).total


def _cpu_quota(group: Path) -> int | None:
    """The CPU quota of a control group, in thousandths; `None`: no limit."""
    both = _read(group / "cpu.max").split()
    if len(both) != 2:
        both = [_read(group / "cpu.cfs_quota_us"), _read(group / "cpu.cfs_period_us")]
    if not all(each.isdigit() for each in both) or int(both[1]) == 0:
        return None
    return max(1, int(both[0]) * 1_000 // int(both[1]))


def _memory_limit(group: Path) -> int | None:
    text = _read(group / "memory.max") or _read(group / "memory.limit_in_bytes")
    return int(text) if text.isdigit() else None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
