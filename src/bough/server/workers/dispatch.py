"""Accepts connections, and gives each to the worker that has the fewest.

Workers that accept for themselves would take what they find: one could get all connections of a
burst, and the others none. Where no worker can take one, connections wait in the kernel.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
from collections import deque
from time import monotonic

from bough.server.connections import ACCEPTED_AT_ONCE, ALL, BACKLOG
from bough.server.workers.passed_connections import (
    ForSession,
    NewConnection,
    Taken,
    drop,
    give,
    receive,
)
from bough.server.workers.shared_counts import SharedTally

LOG = logging.getLogger(__name__)

#: A worker that has not taken a connection for so long gets more only if there is no other.
_STUCK_S = 0.5
#: How long to wait after connections could not be accepted, or not be given away.
_PAUSE_S = 0.05


class _Taker:
    """A worker that takes connections."""

    def __init__(self, hands: socket.socket) -> None:
        self.hands = hands
        #: Given, and not yet taken; each with the moment when it was given.
        self.given: deque[tuple[socket.socket, float]] = deque()
        self._taken = 0

    @property
    def stuck(self) -> bool:
        """Whether it does not take what it is given."""
        return bool(self.given) and monotonic() - self.given[0][1] > _STUCK_S

    def leave(self) -> list[socket.socket]:
        """It is gone; what it has not taken."""
        self.hands.close()
        return [connection for connection, _ in self.given]

    def note(self, taken: int) -> None:
        """It has taken so many in all; it has the only descriptor of them now."""
        while self.given and self._taken < taken:
            self.given.popleft()[0].close()
            self._taken += 1


class Dispatcher:
    """Gives the connections of a socket to workers, in a thread of its own."""

    def __init__(self, tally: SharedTally) -> None:
        self._tally = tally
        self._listener: socket.socket | None = None
        self._wakes = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()
        self._takers: dict[int, _Taker] = {}
        #: Accepted, and taken by no worker so far.
        self._left: deque[socket.socket] = deque()
        self._last = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dispatcher", daemon=True)

    def start(self, listener: socket.socket) -> None:
        """Accept from now on."""
        listener.setblocking(False)
        listener.listen(BACKLOG)
        self._listener = listener
        self._thread.start()

    def stop_accepting(self) -> None:
        """Let connections wait for the next server; sessions can still get theirs."""
        self._listener = None
        self._wake()

    def stop(self) -> None:
        """End."""
        self._stopping.set()
        self._wake()
        if self._thread.is_alive():
            self._thread.join()
        for each in list(self._takers):
            self.leave(each)
        for each in self._left:
            drop(each)
        os.close(self._wakes)

    def join(self, worker: int, hands: socket.socket) -> None:
        """A worker can take connections."""
        with self._lock:
            self._takers[worker] = _Taker(hands)
        self._wake()

    def leave(self, worker: int) -> None:
        """A worker is gone; what it has not taken goes to others."""
        with self._lock:
            taker = self._takers.pop(worker, None)
            if taker is not None:
                # What it has taken it has said before its end.
                self._hear_last(taker)
                self._left.extend(taker.leave())
        self._wake()

    def _wake(self) -> None:
        if not self._stopping.is_set() or self._thread.is_alive():
            os.eventfd_write(self._wakes, 1)

    # In the thread

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._step()
            except OSError as error:
                LOG.warning("connections cannot be accepted: %s", error.strerror)
                self._stopping.wait(1.0)
            except Exception:
                LOG.exception("connections cannot be accepted")
                self._stopping.wait(1.0)

    def _step(self) -> None:
        listener = self._listener
        waiting = select.poll()
        waiting.register(self._wakes, select.POLLIN)
        with self._lock:
            hands = {taker.hands.fileno(): number for number, taker in self._takers.items()}
            ready = self._is_any_free()
        for each in hands:
            waiting.register(each, select.POLLIN)
        if listener is not None and ready and not self._left:
            waiting.register(listener, select.POLLIN)
        pause = _PAUSE_S * 1_000 if self._left else None
        for descriptor, _ in waiting.poll(pause):
            if descriptor == self._wakes:
                os.eventfd_read(self._wakes)
            elif descriptor in hands:
                self._hear(hands[descriptor])
            elif listener is not None:
                self._accept(listener)
        self._give_left()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            self._left.append(connection)
            self._give_left()
            if self._left:
                return

    def _give_left(self) -> None:
        while self._left:
            with self._lock:
                if not self._give(self._left[0]):
                    return
                self._left.popleft()

    def _is_any_free(self) -> bool:
        return any(len(each.given) < ACCEPTED_AT_ONCE for each in self._takers.values())

    def _give(self, connection: socket.socket) -> bool:
        """Give a connection to the worker with the fewest that can take one; whether one could."""
        counts = self._tally.of_each(ALL)
        numbers = range(1, len(counts) + 1)
        # Of several the one whose turn it is.
        turns = [(self._last + each) % len(counts) for each in numbers]
        able = [
            each
            for each in turns
            if each in self._takers and len(self._takers[each].given) < ACCEPTED_AT_ONCE
        ]
        able.sort(key=lambda each: self._burden(each, counts[each]))
        for each in able:
            taker = self._takers[each]
            try:
                give(taker.hands, NewConnection(), connection)
            except OSError:
                # It takes none now, or is gone, which is noticed elsewhere.
                continue
            taker.given.append((connection, monotonic()))
            self._last = each
            return True
        return False

    def _burden(self, worker: int, count: int) -> tuple[bool, int]:
        taker = self._takers[worker]
        return taker.stuck, count + len(taker.given)

    def _hear(self, worker: int) -> None:
        with self._lock:
            taker = self._takers.get(worker)
            if taker is None:
                return
            try:
                while (said := receive(taker.hands)) is not None:
                    self._handle(taker, *said)
            except EOFError:
                # Its watch says the rest; until then there is nothing to hear.
                del self._takers[worker]
                self._left.extend(taker.leave())

    def _hear_last(self, taker: _Taker) -> None:
        try:
            while (said := receive(taker.hands)) is not None:
                self._handle(taker, *said)
        except EOFError:
            pass

    def _handle(
        self,
        taker: _Taker,
        said: NewConnection | Taken | ForSession,
        connection: socket.socket | None,
    ) -> None:
        if isinstance(said, Taken):
            taker.note(said.count)
        elif isinstance(said, ForSession) and said.worker in self._takers:
            try:
                give(self._takers[said.worker].hands, said, connection)
            except OSError:
                LOG.warning("a connection of a session could not be passed on, and is closed")
        drop(connection)
