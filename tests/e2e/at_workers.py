"""Requests to one worker of a server: which worker has a connection is read from the system."""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.crash.server import children
from tests.e2e.served import PATIENCE_S

_ESTABLISHED = "01"


class Answer(NamedTuple):
    """An answer, read whole."""

    status: int
    body: Any


def workers_of(server: int) -> list[int]:
    """The workers of a server, by their processes."""
    return [pid for pid in children(server) if "worker_process" in _command(pid)]


@contextmanager
def connected(address: str, server: int, worker: int) -> Iterator[socket.socket]:
    """A connection that a worker has."""
    parts = urlsplit(address)
    with ExitStack() as others:
        for _ in range(50):
            # Those of other workers stay open, so that these have more than this one.
            made = others.enter_context(
                socket.create_connection((parts.hostname or "", parts.port or 0), PATIENCE_S)
            )
            if worker == holder_of(made, server):
                yield made
                return
    raise AssertionError(f"worker {worker} gets no connection")


def holder_of(connection: socket.socket, server: int) -> int:
    """The worker that has the other end of a connection."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        link = f"socket:[{_inode(connection)}]"
        for pid in workers_of(server):
            if link in _links(pid):
                return pid
        time.sleep(0.01)
    raise AssertionError("no worker has the connection")


def ask(
    address: str,
    server: int,
    worker: int,
    method: str,
    path: str,
    *,
    token: str = "",
    body: Any = None,
) -> Answer:
    """Ask one worker, over a connection of its own."""
    with connected(address, server, worker) as connection:
        asked = http.client.HTTPConnection("localhost")
        asked.sock = connection
        headers = {"authorization": f"Bearer {token}"} if token else {}
        content = None if body is None else json.dumps(body)
        asked.request(method, path, content, headers)
        answer = asked.getresponse()
        text = answer.read().decode()
    with suppress(ValueError):
        return Answer(answer.status, json.loads(text))
    return Answer(answer.status, text)


def begin_stream(connection: socket.socket, path: str, token: str) -> int:
    """Ask for a stream; the status of the answer."""
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    connection.sendall(head.encode())
    return int(connection.recv(4_096).split(b" ", 2)[1])


def _inode(connection: socket.socket) -> str:
    """The number of the other end of a connection of this machine."""
    own, other = (_port(each) for each in (connection.getsockname(), connection.getpeername()))
    with open("/proc/net/tcp") as table:
        for line in table:
            fields = line.split()
            ends = tuple(each.rpartition(":")[2] for each in fields[1:3])
            if ends == (other, own) and fields[3] == _ESTABLISHED:
                return fields[9]
    return ""


def _port(address: tuple[str, int]) -> str:
    return f"{address[1]:04X}"


def _links(pid: int) -> set[str]:
    found: set[str] = set()
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""
