"""Placement: cycles over many gangs, the bad cases of the index, one large gang, KAI's own work.

A cycle tries every gang once, in order: what it needs, then growth. Quota is not asked. Neither the
index nor the gangs' trees are built within the time, but everything else is.
"""

from __future__ import annotations

from collections.abc import Callable

from bough.core.gang.tree import GangTree
from bough.core.place.result import GangPlacement, NoPlace
from bough.model.place_policy import PlacePolicy
from tests.bench import worlds_place as worlds
from tests.bench.report import Report, cpu_seconds
from tests.bench.worlds_place import World
from tests.oracles.place import can_start

#: Stored: the CPU milliseconds that KAI's Execute takes for the same work (72de64f).
KAI = (
    ("Allocate, 100 nodes, 500 jobs", (100, 500, 1), 224),
    ("Gang, 50 nodes, 100 × 4", (50, 100, 4), 63),
)
#: How often it grows with ten times the nodes and the gangs.
MAXIMUM_GROWTH = 12
SMALL_WORLDS = 1_500


def run(report: Report) -> None:
    measure_cycles(report)
    measure_growth(report)
    measure_large_gang(report)
    measure_kai(report)
    measure_gap(report)


def measure_cycles(report: Report) -> None:
    report.line(
        "5,000 nodes of 8 GPUs, 10,000 pending gangs; decisions are gangs placed or refused"
    )
    usual = _measure(report, "usual: 8 shapes", worlds.mixed)
    for name, make in (
        ("no CPU left on 90 % of the nodes", lambda: worlds.mixed(starved=True)),
        ("1,000 shapes", lambda: worlds.mixed(shapes=1_000)),
        ("both", lambda: worlds.mixed(shapes=1_000, starved=True)),
        ("every gang under a topology constraint", lambda: worlds.mixed(constrained=True)),
    ):
        _measure(report, name, make, usual)
    forgetful = PlacePolicy(remember=False)
    _measure(
        report,
        "no CPU, and nothing remembered",
        lambda: worlds.mixed(starved=True),
        usual,
        forgetful,
    )


def measure_growth(report: Report) -> None:
    sizes = [(500, 1_000), (5_000, 10_000)]
    small, large = (_cycle(worlds.mixed(*size))[0] for size in sizes)
    report.target(
        f"ten times the nodes and the gangs: {small * 1e3:.0f} ms to {large * 1e3:.0f} ms, "
        f"×{large / small:.1f} (at most {MAXIMUM_GROWTH})",
        met=large <= MAXIMUM_GROWTH * small,
    )


def measure_large_gang(report: Report) -> None:
    world = worlds.one_large_gang()
    seconds, _, pods = _cycle(world)
    report.line(
        f"a gang of {pods:,} pods under required block and preferred rack: {seconds * 1e3:.1f} ms"
    )


def measure_kai(report: Report) -> None:
    for name, size, theirs in KAI:
        seconds, gangs, pods = _cycle(worlds.kai(*size))
        ours = seconds * 1e3
        report.target(
            f"KAI's {name}: {ours:.1f} ms to place {gangs} gangs, {pods} pods, without queues; "
            f"KAI's stored Execute {theirs} ms, ×{theirs / ours:.1f} (at least 2)",
            met=2 * ours <= theirs,
        )


def measure_gap(report: Report) -> None:
    """How many gangs with nested constraints are refused that have a place, on small clusters."""
    possible = refused = gave_up = 0
    for seed in range(SMALL_WORLDS):
        world, wanted = worlds.nested(seed)
        if not can_start(wanted, world.running, world.nodes, worlds.SMALL_TOPOLOGY):
            continue
        possible += 1
        placer = world.placer(topology=worlds.SMALL_TOPOLOGY)
        tree = GangTree.of(wanted)
        found = placer.start(tree, tree.held)
        if isinstance(found, NoPlace):
            refused += 1
            gave_up += found.gave_up
    report.line(
        f"nested constraints, small clusters: {possible:,} of {SMALL_WORLDS:,} gangs have a place; "
        f"{refused} of them are refused, {gave_up} as the search gave up"
    )


def _measure(
    report: Report,
    name: str,
    make: Callable[[], World],
    usual: float | None = None,
    policy: PlacePolicy | None = None,
) -> float:
    world = make()
    seconds, gangs, pods = _cycle(world, policy)
    ratio = f", ×{seconds / usual:.2f}" if usual else ""
    report.line(
        f"{name:<40} {seconds * 1e3:>6.0f} ms{ratio:>7}, {len(world.pending) / seconds:>7,.0f} "
        f"decisions/s; {gangs:,} gangs placed, {pods:,} pods"
    )
    return seconds


def _cycle(world: World, policy: PlacePolicy | None = None) -> tuple[float, int, int]:
    """The CPU seconds of one cycle, and how many gangs and pods it placed."""
    best = float("inf")
    sizes: list[int] = []
    trees = [GangTree.of(gang) for gang in world.pending]
    for _ in range(3):
        placer = world.placer(policy)
        found: list[GangPlacement | NoPlace] = []

        def work() -> None:
            for tree in trees:
                found.append(placer.start(tree, tree.held))  # noqa: B023

        best = min(best, cpu_seconds(work, repeat=1))
        sizes = [len(each.assignments) for each in found if isinstance(each, GangPlacement)]
    return best, len(sizes), sum(sizes)
