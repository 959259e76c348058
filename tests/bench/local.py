"""What the local backend adds to a task: from its start to a running process, from its end to the
server's knowing. Real processes, one after the other, then many at once.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bough.backends.local.attempt_state import read_state
from bough.backends.local.backend import LocalBackend
from bough.backends.local.options import LocalOptions
from bough.model.backend import Launch, Sight, Start, Stop
from bough.model.task_template import TaskTemplate
from tests.bench.report import Report

ROUNDS = 300
AT_ONCE = 100
OBSERVED = 500
PATIENCE_S = 60.0


def run(report: Report) -> None:
    for private in (False, True):
        with _backend(private=private) as site:
            said = "a view and limits of its own" if private else "nothing but a process"
            site.once()
            taken = [site.once() for _ in range(ROUNDS)]
            _line(report, f"start() to running, {said}", [each[0] for each in taken])
            _line(report, f"exit to observe(), {said}", [each[1] for each in taken])
    with _backend(private=False) as site:
        seconds = site.many(AT_ONCE)
        report.line(
            f"{AT_ONCE} tasks of 0 s at once, from the first start to the last end seen: "
            f"{seconds:.2f} s ({AT_ONCE / seconds:.0f}/s)"
        )
        site.crowd(OBSERVED)
        report.line(f"observe() with {OBSERVED} attempts: {site.observing() * 1e3:.2f} ms median")


def main() -> None:
    run(Report("local"))


class _Site:
    """A backend, and a server that listens to it."""

    def __init__(self, backend: LocalBackend, bell: threading.Event, folder: Path) -> None:
        self._backend, self._bell, self._folder = backend, bell, folder
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
        starts = [self._start("/bin/true") for _ in range(count)]
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
def _backend(*, private: bool) -> Iterator[_Site]:
    folder = Path(tempfile.mkdtemp(prefix="bough-bench-")) / "local"
    bell = threading.Event()
    options = LocalOptions(folder=folder, gpus=8, private=private, limits=private)
    backend = LocalBackend(options, lambda: time.time_ns() // 1_000_000, bell.set)
    site = _Site(backend, bell, folder)
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
