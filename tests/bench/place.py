"""Placement: whole cycles over many gangs, the bad cases of the index, one large gang, KAI's work."""

from __future__ import annotations

from tests.bench import worlds_place as worlds
from tests.bench.report import Report, cpu_seconds
from tests.bench.worlds_place import World

from bough.core.place.result import Start

#: Half of the CPU milliseconds that KAI's Execute takes for the same work.
KAI_HALVES = {"Allocate 100 nodes/500 jobs": 112, "Gang 50 nodes/100x4": 31}


def run(report: Report) -> None:
    measure_cycles(report)


def measure_cycles(report: Report) -> None:
    usual = measure(report, "5,000 nodes, 10,000 gangs", worlds.mixed())
    starved = measure(report, "the same, no CPU on 90 % of the nodes", worlds.mixed(starved=True))
    shapes = measure(report, "the same, 1,000 shapes", worlds.mixed(shapes=1_000))
    both = measure(report, "both", worlds.mixed(shapes=1_000, starved=True))
    measure(report, "1024", worlds.one_large_gang())
    small = measure(report, "500 nodes, 1,000 gangs", worlds.mixed(500, 1_000))
    report.line(f"{usual / small:.1f}")
    for name, world in (("A", worlds.kai(100, 500, 1)), ("G", worlds.kai(50, 100, 4))):
        measure(report, name, world)


def measure(report: Report, name: str, world: World) -> float:
    """One cycle: every gang is tried once, in order. The placer is made before."""
    best = float("inf")
    for _ in range(3):
        placer = world.placer()
        trees = world.trees()
        started: list[int] = []

        def cycle() -> None:
            for tree in trees:
                found = placer.start(tree, tree.held)
                if isinstance(found, Start):
                    started.append(len(found.assignments))

        best = min(best, cpu_seconds(cycle, repeat=1))
    report.line(f"{name}: {best * 1000:.0f} ms, {len(started):,} gangs, {sum(started):,} pods {len(world.pending)/best:.0f}/s")
    return best
