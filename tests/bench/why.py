"""Many who ask why they wait, each for a workflow of its own, while others go on submitting.

What an answer costs is the CPU time of the server, its loop included, less what the submissions
alone cost just before.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.api.served import Served
from tests.bench import crowd
from tests.bench.apiserver_cost import process_s
from tests.bench.clients import Client, at_once
from tests.bench.report import Report
from tests.crash.server import children

ASKERS, QUESTIONS = 8, 800
#: Submissions for each second, meanwhile, and how long they are watched alone.
RATE, ALONE_S = 10, 10.0
GOAL_MS = 10.0


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="bough-bench-") as folder:
        url = f"sqlite:///{folder}/filled.db"
        token = crowd.fill(url, crowd.WAITING)
        options = ("--database", url, "--gpus", str(crowd.GPUS), "--namespace", crowd.NAMESPACE)
        with Served(Path(folder) / "data", *options) as server:
            health = Client(server.address, token)
            server.until(lambda: health.get("/health")["schedules"])
            with _submissions(server.address, token):
                _measure(report, server, token)
            server.stop()


def _measure(report: Report, server: Served, token: str) -> None:
    pids = (server.process.pid, *children(server.process.pid))
    before = _spent(pids)
    time.sleep(ALONE_S)
    alone = (_spent(pids) - before) / ALONE_S
    before = _spent(pids)
    found = at_once(ASKERS, lambda: _asker(server.address, token), calls=QUESTIONS, seconds=60)
    used = _spent(pids) - before - alone * found.elapsed_s
    answered, each_ms = len(found.seconds), used / max(1, len(found.seconds)) * 1e3
    report.line(f"{ASKERS} askers, {crowd.WAITING} wait, {RATE} submissions/s: {found.text()}")
    report.goal(
        f"why, {ASKERS} askers, {crowd.WAITING} wait",
        f"{answered} of {QUESTIONS} answered, {each_ms:.1f} ms of CPU each",
        f"all, at most {GOAL_MS:.0f} ms",
        met=answered == QUESTIONS and each_ms <= GOAL_MS,
    )


def _spent(pids: tuple[int, ...]) -> float:
    return sum(process_s(pid) for pid in pids)


def _asker(address: str, token: str) -> Callable[[int], object]:
    client = Client(address, token)
    # Those with the lowest numbers run.
    return lambda number: client.get(f"/api/workflow/filled-{crowd.GPUS + 7 * number}/why")


@contextmanager
def _submissions(address: str, token: str) -> Iterator[None]:
    """Somewhere else, a client submits steadily."""
    client, over = Client(address, token), threading.Event()

    def work() -> None:
        number = 0
        while not over.wait(1 / RATE):
            client.submit(number)
            number += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
