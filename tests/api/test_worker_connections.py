"""A worker counts every connection that it is given, and says so before it reads anything of it."""

from __future__ import annotations

import asyncio
import os
import resource
import select
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager

import anyio
import pytest
from litestar import Litestar

from bough.model.session import SessionConnection
from bough.server.connections import Bounds, OpenConnections
from bough.server.process_channel import Line
from bough.server.workers import worker_process
from bough.server.workers.dispatch import Dispatcher
from bough.server.workers.messages import FROM_WORKER
from bough.server.workers.passed_connections import (
    ForSession,
    NewConnection,
    Taken,
    give,
    make_hands,
    receive,
)
from bough.server.workers.server_link import ServerLink
from bough.server.workers.shared_counts import SharedTally, make_memory
from bough.server.workers.worker_process import WorkerServer
from tests.api.house import House
from tests.store.databases import SqliteFiles

#: For a machine that is busy with other tests.
PATIENCE_S = 60
REQUEST = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Worker:
    """A worker that answers in this process."""

    def __init__(self, application: Litestar, stack: ExitStack) -> None:
        #: The server's end of the way for connections, and the worker's.
        self.ours, self.theirs = make_hands()
        stack.callback(self.theirs.close)
        ours, theirs = (stack.enter_context(each) for each in socket.socketpair())
        ours.settimeout(PATIENCE_S)
        self._line = Line(ours)
        self.server = WorkerServer(
            application,
            OpenConnections(Bounds()),
            threading.Event(),
            self.theirs,
            ServerLink(Line(theirs), lambda: None),
        )

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        serving = asyncio.create_task(self.server._serve([]))
        while not self.server.started:
            await asyncio.sleep(0.005)
        try:
            yield
        finally:
            self.server.should_exit = True
            await serving

    async def live_on(self) -> None:
        """Go on for some of its beats."""
        for _ in range(5):
            await anyio.to_thread.run_sync(self._line.read, FROM_WORKER)

    def await_given(self) -> None:
        """Wait until it is given something, which it has then not taken."""
        assert select.select([self.theirs], [], [], PATIENCE_S)[0]

    def take(self) -> None:
        """Take what it is given, as soon as there is something."""
        self.await_given()
        self.server._take()


@pytest.fixture
def worker(sqlite_files: SqliteFiles, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    monkeypatch.setattr(worker_process, "BEAT_S", 0.02)
    with ExitStack() as stack:
        address = sqlite_files.make()
        stack.callback(sqlite_files.give_back, address)
        house = House(sqlite_files.open(address))
        stack.callback(house.engine._scheduler.release)
        yield Worker(house.application, stack)


def test_a_connection_that_comes_while_no_file_can_be_opened_is_closed_and_others_are_served(
    worker: Worker,
):
    async def run(listener: socket.socket) -> None:
        async with worker.answering():
            with _connected(listener) as lost:
                # The dispatcher of this process needs a file to accept it.
                worker.await_given()
                with _no_more_files():
                    worker.take()
                assert b"" == await anyio.to_thread.run_sync(lost.recv, 100)
            with _connected(listener) as served:
                served.sendall(REQUEST)
                worker.take()
                # To its end: no other process has it open.
                answer = await anyio.to_thread.run_sync(_read_all, served)
                assert answer.startswith(b"HTTP/1.1 200 ")

    with ExitStack() as stack:
        memory = make_memory(1, 32)
        stack.callback(os.close, memory)
        dispatcher = Dispatcher(SharedTally(memory, 1))
        stack.callback(dispatcher.stop)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        dispatcher.join(0, worker.ours)
        dispatcher.start(listener)
        anyio.run(run, listener)


def test_nothing_is_read_of_a_connection_until_the_server_can_hear_that_it_is_taken(
    worker: Worker,
):
    async def run(client: socket.socket, given: socket.socket) -> None:
        async with worker.answering():
            _fill(worker.theirs)
            client.sendall(REQUEST)
            give(worker.ours, NewConnection(), given)
            worker.take()
            await worker.live_on()
            assert REQUEST == given.recv(1_000, socket.MSG_PEEK)
            given.close()
            while (said := receive(worker.ours)) is not None:
                assert isinstance(said[0], ForSession)
            assert (Taken(1), None) == await _until(lambda: receive(worker.ours))
            answer = await anyio.to_thread.run_sync(_read_all, client)
            assert answer.startswith(b"HTTP/1.1 200 ")

    with (
        worker.ours,
        socket.create_server(("127.0.0.1", 0)) as listener,
        _connected(listener) as client,
    ):
        given, _ = listener.accept()
        anyio.run(run, client, given)


def _connected(listener: socket.socket) -> socket.socket:
    return socket.create_connection(listener.getsockname(), PATIENCE_S)


def _read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(4_096), b""))


def _fill(hands: socket.socket) -> None:
    """Say so much that nothing more can be said."""
    for size in (10_000, 0):
        try:
            while True:
                give(hands, ForSession(0, SessionConnection(bytes(size), b"", "")))
        except BlockingIOError:
            pass


async def _until(find: Callable[[], object]) -> object:
    with anyio.fail_after(PATIENCE_S):
        while (found := find()) is None:
            await asyncio.sleep(0.005)
    return found


@contextmanager
def _no_more_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
