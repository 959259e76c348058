"""A forwarded port beside a plain proxy on the same machine: a gigabyte through each, in turns.

The plain proxy is a process that copies between two sockets, as simply as Python can. Through the
port the same bytes pass two processes, each of which has a websocket on one side.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from tests.bench.report import Report
from tests.e2e.local import Local, hosting
from tests.e2e.served import PATIENCE_S
from tests.e2e.sessions import SERVICES, Forwarded, begin, started

SIZE, QUICK_SIZE = 1 << 30, 1 << 27
ROUNDS = 3
LEAST = 0.5
#: Copies one connection at a time, in both directions.
PROXY = """
import socket, sys, threading
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
def copy(source, target):
    buffer = memoryview(bytearray(256 << 10))
    while size := source.recv_into(buffer):
        target.sendall(buffer[:size])
    target.shutdown(socket.SHUT_WR)
while True:
    ours, _ = listening.accept()
    theirs = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    threading.Thread(target=copy, args=(ours, theirs), daemon=True).start()
    threading.Thread(target=copy, args=(theirs, ours), daemon=True).start()
"""
#: The ports of the services that a task has, too.
GIVE, COUNT = 7003, 7004


def run(report: Report) -> None:
    size = QUICK_SIZE if report.quick else SIZE
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        host = stack.enter_context(hosting(Path(folder), 1)).start()
        host.pool("p", 1)
        name = begin(host)
        plain_source = stack.enter_context(_plain_services())
        for what, port, move in (("from", GIVE, _take), ("to", COUNT, _give)):
            proxy = stack.enter_context(_plain_proxy(plain_source[port]))
            forwarded = stack.enter_context(_forwarded(host, name, port))
            took: dict[str, list[float]] = {"plain": [], "forwarded": []}
            for _ in range(ROUNDS):
                took["plain"].append(move(proxy, size))
                took["forwarded"].append(move(forwarded, size))
            speeds = {each: size / median(times) / 1e6 for each, times in took.items()}
            ratio = speeds["forwarded"] / speeds["plain"]
            report.line(
                f"{size >> 20} MiB {what} a task: {speeds['forwarded']:.0f} MB/s, by a plain proxy "
                f"{speeds['plain']:.0f} MB/s"
            )
            goal = f"at least {LEAST}"
            report.goal(f"forwarded beside plain, {what}", f"{ratio:.2f}", goal, met=ratio >= LEAST)


def _take(port: int, size: int) -> float:
    """How long it takes until so much has come."""
    buffer = memoryview(bytearray(1 << 20))
    begun = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as connection:
        connection.sendall(f"{size}\n".encode())
        while found := connection.recv_into(buffer):
            size -= found
    if size:
        raise RuntimeError(f"{size} bytes did not come")
    return time.perf_counter() - begun


def _give(port: int, size: int) -> float:
    """How long it takes until so much was received on the other side."""
    block = memoryview(bytes(1 << 20))
    begun = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as connection:
        for _ in range(size >> 20):
            connection.sendall(block)
        connection.shutdown(socket.SHUT_WR)
        counted = int(connection.makefile("rb").read())
    if counted != size:
        raise RuntimeError(f"{counted} of {size} bytes came")
    return time.perf_counter() - begun


@contextmanager
def _forwarded(host: Local, name: str, port: int) -> Iterator[int]:
    with started(host, "port-forward", name, "main", f"0:{port}") as process:
        yield Forwarded(process).port


@contextmanager
def _plain_services() -> Iterator[dict[int, int]]:
    """The same services without a task, at ports of the machine's choice."""
    text = SERVICES.replace('create_server(("127.0.0.1", port))', 'create_server(("127.0.0.1", 0))')
    text = text.replace("def accept", "print(port, listening.getsockname()[1])\n    def accept")
    text = text.replace('("127.0.0.1", 7002)', '("127.0.0.1", 0)')
    with _running(text) as process:
        found: dict[int, int] = {}
        while (line := process.stdout.readline().split()) != ["ready"]:
            found[int(line[0])] = int(line[1])
        yield found


@contextmanager
def _plain_proxy(port: int) -> Iterator[int]:
    with _running(PROXY, str(port)) as process:
        yield int(process.stdout.readline())


@contextmanager
def _running(text: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-u", "-c", text, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


if __name__ == "__main__":
    run(Report("sessions"))
