"""The shapes that hurt schedulers, each at a tenth of its size and at its size.

One long line, many that wait, many nodes, many subpools: for each the whole plan, and one end with
a memo, after which another one starts. Then one gang of thousands of pods on four levels of
topology. Quickly, everything is a tenth of that.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

import msgspec

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.gang.tree import GangTree
from bough.core.place.placer import Placer
from bough.core.place.result import GangPlacement
from bough.model.cluster import Node, Resources, Topology, TopologyLevel
from bough.model.gang import Gang, Pod, TopologyConstraint
from bough.model.policy import OSMO
from bough.model.snapshot import Snapshot
from tests.bench.cycle import crowd
from tests.bench.report import Report, cpu_seconds

#: Ten times as much may cost a little more than ten times as much: caches of the machine end.
AT_MOST = 13.0
PODS = 4_096
#: From the outside to the inside; how many nodes are in one of each.
LEVELS = {"region": 4_096, "zone": 1_024, "block": 256, "rack": 16}


def run(report: Report) -> None:
    shapes: dict[str, tuple[str, tuple[int, int], Callable[[int], Snapshot]]] = {
        "one line": ("waiting", (1_000, 10_000), lambda size: crowd(100, size, queues=1)),
        "many that wait": ("waiting", (10_000, 100_000), lambda size: crowd(1_000, size)),
        "many nodes": ("nodes", (2_000, 20_000), lambda size: crowd(size, 1_000)),
        "subpools": ("subpools", (20, 200), lambda size: crowd(1_000, 10_000, queues=size)),
    }
    for name, (of, sizes, make) in shapes.items():
        _measure(report, name, of, [_size(report, each) for each in sizes], make)
    pods = [_size(report, each) for each in (PODS // 10, PODS)]
    placed = {each: _place(each) for each in pods}
    report.growth("one gang on four levels of topology is placed", "pods", placed, AT_MOST)


def _size(report: Report, size: int) -> int:
    return max(2, size // 10) if report.quick else size


def _measure(
    report: Report, name: str, of: str, sizes: list[int], make: Callable[[int], Snapshot]
) -> None:
    whole: dict[int, float] = {}
    ends: dict[int, float] = {}
    for size in sizes:
        before = make(size)
        memo = Memo()
        gc.collect()
        gc.freeze()
        whole[size] = cpu_seconds(
            lambda before=before, memo=memo: plan(before, OSMO, memo), repeat=1
        )
        taken: list[float] = []
        for _ in range(3):
            before = _end_one(before)
            taken.append(
                cpu_seconds(lambda before=before, memo=memo: plan(before, OSMO, memo), repeat=1)
            )
        ends[size] = min(taken)
        gc.unfreeze()
    report.growth(f"{name}: the first plan", of, whole, AT_MOST)
    report.growth(f"{name}: one end, and the next one starts", of, ends, AT_MOST)


def _plan(snapshot: Snapshot, memo: Memo) -> float:
    return cpu_seconds(lambda: plan(snapshot, OSMO, memo), repeat=1)


def _end_one(before: Snapshot) -> Snapshot:
    """The first one that runs in the first queue has ended."""
    gangs = {**before.gangs, "queue-0": before.gangs["queue-0"][1:]}
    return msgspec.structs.replace(before, gangs=gangs)


def _place(pods: int) -> float:
    """A gang of so many pods, four on a node, on twice as many nodes as it needs."""
    levels = tuple(TopologyLevel(f"example.com/{each}", each) for each in LEVELS)
    topology = Topology("wires", levels)
    capacity = Resources(8, 192_000, 2**41, 110)
    nodes = [
        Node(
            f"node-{number:05}",
            capacity,
            {f"example.com/{level}": f"{level}-{number // size}" for level, size in LEVELS.items()},
        )
        for number in range(pods // 2)
    ]
    requests = Resources(gpus=2, cpu_milli=8_000, memory_bytes=2**36)
    gang = Gang(
        "large",
        "queue",
        tuple(Pod(f"pod-{number}", requests=requests) for number in range(pods)),
        minimum=pods,
        constraint=TopologyConstraint(required="region", preferred="rack"),
    )
    best = float("inf")
    for _ in range(2):
        placer = Placer(nodes, [topology])
        tree = GangTree.of(gang)
        found: list[object] = []
        best = min(best, cpu_seconds(lambda: found.append(placer.start(tree, tree.held)), repeat=1))  # noqa: B023
        assert isinstance(found[0], GangPlacement), found[0]
    return best
