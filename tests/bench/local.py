"""What the local backend adds to a task, beside a bare loop of fork and exec in the same minute.

Real processes: one after the other from their start to their end, then many at once. The bare loop
starts the same program and waits for it, before and after each part; the better of both counts. CPU
time is that of everything, of the backend in this process and of all supervisors and tasks. Beside
a view and limits stands what the kernel takes for these, whatever starts the task (`local_floor`).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import msgspec

from bough.backends.local.attempt_state import read_state
from bough.backends.local.backend import LocalBackend
from bough.backends.local.options import LocalOptions, TaskNetwork
from bough.model.backend import Launch, Sight, Start, Stop
from bough.model.task_template import TaskTemplate
from tests.bench.cpu_group import CpuGroup
from tests.bench.report import Report

ROUNDS = 300
AT_ONCE = 200
OBSERVED = 500
PATIENCE_S = 60.0
PROGRAM = "/bin/true"
#: How often the floor of a view is measured; the least counts.
FLOORS = 3
#: How many processes a second, of those of the bare loop.
SHARE = 1 / 8
#: The CPU time of a short task from its start to its end, the server around the backend apart.
LIFE_MS = 15.0
#: What a task gets here; its network is apart.
KINDS = {
    "nothing but a process": LocalOptions(Path(), private=False, limits=False),
    "a view and limits of its own": LocalOptions(Path(), network=TaskNetwork.HOST),
    "a network as well": LocalOptions(Path()),
}


def run(report: Report) -> None:
    rounds = ROUNDS // 10 if report.quick else ROUNDS
    with CpuGroup() as group:
        for said, options in KINDS.items():
            with _backend(options) as site:
                _measure(report, said, site, group, rounds)
    if not report.quick:
        with _backend(KINDS["nothing but a process"]) as site:
            site.crowd(OBSERVED)
            cost_ms = site.observing() * 1e3
            report.line(f"observe() with {OBSERVED} attempts: {cost_ms:.2f} ms median")


def _measure(report: Report, said: str, site: _Site, group: CpuGroup, rounds: int) -> None:
    for _ in range(5):
        site.once()
    taken = [site.once() for _ in range(rounds)]
    _line(report, f"start() to running, {said}", [each[0] for each in taken])
    _line(report, f"exit to observe(), {said}", [each[1] for each in taken])
    number = AT_ONCE // 2 if report.quick else AT_ONCE
    bare = [_bare_per_second()]
    used = group.seconds()
    seconds = site.many(number)
    used = group.seconds() - used
    bare.append(_bare_per_second())
    share = number / seconds / max(bare)
    figure = f"{number / seconds:.0f}/s, {share:.3f} of the bare loop's {max(bare):.0f}/s"
    if "network" in said:
        report.line(
            f"processes at once, {said}: {figure}; {used / number * 1e3:.1f} ms of CPU each"
        )
        return
    report.goal(f"processes at once, {said}", figure, f"at least {SHARE:.3f}", met=share >= SHARE)
    if site.has_view and os.geteuid() == 0:
        floor_ms = min(_floor_ms(number) for _ in range(FLOORS))
        report.line(
            f"what the kernel takes for {said}: {floor_ms:.1f} ms of CPU; "
            f"a task takes {used / number * 1e3 / floor_ms:.1f} of it"
        )
    report.goal(
        f"the life of a short task, {said}",
        f"{used / number * 1e3:.1f} ms of CPU",
        f"at most {LIFE_MS:.0f} ms with the server's own",
        met=used / number * 1e3 <= LIFE_MS,
    )


def _floor_ms(number: int) -> float:
    """The CPU time of a task in a program that does nothing but what the kernel must do."""
    command = (sys.executable, "-m", "tests.bench.local_floor", str(number))
    done = subprocess.run(command, capture_output=True, check=True)
    return float(done.stdout)


def _bare_per_second(number: int = 300) -> float:
    """How many processes a second a loop starts and waits for."""
    begun = time.perf_counter()
    for _ in range(number):
        os.waitpid(os.posix_spawn(PROGRAM, [PROGRAM], {}), 0)
    return number / (time.perf_counter() - begun)


def main() -> None:
    run(Report("local"))


class _Site:
    """A backend, and a server that listens to it."""

    def __init__(self, backend: LocalBackend, bell: threading.Event, options: LocalOptions) -> None:
        self._backend, self._bell, self._folder = backend, bell, options.folder
        self.has_view = options.private
        self._count = 0

    def once(self) -> tuple[float, float]:
        """One task: how long it takes until it is seen to run, and to have ended."""
        attempt = self._start("/bin/sleep", "1000")
        begun = time.perf_counter()
        self._backend.start(attempt)
        name = attempt.launches[0].attempt
        self._wait({name}, Sight.RUNNING)
        running = time.perf_counter()
        state = read_state(self._folder / "attempts" / name.replace("/", "-") / "state")
        if state is None or state.begun is None:
            raise RuntimeError("a task that runs has no state")
        killed = time.perf_counter()
        os.killpg(state.begun.pid, signal.SIGKILL)
        self._wait({name}, Sight.ENDED)
        ended = time.perf_counter()
        self._backend.forget((name,))
        return running - begun, ended - killed

    def many(self, count: int) -> float:
        starts = [self._start(PROGRAM) for _ in range(count)]
        begun = time.perf_counter()
        for start in starts:
            self._backend.start(start)
        self._wait({start.launches[0].attempt for start in starts}, Sight.ENDED)
        return time.perf_counter() - begun

    def crowd(self, count: int) -> None:
        """Have so many attempts that run."""
        launches = [self._start("/bin/sleep", "1000").launches[0] for _ in range(count)]
        for first in range(0, count, 50):
            part = tuple(launches[first : first + 50])
            self._backend.start(Start("crowd", "group", part))
        self._wait({launch.attempt for launch in launches}, Sight.RUNNING)

    def observing(self) -> float:
        taken: list[float] = []
        for _ in range(200):
            begun = time.perf_counter()
            self._backend.observe()
            taken.append(time.perf_counter() - begun)
            time.sleep(0.02)
        return median(taken)

    def _start(self, *command: str) -> Start:
        self._count += 1
        node = self._backend.nodes()[0].name
        launch = Launch(f"bench-{self._count}/0", "task", node, spec=TaskTemplate(command=command))
        return Start(f"flow-{self._count}", "group", (launch,))

    def _wait(self, attempts: set[str], sight: Sight) -> None:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            seen = {each.attempt for each in self._backend.observe() if each.sight is sight}
            if attempts <= seen:
                return
            self._bell.wait(0.5)
            self._bell.clear()
        raise TimeoutError(f"{sight} was not seen")


@contextmanager
def _backend(kind: LocalOptions) -> Iterator[_Site]:
    folder = Path(tempfile.mkdtemp(prefix="bough-bench-")) / "local"
    bell = threading.Event()
    # As a server does that is root.
    account = "bough-task" if kind.private and os.geteuid() == 0 else None
    options = msgspec.structs.replace(kind, folder=folder, gpus=8, task_user=account)
    backend = LocalBackend(options, lambda: time.time_ns() // 1_000_000, bell.set)
    site = _Site(backend, bell, options)
    try:
        yield site
    finally:
        _end(backend)
        backend.close()
        shutil.rmtree(folder.parent, ignore_errors=True)


def _end(backend: LocalBackend) -> None:
    live = [each.attempt for each in backend.observe() if each.sight is Sight.RUNNING]
    backend.stop(Stop(tuple(live), "cancel"))
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and any(
        each.sight is Sight.RUNNING for each in backend.observe()
    ):
        time.sleep(0.05)


def _line(report: Report, what: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    p99 = ordered[len(ordered) * 99 // 100]
    report.line(f"{what}: {median(ordered) * 1e3:.1f} ms median, {p99 * 1e3:.1f} ms p99")


if __name__ == "__main__":
    main()
