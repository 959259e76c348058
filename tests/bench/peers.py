"""`python -m tests.bench peers --kai DIR`: the real ones from a checkout of yours, beside ours.

KAI's own benchmarks are built with Go from the checkout, which stays as it is, and take turns with
the same work of ours, each in a process of its own. One operation is a whole cycle on both sides:
from the plain objects of a cluster to all decisions. CPU time of all threads; what a process needs
to start is measured by itself and taken off. The least of some rounds counts.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROUNDS = 3
#: How often a process does the work more than once, the first time apart.
TIMES = 20
BUILD_S = 3_600
RUN_S = 1_200


class Work(NamedTuple):
    """The same work for both."""

    what: str
    #: The package of KAI, and its benchmark there.
    package: str
    benchmark: str
    #: Makes our snapshot: an expression of `tests.bench.cycle`.
    world: str


ALLOCATE = "pkg/scheduler/actions"
RECLAIM = "pkg/scheduler/actions/integration_tests/reclaim"
KAI = (
    Work("10 nodes, 50 jobs", ALLOCATE, "AllocateAction_SmallCluster", "allocate(10, 50, 1)"),
    Work("50 nodes, 200 jobs", ALLOCATE, "AllocateAction_MediumCluster", "allocate(50, 200, 1)"),
    Work("100 nodes, 500 jobs", ALLOCATE, "AllocateAction_LargeCluster", "allocate(100, 500, 1)"),
    Work(
        "50 nodes, 100 jobs of 4",
        ALLOCATE,
        "GangScheduling_MediumCluster",
        "allocate(50, 100, 4)",
    ),
    Work("reclaim, 10 nodes", RECLAIM, "ReclaimLargeJobs_10Node", "reclaim_large(10)"),
    Work("reclaim, 100 nodes", RECLAIM, "ReclaimLargeJobs_100Node", "reclaim_large(100)"),
)
OURS = """
from tests.bench import cycle
for _ in range({times}):
    cycle.plan(cycle.{world}, cycle.OSMO)
"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m tests.bench peers", description=__doc__)
    parser.add_argument("--kai", type=Path, required=True, metavar="DIR", help="checkout of KAI")
    asked = parser.parse_args(arguments)
    fault = find_fault(asked.kai)
    if fault:
        print(fault, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="bough-peers-") as folder:
        programs = {
            package: _build(asked.kai.resolve(), package, Path(folder))
            for package in dict.fromkeys(each.package for each in KAI)
        }
        print(f"KAI {_commit(asked.kai)}, CPU ms of a whole cycle, the least of {ROUNDS} rounds")
        print("| work | KAI | ours | ratio |\n|---|---:|---:|---:|")
        for work in KAI:
            theirs, ours = compare(work, programs[work.package])
            print(
                f"| {work.what} | {theirs * 1e3:.1f} | {ours * 1e3:.1f} | {ours / theirs:.2f} |",
                flush=True,
            )
    return 0


def find_fault(checkout: Path) -> str | None:
    """Why this cannot be measured; `None`: nothing is in the way."""
    if shutil.which("go") is None:
        return "Go is not installed: it builds what is compared with."
    for package in (ALLOCATE, RECLAIM):
        if not (checkout / package).is_dir():
            return f"--kai {checkout}: there is no folder {package}; it is no checkout of KAI."
    return None


def compare(work: Work, program: Path) -> tuple[float, float]:
    """The CPU seconds of one operation, of theirs and of ours, in turn."""
    theirs: list[float] = []
    ours: list[float] = []
    for _ in range(ROUNDS):
        theirs.append(_each(lambda times: _run_theirs(program, work, times)))
        ours.append(_each(lambda times: _run_ours(work, times)))
    return min(theirs), min(ours)


def _each(run: Callable[[int], float]) -> float:
    """One operation, from one process that does it once and one that does it more often."""
    return max(0.0, run(1 + TIMES) - run(1)) / TIMES


def _run_theirs(program: Path, work: Work, times: int) -> float:
    return cpu_seconds_of(
        [
            str(program),
            "-test.run=^$",
            f"-test.bench=^Benchmark{work.benchmark}$",
            f"-test.benchtime={times}x",
        ],
        program.parent,
    )


def _run_ours(work: Work, times: int) -> float:
    program = OURS.format(times=times, world=work.world)
    return cpu_seconds_of([sys.executable, "-c", program], Path(__file__).parents[2])


def cpu_seconds_of(command: list[str], folder: Path) -> float:
    """The CPU time of a process that ends well, with all its threads and children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    if ran.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {ran.returncode}:\n{ran.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _build(checkout: Path, package: str, folder: Path) -> Path:
    """Build the tests of a package; the program."""
    print(f"building {package} (minutes, the first time)", file=sys.stderr, flush=True)
    program = folder / package.replace("/", "-") / "tests"
    program.parent.mkdir()
    subprocess.run(
        [_program("go"), "test", "-c", "-vet=off", "-o", str(program), f"./{package}"],
        cwd=checkout,
        timeout=BUILD_S,
        check=True,
    )
    return program


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise RuntimeError(f"{name} is not installed")
    return found


def _commit(checkout: Path) -> str:
    ran = subprocess.run(
        [_program("git"), "-C", str(checkout), "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout.strip() or "of unknown commit"
