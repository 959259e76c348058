"""The workers of a server, from its start to its end."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import msgspec

from bough.control.clock import SteadyClock
from bough.server.loop_watch import LoopWatch
from bough.server.process_channel import write_settings
from bough.server.settings import Settings
from bough.server.workers.dispatch import Dispatcher
from bough.server.workers.messages import BeginWorker, Standing
from bough.server.workers.shared_counts import SharedTally, make_memory
from bough.server.workers.worker_requests import Desk
from bough.server.workers.worker_watch import Shared, WorkerWatch

#: How often to look whether the loop is as workers were told.
_LOOK_S = 0.2
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Workers:
    """Starts the workers, gives them connections, and ends them."""

    def __init__(self, settings: Settings, clock: SteadyClock, loop: LoopWatch) -> None:
        self._settings = settings
        self._clock = clock
        self._loop = loop
        self._public_url = ""
        self._last_event = 0
        self._memory = make_memory(settings.workers, settings.connections)
        tally = SharedTally(self._memory, settings.workers)
        self._dispatcher = Dispatcher(tally)
        self._changed = threading.Event()
        self._stopped = threading.Event()
        self._telling = threading.Thread(target=self._tell, name="standing", daemon=True)
        shared = Shared(
            self._memory,
            loop.bell,
            tally,
            Desk(loop, self._count),
            self._dispatcher,
            self._begin_message,
            self._standing,
            self._changed.set,
        )
        self._watches = [WorkerWatch(each, shared) for each in range(settings.workers)]

    def start(self) -> None:
        """Start their processes, which wait until the database is prepared."""
        for each in self._watches:
            each.start()

    def count_from(self, event: int) -> None:
        """Set the last event before the server started, from which on figures are counted."""
        self._last_event = event

    def begin(self, listener: socket.socket, public_url: str) -> None:
        """Let them answer what comes to a socket; raises the error of one that cannot start."""
        self._public_url = public_url
        for each in self._watches:
            each.let_begin()
        for each in self._watches:
            each.begin()
        self._telling.start()
        self._dispatcher.start(listener)

    def run(self) -> None:
        """Wait for a signal, and end them all."""
        told = threading.Event()

        def handle(_number: int, _frame: FrameType | None) -> None:
            if told.is_set():
                # The second time without waiting for requests.
                self._tell_to_stop()
            told.set()

        with _handling(handle):
            told.wait()
            self.stop()

    def stop(self) -> None:
        """Let them finish the requests that they have begun, and end."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._dispatcher.stop_accepting()
        self._loop.stopping.set()
        self._tell_to_stop()
        for each in self._watches:
            each.stop()
        self._changed.set()
        if self._telling.is_alive():
            self._telling.join()
        self._dispatcher.stop()
        os.close(self._memory)

    def _tell_to_stop(self) -> None:
        for each in self._watches:
            each.tell_to_stop()

    def _begin_message(self, worker: int) -> msgspec.Struct:
        now_ms, since_boot_ms = self._clock.moment()
        return BeginWorker(
            write_settings(self._settings),
            worker,
            since_boot_ms,
            now_ms,
            self._public_url,
            self._last_event,
        )

    def _count(self) -> tuple[int, int]:
        return (
            sum(not each.fault for each in self._watches),
            sum(each.restarts for each in self._watches),
        )

    def _standing(self) -> Standing:
        faults = tuple(each.fault for each in self._watches if each.fault)
        return Standing(self._loop.leads, self._loop.fault, faults)

    def _tell(self) -> None:
        """Tell all workers how the server is, whenever that has changed."""
        told: Standing | None = None
        while not self._stopped.is_set():
            now = self._standing()
            if now != told:
                told = now
                for each in self._watches:
                    each.tell(now)
            self._changed.wait(_LOOK_S)
            self._changed.clear()


@contextmanager
def _handling(handle: signal._HANDLER) -> Iterator[None]:
    before = {each: signal.signal(each, handle) for each in _SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
