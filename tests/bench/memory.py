"""The memory of a server after many workflows went through, beside that after a few.

A server with the virtual backend, whose tasks end at once; workflows are submitted by eight clients
and run to their end. Memory is that of the server and of the processes that it started, each page
that several share counted once. Quickly, fewer go through.
"""

from __future__ import annotations

import re
import tempfile
import threading
import time
from itertools import count
from pathlib import Path

from bough.client import Client
from tests.api.served import Served
from tests.bench.report import Report
from tests.crash.server import children

FEW, MANY = 1_000, 100_000
CLIENTS = 8
#: How much more memory after many than after a few.
RATIO = 1.2
#: How long it may take altogether; what went through by then is told.
SECONDS = 2_400.0
TEXT = """\
workflow:
  name: short
  resources: {default: {gpu: 1, cpu: 0, memory: 0Gi, storage: 0Gi}}
  tasks:
  - {name: main, image: any, command: [sleep, "0"]}
"""
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


def run(report: Report) -> None:
    few, many = (FEW // 5, FEW) if report.quick else (FEW, MANY)
    seconds = 60.0 if report.quick else SECONDS
    with (
        tempfile.TemporaryDirectory(prefix="bough-bench-") as folder,
        Served(Path(folder) / "data", "--gpus", "100", "--namespace", "ns") as server,
    ):
        server.until(lambda: server.get("/health")["schedules"])
        _client(server).pools.create("bench", {"resources": {"gpu": {"guarantee": 100}}})
        deadline = time.monotonic() + seconds
        through = _send(server, few, deadline)
        first = memory_mib(server.process.pid)
        through += _send(server, many - through, deadline)
        last = memory_mib(server.process.pid)
        server.stop()
    ratio = last / first
    report.goal(
        f"memory after {through:,} workflows",
        f"{last:.0f} MiB, {ratio:.2f} of {first:.0f} MiB after {few:,}",
        f"at most {RATIO} after {MANY:,}",
        met=ratio <= RATIO and through >= many,
    )


def memory_mib(pid: int) -> float:
    """What a process and all that it started take."""
    texts = [_read(each) for each in (pid, *children(pid))]
    return sum(int(found) for text in texts for found in _PSS.findall(text)) / 1_024


def _read(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return ""


def _send(server: Served, number: int, deadline: float) -> int:
    """Submit so many, and wait for their end; how many went through in time."""
    numbers = count()
    sent = count()

    def work() -> None:
        client = _client(server)
        while next(numbers) < number and time.monotonic() < deadline:
            client.workflows.submit("bench", TEXT)
            next(sent)

    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _wait(_client(server), deadline)
    return next(sent)


def _client(server: Served) -> Client:
    return Client(server.address, server.token)


def _wait(client: Client, deadline: float) -> None:
    query = {"statuses": ["PENDING", "RUNNING"]}
    while client.workflows.list(limit=1, query=query).workflows and time.monotonic() < deadline:
        time.sleep(0.2)
