"""`python -m tests.bench.against CHECKOUT`: Kueue's replays here and in another checkout of Bough.

They take turns, each in a process of its own, and the least CPU time of each counts: so the load of
a shared machine falls on both. Prints the ratio; what is decided must be the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROUNDS = 3
REPLAY = """
from tests.bench import kueue_replay
replay = kueue_replay._replay(kueue_replay.{name})
print(replay.planning_s, replay.figures())
"""


def main(other: Path) -> int:
    """Compare planning here with planning there."""
    here = Path(__file__).parents[2]
    for name in ("BASELINE", "LARGE_SCALE"):
        seconds: dict[Path, list[float]] = {here: [], other: []}
        figures: set[str] = set()
        for _ in range(ROUNDS):
            for place, measured in seconds.items():
                cpu, _, decided = _replay(place, name).partition(" ")
                measured.append(float(cpu))
                figures.add(decided)
        mine, theirs = min(seconds[here]), min(seconds[other])
        same = "the same decided" if len(figures) == 1 else "NOT THE SAME DECIDED"
        print(f"{name}: {mine:.2f} s here, {theirs:.2f} s there: {mine / theirs:.2f}; {same}")
    return 0


def _replay(place: Path, name: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", REPLAY.format(name=name)],
        cwd=place,
        env={**os.environ, "PYTHONPATH": f"{place / 'src'}{os.pathsep}{place}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
