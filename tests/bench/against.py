"""`python -m tests.bench.against CHECKOUT`: what planning costs here and in another checkout.

First the quota tree, cycles of gangs and Kueue's replays, then short tasks on a server with real
processes. Both checkouts take turns, each in a process of its own, and the least of each counts: so
the load of a shared machine falls on both. Prints ratios; what the replays decide must be the same.
`--tasks` leaves out all but the tasks, `--planning` the tasks.
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
#: Of one operation, in microseconds.
QUOTA = """
from tests.bench import quota
print(quota._operation_costs(5, 10_000)[{at}])
"""
REPLAY = """
from tests.bench import kueue_replay
play = getattr(kueue_replay, "replay", None) or kueue_replay._replay
replay = play(kueue_replay.{name})
print(replay.planning_s, replay.figures())
"""
#: Workflows of one task that ends at once, one after the other.
WORKFLOWS = 60
TASKS = """
import contextlib, io, tempfile, time
from pathlib import Path
from statistics import median
from tests.bench import workflows
from tests.bench.report import Report
from tests.bench.shares import Shares
from tests.crash.server import Server
number = {number}
with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):
    server = Server(Path(name), gpus=8)
    with Shares(server) as shares:
        server.await_ready()
        server.client().pools.create("bench", {{"resources": {{"gpu": {{"guarantee": 8}}}}}})
        before = shares.look()
        part = workflows.Part("short", number, pause_s=0.05)
        sent = workflows._submit(Report("tasks"), server, shares, part)
        time.sleep(1)
        after = shares.look()
        ran = workflows._read_logs(server)
        server.stop()
wait_s = median(ran[each].from_s - at for each, at in sent.items() if each in ran)
life_s = ((after.all_s or 0) - (before.all_s or 0)) / number
print({found})
"""


def main(arguments: list[str]) -> int:
    """Compare planning and tasks here with those there."""
    others = [each for each in arguments if each not in {"--tasks", "--planning"}]
    if len(others) != 1:
        usage = "usage: python -m tests.bench.against [--tasks | --planning] CHECKOUT"
        print(usage, file=sys.stderr)
        return 2
    here, other = Path(__file__).parents[2], Path(others[0]).resolve()
    if "--tasks" not in arguments:
        _compare_planning(here, other)
    if "--planning" in arguments:
        return 0
    for name, found in (
        ("from submission to running process, median", "wait_s"),
        ("CPU of a short task, server and supervisor together", "life_s"),
    ):
        _compare(name, TASKS.format(number=WORKFLOWS, found=found), here, other)
    return 0


def _compare_planning(here: Path, other: Path) -> None:
    for at, name in enumerate(("add and remove", "available")):
        title = f"quota, 10,000 queues on 5 levels: {name}"
        _compare(title, QUOTA.format(at=at), here, other, unit="µs")
    for name, (repeat, world) in CYCLES.items():
        _compare(name, CYCLE.format(world=world, repeat=repeat), here, other)
    for name in ("BASELINE", "LARGE_SCALE"):
        decided = _compare(name, REPLAY.format(name=name), here, other)
        if len(decided) > 1:
            print(f"{name}: NOT THE SAME DECIDED")


def _compare(name: str, program: str, here: Path, other: Path, *, unit: str = "s") -> set[str]:
    """Print the ratio; everything else that the program has printed."""
    seconds: dict[Path, list[float]] = {here: [], other: []}
    printed: set[str] = set()
    for _ in range(ROUNDS):
        for place, measured in seconds.items():
            cpu, _, rest = _run(place, program).partition(" ")
            measured.append(float(cpu))
            printed.add(rest)
    mine, theirs = min(seconds[here]), min(seconds[other])
    figures = f"{mine:.4f} {unit} here, {theirs:.4f} {unit} there"
    print(f"{name}: {figures}: {mine / theirs:.2f}", flush=True)
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
    sys.exit(main(sys.argv[1:]))
