"""Connections are given to the worker with the fewest, and none is lost or served twice."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from bough.model.session import SessionConnection
from bough.server.bounded_counts import Want
from bough.server.connections import ALL
from bough.server.workers import dispatch
from bough.server.workers.dispatch import Dispatcher
from bough.server.workers.passed_connections import (
    ForSession,
    NewConnection,
    Taken,
    give,
    make_hands,
    receive,
)
from bough.server.workers.shared_counts import SharedTally, make_memory

#: For a machine that is busy with other tests.
PATIENCE_S = 60


class House:
    """A dispatcher with two workers, which take connections when the test wants them to."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.memory = make_memory(2, 32)
        stack.callback(os.close, self.memory)
        self.listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.dispatcher = Dispatcher(SharedTally(self.memory, 2))
        stack.callback(self.dispatcher.stop)
        self.dispatcher.start(self.listener)
        self._hands: dict[int, socket.socket] = {}

    def join(self, worker: int) -> None:
        ours, theirs = make_hands()
        self._hands[worker] = self._stack.enter_context(theirs)
        self.dispatcher.join(worker, ours)

    def connect(self, text: bytes = b"") -> socket.socket:
        """A client, which has sent something."""
        made = self._stack.enter_context(
            socket.create_connection(self.listener.getsockname(), PATIENCE_S)
        )
        made.sendall(text)
        return made

    def given(self, worker: int) -> socket.socket | None:
        """The next connection that a worker is given, which it has then not said to have."""
        found = receive(self._hands[worker])
        if found is None:
            return None
        said, connection = found
        assert isinstance(said, (NewConnection, ForSession))
        assert connection is not None
        connection.settimeout(PATIENCE_S)
        return self._stack.enter_context(connection)

    def await_given(self, worker: int) -> socket.socket:
        return _until(lambda: self.given(worker))

    def say_taken(self, worker: int, count: int) -> None:
        give(self._hands[worker], Taken(count))

    def pass_on(self, worker: int, message: ForSession, connection: socket.socket) -> None:
        give(self._hands[worker], message, connection)

    def await_unread(self, worker: int) -> None:
        """Wait until a worker has something to read."""
        assert select.select([self._hands[worker]], [], [], PATIENCE_S)[0]

    def die_at_once_after(self, worker: int, count: int) -> None:
        """A worker says how many it has taken, and is gone before the dispatcher hears it."""
        with self.dispatcher._lock:
            self.say_taken(worker, count)
            self._hands.pop(worker).close()
        self.dispatcher.leave(worker)

    def die(self, worker: int) -> None:
        self._hands.pop(worker).close()
        self.dispatcher.leave(worker)


@pytest.fixture
def house() -> Iterator[House]:
    with ExitStack() as stack:
        yield House(stack)


def _until(find: Callable[[], socket.socket | None]) -> socket.socket:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = find()
        if found is not None:
            return found
        time.sleep(0.005)
    raise AssertionError("it did not come about")


def test_a_burst_of_connections_is_divided_evenly(house: House):
    house.join(0)
    house.join(1)
    for _ in range(10):
        house.connect()
    for worker in (0, 1):
        for _ in range(5):
            house.await_given(worker)
        assert house.given(worker) is None


def test_a_connection_goes_to_the_worker_that_has_fewer(house: House):
    SharedTally(house.memory, 2, 0).take(Want(ALL, 4, None))
    house.join(0)
    house.join(1)
    for _ in range(4):
        house.connect()
        house.await_given(1)
    assert house.given(0) is None


def test_connections_wait_until_there_is_a_worker(house: House):
    house.connect(b"patient")
    house.join(0)
    assert b"patient" == house.await_given(0).recv(100)


def test_what_a_dead_worker_has_not_taken_goes_to_another_unread(house: House):
    house.join(0)
    client = house.connect(b"a request")
    house.await_given(0)
    house.join(1)
    house.die(0)
    found = house.await_given(1)
    assert b"a request" == found.recv(100)
    found.sendall(b"an answer")
    assert b"an answer" == client.recv(100)


def test_what_a_dead_worker_has_taken_is_not_served_again(house: House):
    house.join(0)
    client = house.connect()
    house.await_given(0).close()
    house.say_taken(0, 1)
    house.join(1)
    house.die(0)
    # Its client learns that it is gone: no process has it any more.
    assert b"" == client.recv(100)
    assert house.given(1) is None


def test_what_a_worker_said_before_its_end_is_heard_though_it_left_something_unread(house: House):
    house.join(0)
    taken = house.connect(b"for the first")
    with house.await_given(0) as first:
        assert b"for the first" == first.recv(100)
    left = house.connect(b"not taken")
    house.await_unread(0)
    house.die_at_once_after(0, 1)
    house.join(1)
    found = house.await_given(1)
    assert b"not taken" == found.recv(100)
    found.sendall(b"an answer")
    assert b"an answer" == left.recv(100)
    assert house.given(1) is None
    # Its client learns that it is gone.
    assert b"" == taken.recv(100)


def test_a_worker_that_takes_nothing_gets_one_connection_and_others_the_rest(
    house: House, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(dispatch, "_STUCK_S", 0.0)
    SharedTally(house.memory, 2, 1).take(Want(ALL, 1, None))
    house.join(0)
    house.join(1)
    house.connect()
    house.await_given(0)
    for number in range(5):
        house.connect()
        house.await_given(1)
        house.say_taken(1, number + 1)
        _until_taken(house, 1)
    assert house.given(0) is None


def test_a_connection_for_a_session_is_passed_on_to_the_worker_that_has_it(house: House):
    house.join(0)
    house.join(1)
    client = house.connect()
    mine = _until(lambda: house.given(0) or house.given(1))
    house.pass_on(0, ForSession(1, SessionConnection(b"head", b"rest", "key")), mine)
    mine.close()
    found = house.await_given(1)
    client.sendall(b"more")
    assert b"more" == found.recv(100)


def _until_taken(house: House, worker: int) -> None:
    takers = house.dispatcher._takers
    deadline = time.monotonic() + PATIENCE_S
    while takers[worker].given:
        assert time.monotonic() < deadline
        time.sleep(0.005)
