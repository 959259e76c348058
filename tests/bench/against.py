"""`python -m tests.bench.against CHECKOUT`: what planning costs here and in another checkout.

First cycles of gangs, then Kueue's replays. Both checkouts take turns, each in a process of its
own, and the least CPU time of each counts: so the load of a shared machine falls on both. Prints
ratios; what the replays decide must be the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROUNDS = 3
#: By name, how often it is planned, and the world; both checkouts must have it.
CYCLES = {
    "10 nodes, 50 jobs": (40, "allocate(10, 50, 1)"),
    "50 nodes, 200 jobs": (10, "allocate(50, 200, 1)"),
    "100 nodes, 500 jobs": (5, "allocate(100, 500, 1)"),
    "50 nodes, 100 jobs of 4": (10, "allocate(50, 100, 4)"),
    "reclaim, 10 nodes": (40, "reclaim_large(10)"),
    "reclaim, 100 nodes": (5, "reclaim_large(100)"),
    "reclaim, 200 nodes": (3, "reclaim_large(200)"),
}
CYCLE = """
from tests.bench import cycle
from tests.bench.report import cpu_seconds
world = cycle.{world}
print(cpu_seconds(lambda: cycle.plan(world, cycle.OSMO), repeat={repeat}))
"""
REPLAY = """
from tests.bench import kueue_replay
play = getattr(kueue_replay, "replay", None) or kueue_replay._replay
replay = play(kueue_replay.{name})
print(replay.planning_s, replay.figures())
"""


def main(other: Path) -> int:
    """Compare planning here with planning there."""
    here = Path(__file__).parents[2]
    for name, (repeat, world) in CYCLES.items():
        _compare(name, CYCLE.format(world=world, repeat=repeat), here, other)
    for name in ("BASELINE", "LARGE_SCALE"):
        decided = _compare(name, REPLAY.format(name=name), here, other)
        if len(decided) > 1:
            print(f"{name}: NOT THE SAME DECIDED")
    return 0


def _compare(name: str, program: str, here: Path, other: Path) -> set[str]:
    """Print the ratio; everything else that the program has printed."""
    seconds: dict[Path, list[float]] = {here: [], other: []}
    printed: set[str] = set()
    for _ in range(ROUNDS):
        for place, measured in seconds.items():
            cpu, _, rest = _run(place, program).partition(" ")
            measured.append(float(cpu))
            printed.add(rest)
    mine, theirs = min(seconds[here]), min(seconds[other])
    print(f"{name}: {mine:.4f} s here, {theirs:.4f} s there: {mine / theirs:.2f}", flush=True)
    return printed


def _run(place: Path, program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=place,
        env={**os.environ, "PYTHONPATH": f"{place / 'src'}{os.pathsep}{place}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
