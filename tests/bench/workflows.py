"""Short workflows that really run: 2,000 tasks that end at once, on 100 offered GPUs.

First a few at a time, for how long it takes from a submission to a running process; then all the
others as fast as they can be submitted, for how many run in a second and how long a GPU is idle
between two of them. Each task prints its own time and GPU, which is both its start and, to within a
millisecond, its end. Everything is bounded in time.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import NamedTuple

from bough.client import Client
from tests.bench.crowd import Latencies
from tests.bench.report import Report
from tests.bench.shares import Shares
from tests.crash.record import read_record
from tests.crash.server import Server

GPUS = 100
WORKFLOWS = 2_000
#: Of them, so many are submitted one after the other, with a pause between them.
ALONE = 200
PAUSE_S = 0.05
CLIENTS = 4
#: How long a part may take.
SECONDS = 60.0
TEXT = """\
workflow:
  name: short
  resources: {default: {gpu: 1, cpu: 0, memory: 0Gi, storage: 0Gi}}
  tasks:
  - name: main
    image: any
    command: [bash, -c]
    args: ["echo $EPOCHREALTIME $CUDA_VISIBLE_DEVICES"]
"""


class Started(NamedTuple):
    """A task that ran: when, by the system's clock, and on which GPU."""

    at_s: float
    gpu: int


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="bough-bench-") as name:
        server = Server(Path(name), gpus=GPUS)
        with Shares(server) as shares:
            server.await_ready()
            client = server.client()
            client.pools.create("bench", {"resources": {"gpu": {"guarantee": GPUS}}})
            first = _part(report, server, shares, "one after the other", 1, ALONE, PAUSE_S)
            others = WORKFLOWS - len(first)
            rest = _part(report, server, shares, f"{CLIENTS} clients", CLIENTS, others, 0.0)
            started = _started(server)
            server.stop()
        _tell(report, started, first, rest)


def _part(
    report: Report,
    server: Server,
    shares: Shares,
    what: str,
    clients: int,
    number: int,
    pause_s: float,
) -> dict[str, float]:
    """Submit some, and wait for their end; when each was sent, by its identifier."""
    sent: dict[str, float] = {}
    spent = shares.look()
    numbers = count()
    deadline = time.monotonic() + SECONDS

    def work() -> None:
        client = server.client()
        while next(numbers) < number and time.monotonic() < deadline:
            at_s = time.time()
            sent[client.workflows.submit("bench", TEXT)["name"]] = at_s
            time.sleep(pause_s)

    begun = time.monotonic()
    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    submitted_s = time.monotonic() - begun
    ended = _wait(server.client(), deadline)
    elapsed_s = time.monotonic() - begun
    report.line(
        f"{what}: {len(sent)} workflows submitted in {submitted_s:.1f} s, "
        f"{'all ended' if ended else 'NOT all ended'} after {elapsed_s:.1f} s"
    )
    for line in shares.tell(spent, elapsed_s):
        report.line(f"  {line}")
    return sent


def _wait(client: Client, deadline: float) -> bool:
    """Wait until nothing is alive; whether that came about in time."""
    query = {"statuses": ["PENDING", "RUNNING"]}
    while client.workflows.list(limit=1, query=query)["workflows"]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def _started(server: Server) -> dict[str, Started]:
    """What every task printed, by the identifier of its workflow."""
    found: dict[str, Started] = {}
    for attempt, (workflow, _) in read_record(server.database).attempts.items():
        folder = server.data / "local" / "attempts" / attempt.replace("/", "-")
        for log in folder.glob("log.*"):
            _, _, text = log.read_text().partition(" o ")
            at_s, gpu = text.split()
            found[workflow.workflow_id] = Started(float(at_s), int(gpu))
    return found


def _tell(
    report: Report, started: dict[str, Started], first: dict[str, float], rest: dict[str, float]
) -> None:
    for what, sent in (("one after the other", first), ("all at once", rest)):
        waits = [started[name].at_s - at_s for name, at_s in sent.items() if name in started]
        report.line(f"from submission to running process, {what}: {_text(waits)}")
    ran = [started[name] for name in rest if name in started]
    report.line(f"from exit to the next start on the same GPU: {_text(_gaps(ran))}")
    took_s = max(each.at_s for each in ran) - min(rest.values())
    report.line(f"{len(ran)} in {took_s:.1f} s: {len(ran) / took_s:.0f} workflows a second")


def _gaps(ran: Iterable[Started]) -> Iterator[float]:
    by_gpu: dict[int, list[float]] = defaultdict(list)
    for each in ran:
        by_gpu[each.gpu].append(each.at_s)
    for times in by_gpu.values():
        yield from (after - before for before, after in pairwise(sorted(times)))


def _text(seconds: Iterable[float]) -> str:
    found = Latencies(tuple(seconds), 0.0)
    return f"median {found.percentile_ms(50):.0f} ms, p99 {found.percentile_ms(99):.0f} ms"
