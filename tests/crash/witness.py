"""Sees which tasks run: each task stays connected to it for as long as it lives.

A process that dies, however it does, loses its connection; so what is open runs, and what is closed
does not.
"""

from __future__ import annotations

import select
import selectors
import socket
import threading
import time
from contextlib import suppress
from typing import Self

import msgspec

#: The kernel may take a moment to bring the end of a connection here when the machine is busy.
LATE_S = 0.3


class Run(msgspec.Struct):
    """One process of a task, from its first word to its end."""

    attempt: str
    gpus: tuple[int, ...]
    job: str
    task: str
    #: By its own clock.
    started_s: float
    #: Its connection is closed.
    over: bool = False
    #: `done` or `told`, if it could say so before its end; how many lines it had printed; and when.
    farewell: str | None = None
    lines: int | None = None
    farewell_s: float | None = None


class Witness:
    """Listens on the loopback, in a thread of its own."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self.runs: list[Run] = []
        #: Sentences about what must never be seen.
        self.wrongs: list[str] = []
        self._open: dict[socket.socket, Run | None] = {}
        self._text: dict[socket.socket, bytes] = {}
        self._holders: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="witness", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for each in (*self._open, self._listener):
            each.close()
        self._selector.close()

    @property
    def living(self) -> list[Run]:
        """What runs now."""
        return [run for run in list(self._open.values()) if run is not None]

    def _watch(self) -> None:
        while not self._stop.is_set():
            for key, _ in self._selector.select(0.1):
                if key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket) and key.fileobj in self._open:
                    self._read(key.fileobj)

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            while True:
                connection, _ = self._listener.accept()
                connection.setblocking(False)
                self._open[connection] = None
                self._text[connection] = b""
                self._selector.register(connection, selectors.EVENT_READ)

    def _read(self, connection: socket.socket) -> None:
        """Everything that it has said, and whether it has gone."""
        gone = False
        with suppress(BlockingIOError):
            while not gone:
                try:
                    chunk = connection.recv(65_536)
                except ConnectionResetError:
                    chunk = b""
                self._text[connection] += chunk
                gone = not chunk
        *lines, rest = self._text[connection].split(b"\n")
        self._text[connection] = rest
        for line in lines:
            self._hear(connection, line.decode().split())
        if gone:
            self._leave(connection)

    def _hear(self, connection: socket.socket, words: list[str]) -> None:
        run = self._open[connection]
        if words[0] == "start":
            _, attempt, gpus, job, task, at_s = words
            indices = () if gpus == "none" else tuple(map(int, gpus.split(",")))
            run = Run(attempt, indices, job, task, float(at_s))
            self._open[connection] = run
            self.runs.append(run)
            self._take(connection, run)
        elif run is not None:
            run.farewell, run.lines, run.farewell_s = words[0], int(words[1]), float(words[2])

    def _take(self, connection: socket.socket, run: Run) -> None:
        """A GPU has one holder: the one before has gone by now."""
        for gpu in run.gpus:
            holder = self._holders.get(gpu)
            if holder is not None and holder in self._open:
                self._await_end(holder)
                other = self._open.get(holder)
                if other is not None:
                    self.wrongs.append(
                        f"GPU {gpu} is given to {run.job}/{run.task} ({run.attempt}) while "
                        f"{other.job}/{other.task} ({other.attempt}) has it"
                    )
            self._holders[gpu] = connection

    def _await_end(self, connection: socket.socket) -> None:
        deadline = time.monotonic() + LATE_S
        while connection in self._open and (left := deadline - time.monotonic()) > 0:
            select.select([connection], [], [], left)
            self._read(connection)

    def _leave(self, connection: socket.socket) -> None:
        run = self._open.pop(connection)
        if run is not None:
            run.over = True
        del self._text[connection]
        self._selector.unregister(connection)
        connection.close()
