"""The process of the scheduler's loop: owns the backends, plans, and answers questions.

`bough serve` starts it (`loop_watch`) and sends it what it needs on the line. It ends when told to,
and at once when the server is gone, however that ended.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import NamedTuple

from bough.control.clock import SteadyClock
from bough.control.scheduling.loop_bell import Bell
from bough.control.site import Clock, Site, site_identity
from bough.errors import BoughError, Broken
from bough.server.backend_hosts import Host, open_hosts
from bough.server.disk_space import DiskSpace
from bough.server.loop_messages import (
    TO_LOOP,
    Answered,
    Ask,
    AskStandings,
    Begin,
    FromLoop,
    Listens,
    Ready,
    Stand,
    Status,
)
from bough.server.loop_view import Counts
from bough.server.process_channel import Failed, Line, Stop, read_settings
from bough.server.process_start import bound_heaps, end_with, log_to_standard_error, make_site
from bough.server.scheduler_thread import Engine
from bough.server.settings import Settings
from bough.store import Store

LOG = logging.getLogger(__name__)

#: How often to send that it is alive, and how often at most that something has changed.
BEAT_S = 1.0
SHORTEST_S = 0.1
#: How many questions to answer at the same time.
ANSWERS_AT_ONCE = 64


class RunningLoop(NamedTuple):
    """The loop at work."""

    site: Site
    engine: Engine
    hosts: tuple[Host, ...]


@contextmanager
def running_loop(
    settings: Settings, clock: Clock, bell: Bell, changed: Callable[[], None] = lambda: None
) -> Iterator[RunningLoop]:
    """Open the backends and run the loop in a thread; the database is already prepared.

    changed:  called after every cycle.
    """
    store = Store.open(settings.address)
    try:
        refusal = DiskSpace(settings, store, says=False).refusal
        site = make_site(settings, store, clock, bell, refusal)
        with open_hosts(settings, clock.now_ms, bell, site_identity(site)) as hosts:
            engine = Engine(site, [host.backend for host in hosts], bell, changed=changed)
            engine.start()
            try:
                yield RunningLoop(site, engine, hosts)
            finally:
                engine.stop()
    finally:
        store.close()


class LoopProcess:
    """Handles the messages of the line."""

    def __init__(self, line: Line, rung: int, bell: Bell) -> None:
        """rung:  the descriptor of the server's bell."""
        self._line = line
        self._rung = rung
        self._bell = bell
        self.told_to_stop = threading.Event()
        #: Set if the server should get a status before the next beat.
        self.changed = threading.Event()
        self._engine: Engine | None = None
        self._answering = ThreadPoolExecutor(ANSWERS_AT_ONCE, "answer")

    def start(self) -> None:
        """Start sending that it is alive, and end the process if the server is gone."""
        for work in (self._beat, self._listen):
            threading.Thread(target=work, name=work.__name__, daemon=True).start()

    def run(self, loop: RunningLoop, address: str | None) -> None:
        """Handle messages until told to stop."""
        self._engine = loop.engine
        if address is not None:
            loop.engine.listens_at(address)
        warnings = tuple(warning for host in loop.hosts for warning in host.warnings)
        gpus = sum(each.gpus for each in loop.hosts[0].backend.nodes() or ())
        self._line.send(Ready(warnings, gpus))
        self.told_to_stop.wait()

    def _beat(self) -> None:
        while True:
            engine = self._engine
            if engine is None:
                self._send(Status(leads=False, counts=Counts()))
            elif not engine.stopping.is_set() and engine.pulse.fault:
                LOG.critical("the scheduler's thread %s:\n%s", engine.pulse.fault, engine.stack)
                os._exit(1)
            elif engine.alive or engine.stopping.is_set():
                self._send(Status(leads=engine.leads, counts=engine.counts))
            else:
                LOG.critical("the scheduler's thread is gone")
                os._exit(1)
            self.changed.wait(BEAT_S)
            self.changed.clear()
            self.told_to_stop.wait(SHORTEST_S)

    def _listen(self) -> None:
        waiting = select.poll()
        for each in (self._line.socket.fileno(), self._rung):
            waiting.register(each, select.POLLIN)
        try:
            while True:
                for descriptor, _ in waiting.poll():
                    if descriptor == self._rung:
                        with suppress(BlockingIOError):
                            os.eventfd_read(self._rung)
                        self._bell()
                    else:
                        self._hear()
        except (EOFError, OSError):
            # The server is gone. Nothing is lost by ending now, and the next server waits for that.
            os._exit(1)

    def _hear(self) -> None:
        said = self._line.read(TO_LOOP)
        engine = self._engine
        if isinstance(said, Stop):
            self.told_to_stop.set()
        elif engine is None:
            return
        elif isinstance(said, Listens):
            engine.listens_at(said.address)
        elif isinstance(said, Ask):
            self._answer(said.number, lambda: Answered(said.number, engine.ask(said.question)))
        elif isinstance(said, AskStandings):
            self._answer(said.number, lambda: Stand(said.number, engine.standings(said.user)))

    def _answer(self, number: int, find: Callable[[], FromLoop]) -> None:
        self._answering.submit(self._find, number, find)

    def _find(self, number: int, find: Callable[[], FromLoop]) -> None:
        try:
            found = find()
        except BoughError as error:
            found = Failed.of(number, error)
        except Exception:
            LOG.exception("a question about the plan could not be answered")
            found = Failed.of(number, Broken())
        self._send(found)

    def _send(self, message: FromLoop) -> None:
        # If the server is gone, the reading thread notices.
        with suppress(OSError):
            self._line.send(message)


def main(line_descriptor: int, rung: int, parent: int) -> int:
    """Be the process of a loop; the exit code."""
    end_with(parent)
    # Ctrl-C is for the server, which then tells this process to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    bound_heaps()
    log_to_standard_error()
    line = Line(socket.socket(fileno=line_descriptor))
    try:
        begin = line.read(TO_LOOP)
    except (EOFError, OSError):
        return 1
    if not isinstance(begin, Begin):
        return 0
    bell = Bell()
    process = LoopProcess(line, rung, bell)
    signal.signal(signal.SIGTERM, lambda *_: process.told_to_stop.set())
    process.start()
    clock = SteadyClock.beginning(begin.since_boot_ms, begin.at_ms)
    settings = read_settings(begin.settings)
    try:
        with running_loop(settings, clock, bell, process.changed.set) as loop:
            process.run(loop, begin.address)
    except BoughError as error:
        with suppress(OSError):
            line.send(Failed.of(0, error))
        return 1
    return 0
