"""Short workflows that really run: 2,000 tasks on 100 offered GPUs, in three parts.

First a few, one after the other, for how long it takes from a submission to a running process. Then
more than there are GPUs for, each some seconds long, for how long a GPU is idle between two of
them. Then all the others as fast as they can be submitted, which end at once, for how many run in a
second: there the machine is the limit, and a GPU is idle for as long as all of them need for one
each. Each task prints its GPU, and when it begins and ends. Everything is bounded in time.
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
#: How long a part may take.
SECONDS = 90.0
TEXT = """\
workflow:
  name: short
  resources: {default: {gpu: 1, cpu: 0, memory: 0Gi, storage: 0Gi}}
  tasks:
  - name: main
    image: any
    command: [bash, -c]
    args: ["echo $EPOCHREALTIME $CUDA_VISIBLE_DEVICES; sleep SECONDS; echo $EPOCHREALTIME"]
"""


class Part(NamedTuple):
    """Some of the workflows."""

    what: str
    number: int
    clients: int = 1
    pause_s: float = 0.0
    #: How long a task lasts.
    task_s: int = 0


PARTS = (
    Part("one after the other", 200, pause_s=0.05),
    Part("all GPUs busy, with tasks of 8 s", 500, clients=4, task_s=8),
    Part("all at once, with tasks that end at once", 1_300, clients=4),
)


class Ran(NamedTuple):
    """A task that ran: when, by the system's clock, and on which GPU."""

    from_s: float
    until_s: float
    gpu: int


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="bough-bench-") as name:
        server = Server(Path(name), gpus=GPUS)
        with Shares(server) as shares:
            server.await_ready()
            client = server.client()
            client.pools.create("bench", {"resources": {"gpu": {"guarantee": GPUS}}})
            sent = [_submit(report, server, shares, part) for part in PARTS]
            ran = _read_logs(server)
            server.stop()
        for part, times in zip(PARTS, sent, strict=True):
            _tell(report, part, ran, times)


def _submit(report: Report, server: Server, shares: Shares, part: Part) -> dict[str, float]:
    """Submit some, and wait for their end; when each was sent, by its identifier."""
    sent: dict[str, float] = {}
    spent = shares.look()
    numbers = count()
    deadline = time.monotonic() + SECONDS
    text = TEXT.replace("sleep SECONDS", f"sleep {part.task_s}" if part.task_s else "true")

    def work() -> None:
        client = server.client()
        while next(numbers) < part.number and time.monotonic() < deadline:
            at_s = time.time()
            sent[client.workflows.submit("bench", text).name] = at_s
            time.sleep(part.pause_s)

    begun = time.monotonic()
    threads = [threading.Thread(target=work) for _ in range(part.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    submitted_s = time.monotonic() - begun
    ended = _wait(server.client(), deadline)
    elapsed_s = time.monotonic() - begun
    report.line(
        f"{part.what}: {len(sent)} workflows submitted in {submitted_s:.1f} s, "
        f"{'all ended' if ended else 'NOT all ended'} after {elapsed_s:.1f} s"
    )
    for line in shares.tell(spent, elapsed_s):
        report.line(f"  {line}")
    return sent


def _wait(client: Client, deadline: float) -> bool:
    """Wait until nothing is alive; whether that came about in time."""
    query = {"statuses": ["PENDING", "RUNNING"]}
    while client.workflows.list(limit=1, query=query).workflows:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def _read_logs(server: Server) -> dict[str, Ran]:
    """What every task printed, by the identifier of its workflow."""
    found: dict[str, Ran] = {}
    for attempt, (workflow, _) in read_record(server.database).attempts.items():
        folder = server.data / "local" / "attempts" / attempt.replace("/", "-")
        for log in folder.glob("log.*"):
            words = [line.partition(" o ")[2].split() for line in log.read_text().splitlines()]
            if len(words) == 2:
                (begin, gpu), (end,) = words
                found[workflow.workflow_id] = Ran(float(begin), float(end), int(gpu))
    return found


def _tell(report: Report, part: Part, ran: dict[str, Ran], sent: dict[str, float]) -> None:
    report.line(f"{part.what}:")
    found = {name: ran[name] for name in sent if name in ran}
    waits = [each.from_s - sent[name] for name, each in found.items()]
    report.line(f"  from submission to running process: {_text(waits)}")
    if part.clients > 1:
        gaps = _text(_gaps(found.values()))
        report.line(f"  from exit to the next start on the same GPU: {gaps}")
    took_s = max(each.until_s for each in found.values()) - min(sent.values())
    rate = len(found) / took_s
    report.line(f"  {len(found)} ended in {took_s:.1f} s: {rate:.0f} workflows a second")


def _gaps(ran: Iterable[Ran]) -> Iterator[float]:
    by_gpu: dict[int, list[Ran]] = defaultdict(list)
    for each in ran:
        by_gpu[each.gpu].append(each)
    for each in by_gpu.values():
        for before, after in pairwise(sorted(each)):
            yield after.from_s - before.until_s


def _text(seconds: Iterable[float]) -> str:
    found = Latencies(tuple(seconds), 0.0)
    return f"median {found.percentile_ms(50):.0f} ms, p99 {found.percentile_ms(99):.0f} ms"
