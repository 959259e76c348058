"""Starts a worker, watches it, and replaces it when it is gone."""

from __future__ import annotations

import socket
from collections.abc import Callable

import msgspec

from bough.server.child_watch import Child, ChildWatch
from bough.server.process_channel import Failed
from bough.server.workers.dispatch import Dispatcher
from bough.server.workers.messages import FROM_WORKER, Beat, FromWorker, Standing, WorkerReady
from bough.server.workers.passed_connections import make_hands
from bough.server.workers.shared_counts import SharedTally
from bough.server.workers.worker_requests import Caller, Desk

_MODULE = "bough.server.workers.worker_process"


class Shared(msgspec.Struct, frozen=True):
    """What all workers of a server have in common."""

    #: Descriptors: of the memory with the counts, and of the loop's bell.
    memory: int
    bell: int
    tally: SharedTally
    desk: Desk
    dispatcher: Dispatcher
    #: Makes the first message for a worker.
    begin: Callable[[int], msgspec.Struct]
    #: How the server is now, for all workers, and what says to all that this has changed.
    standing: Callable[[], Standing]
    changed: Callable[[], None]


class WorkerWatch(ChildWatch):
    """The server's side of one worker."""

    def __init__(self, worker: int, shared: Shared) -> None:
        """worker:  its number, from 0."""
        child = Child(
            f"worker {worker + 1}",
            _MODULE,
            descriptors=self._make_descriptors,
            begin_message=lambda: shared.begin(worker),
            read=lambda line: line.read(FROM_WORKER),
            hear=self._hear,
            started=self._started,
            gone=self._forget,
        )
        super().__init__(child)
        self.worker = worker
        self._shared = shared
        self._hands: socket.socket | None = None
        self._theirs: socket.socket | None = None
        self._caller: Caller | None = None

    def tell(self, standing: Standing) -> None:
        """Say how the server is."""
        if self._ready_at is not None:
            self._send(standing)

    # In the thread

    def _make_descriptors(self) -> tuple[int, ...]:
        self._hands, self._theirs = make_hands()
        return (self._theirs.fileno(), self._shared.memory, self._shared.bell)

    def _started(self) -> None:
        if self._theirs is not None:
            self._theirs.close()

    def _hear(self, said: FromWorker) -> None:
        if isinstance(said, Beat):
            return
        if isinstance(said, WorkerReady):
            self._enter()
            self._became_ready(said)
            self._send(self._shared.standing())
            self._shared.changed()
        elif isinstance(said, Failed):
            self._could_not_start(said.error())
        elif self._caller is not None:
            self._shared.desk.hear(self._caller, said)

    def _enter(self) -> None:
        if self._line is None or self._hands is None:
            return
        self._caller = Caller(self.worker, self._line, self._kill)
        self._shared.desk.enter(self._caller)
        # The dispatcher has a descriptor of its own, and closes it itself.
        copied = self._hands.dup()
        copied.setblocking(False)
        self._shared.dispatcher.join(self.worker, copied)

    def _forget(self) -> None:
        """What it had is free: connections that it did not take go to others."""
        self._shared.tally.clear(self.worker)
        self._shared.dispatcher.leave(self.worker)
        if self._caller is not None:
            self._shared.desk.leave(self._caller)
            self._caller = None
        if self._hands is not None:
            self._hands.close()
            self._hands = None
        self._shared.changed()
