"""What this machine has for tasks: its nodes, with GPUs, CPUs, memory and disk.

What is offered (by an option) is taken at its word: GPUs for trying things out, with as many CPUs
and as much memory as people usually ask for with them. Must not know what runs.
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
from bough.backends.local.sandbox.cgroups import CPU, MEMORY, controlling, find_hierarchies
from bough.model.pool import OfferedNode

#: What is offered with each GPU that is offered: enough for what people usually ask.
CPU_MILLI_PER_GPU = 32_000
MEMORY_PER_GPU = 256 * 2**30
STORAGE_PER_GPU = 2**40

_MEMORY = Path("/proc/meminfo")
_LABEL = re.compile(r"[^A-Za-z0-9._-]+")


def find_machine(
    options: LocalOptions, found: tuple[tuple[Gpu, ...], tuple[str, ...]] | None = None
) -> tuple[tuple[OfferedNode, ...], tuple[str, ...]]:
    """The nodes to offer, and what the one who started the server should know about them.

    `found`: the GPUs of this machine, for those who have looked for them already.
    """
    if options.nodes:
        count = len(options.nodes)
        told = f"{count} nodes are offered as told" if count > 1 else "a node is offered as told"
        return options.nodes, (f"{told}, whatever this machine has; tasks run here",)
    machine = OfferedNode(
        name=host_name(),
        cpu_milli=count_cpu_milli(),
        memory_bytes=count_memory(),
        storage_bytes=_count_storage(options.folder),
        labels={"kubernetes.io/hostname": host_name()},
    )
    if options.gpus is not None:
        return _offer(machine, options.gpus)
    gpus, warnings = find_gpus() if found is None else found
    if not gpus and not warnings and options.gpus_if_none:
        # Where GPUs are there and only cannot be asked, nobody should think that they can be used.
        return _offer(machine, options.gpus_if_none)
    labels = machine.labels | _product(gpus)
    return (msgspec.structs.replace(machine, gpus=len(gpus), labels=labels),), warnings


def number_gpus(
    machines: Iterable[OfferedNode], found: tuple[Gpu, ...] = ()
) -> dict[str, tuple[int, ...]]:
    """The numbers of each node's GPUs for CUDA_VISIBLE_DEVICES, by the name of the node.

    GPUs that were found are shared out between the nodes in order. Where there are not so many,
    they are only offered, and each node counts its own from 0 as if it were a machine.
    """
    nodes = tuple(machines)
    real = [each.index for each in found]
    if sum(each.gpus for each in nodes) > len(real):
        return {each.name: tuple(range(each.gpus)) for each in nodes}
    numbers: dict[str, tuple[int, ...]] = {}
    for each in nodes:
        numbers[each.name], real = tuple(real[: each.gpus]), real[each.gpus :]
    return numbers


def host_name() -> str:
    """The name of this machine, made a valid name of a node."""
    name = _LABEL.sub("-", socket.gethostname())[:63].strip("-._")
    if not name:
        return "localhost"
    return name if name[0].isalpha() else f"node-{name}"[:63].rstrip("-._")


def count_cpu_milli() -> int:
    """The CPUs that this process may use, in thousandths."""
    count = len(os.sched_getaffinity(0)) * 1_000
    tree = controlling(find_hierarchies(), CPU)
    quotas = () if tree is None else (_cpu_quota(each) for each in tree.ancestors())
    return min([count, *(each for each in quotas if each is not None)])


def count_memory() -> int:
    """The memory that this process may use."""
    total = next(
        int(line.split()[1]) * 1024
        for line in _MEMORY.read_text().splitlines()
        if line.startswith("MemTotal:")
    )
    tree = controlling(find_hierarchies(), MEMORY)
    limits = () if tree is None else (_memory_limit(each) for each in tree.ancestors())
    return min([total, *(each for each in limits if each is not None)])


def _offer(machine: OfferedNode, gpus: int) -> tuple[tuple[OfferedNode, ...], tuple[str, ...]]:
    offered = msgspec.structs.replace(
        machine,
        gpus=gpus,
        cpu_milli=max(machine.cpu_milli, gpus * CPU_MILLI_PER_GPU),
        memory_bytes=max(machine.memory_bytes, gpus * MEMORY_PER_GPU),
        storage_bytes=max(machine.storage_bytes, gpus * STORAGE_PER_GPU),
    )
    warning = (
        f"{gpus} GPUs are offered, whatever this machine has, with "
        f"{offered.cpu_milli // 1_000} CPUs and {offered.memory_bytes // 2**30} GiB of memory"
    )
    return (offered,), (warning,)


def _product(gpus: tuple[Gpu, ...]) -> dict[str, str]:
    """The label for the kind of the GPUs, where all are of one kind."""
    names = {_LABEL.sub("-", each.name)[:63].strip("-._") for each in gpus}
    return {"nvidia.com/gpu.product": names.pop()} if len(names) == 1 and "" not in names else {}


def _count_storage(folder: Path) -> int:
    """The disk that the backend's folder is, or will be, on."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).total


def _cpu_quota(group: Path) -> int | None:
    """What a group may use of the CPUs, in thousandths; `None`: as much as there is."""
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
