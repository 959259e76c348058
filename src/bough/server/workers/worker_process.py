"""The process of a worker: answers the requests of the connections that it is given.

`bough serve --workers` starts it (`workers.worker_watch`). It ends when told to, and at once when
the server is gone, however that ended.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from litestar import Litestar

from bough.control.clock import SteadyClock
from bough.control.workflows import logs, rendering
from bough.errors import BoughError
from bough.server.application import make_application
from bough.server.authenticator import Authenticator
from bough.server.backend_file import has_local
from bough.server.backend_hosts import go_first, task_files
from bough.server.concurrency_limits import part_of, share_limits
from bough.server.connections import ACCEPTED_AT_ONCE, Bounds, OpenConnections
from bough.server.disk_space import DiskSpace
from bough.server.http_server import HttpServer, find_bounds
from bough.server.process_channel import Failed, Line, read_settings
from bough.server.process_start import bound_heaps, end_with, log_to_standard_error, make_site
from bough.server.server_key import ServerKey
from bough.server.settings import Settings
from bough.server.workers.messages import TO_WORKER, Beat, BeginWorker, WorkerReady
from bough.server.workers.passed_connections import (
    ForSession,
    NewConnection,
    Taken,
    drop,
    give,
    receive,
)
from bough.server.workers.server_link import DistantLoop, DistantTurns, ServerLink
from bough.server.workers.shared_counts import SharedTally
from bough.server.workers.worker_sessions import WorkerSessions
from bough.store import Store

LOG = logging.getLogger(__name__)

#: How often to say that it is alive.
BEAT_S = 1.0


class WorkerServer(HttpServer):
    """Answers on connections that the server gives it, instead of a socket of its own."""

    def __init__(
        self,
        application: Litestar,
        connections: OpenConnections,
        stopping: threading.Event,
        hands: socket.socket,
        link: ServerLink,
    ) -> None:
        super().__init__(application, connections, stopping)
        self._sessions: WorkerSessions = application.state.sessions
        self._hands = hands
        self._link = link
        self._taken = 0
        self._said = 0
        #: Taken, and the server does not know it yet.
        self._unsaid: list[socket.socket] = []
        self._beginning: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets or [])
        asyncio.get_running_loop().add_reader(self._hands.fileno(), self._take)
        self._beats = asyncio.create_task(self._beat())
        self._link.tell(WorkerReady())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, and finish the requests that have begun."""
        asyncio.get_running_loop().remove_reader(self._hands.fileno())
        # What is not taken by now goes to another worker.
        self._hands.close()
        for each in self._unsaid:
            drop(each)
        self._unsaid.clear()
        if self._beginning:
            await asyncio.wait(self._beginning)
        await super().shutdown(sockets)
        self._beats.cancel()

    def _take(self) -> None:
        try:
            for _ in range(ACCEPTED_AT_ONCE):
                found = receive(self._hands)
                if found is None:
                    return
                self._begin(*found)
        except EOFError:
            os._exit(1)

    def _begin(
        self, said: NewConnection | Taken | ForSession, connection: socket.socket | None
    ) -> None:
        if isinstance(said, NewConnection):
            self._taken += 1
            if connection is None:
                # It counts all the same: the server counts what it gave.
                LOG.error("too many files are open: a new connection is closed")
            else:
                self._unsaid.append(connection)
            self._say_taken()
        elif isinstance(said, ForSession) and connection is not None:
            self._sessions.arrive(connection, said.told)
        else:
            drop(connection)

    def _say_taken(self) -> None:
        """Say how many were taken, and begin with these."""
        # Before anything of them is read: the server may give what was not taken to another.
        try:
            give(self._hands, Taken(self._taken))
        except OSError:
            # It does not hear now; with the next connection or beat it is tried again.
            return
        self._said = self._taken
        for each in self._unsaid:
            task = asyncio.create_task(self._serve_connection(each))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)
        self._unsaid.clear()

    async def _serve_connection(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        # What the framework knows as a class makes a connection of ours.
        made: Any = self.config.http_protocol_class
        make = partial(
            made,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            _loop=loop,
        )
        connection.setblocking(False)
        try:
            await loop.connect_accepted_socket(make, connection)
        except OSError:
            # The client has gone already.
            drop(connection)

    async def _beat(self) -> None:
        while True:
            self._link.tell(Beat())
            if self._said < self._taken:
                self._say_taken()
            await asyncio.sleep(BEAT_S)


class _Stop:
    """Ends the HTTP server, as soon as there is one."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self._server: HttpServer | None = None

    def __call__(self) -> None:
        server = self._server
        again = self.stopping.is_set()
        self.stopping.set()
        if server is not None:
            server.handle_exit(signal.SIGINT if again else signal.SIGTERM, None)

    def end(self, server: HttpServer) -> None:
        """Have this server end when the worker is told to stop."""
        self._server = server
        if self.stopping.is_set():
            server.should_exit = True


def answer(begin: BeginWorker, line: Line, hands: socket.socket, memory: int, bell: int) -> None:
    """Answer requests until told to stop."""
    settings = read_settings(begin.settings)
    clock = SteadyClock.beginning(begin.since_boot_ms, begin.at_ms)
    stop = _Stop()
    link = ServerLink(line, stop)
    tally = SharedTally(memory, settings.workers, begin.worker)
    share_limits(settings.workers, tally)
    logs.KEPT.processes = settings.workers
    rendering.share_turns(DistantTurns(link))
    store = Store.open(settings.address)
    try:
        disks = DiskSpace(settings, store, says=False)
        site = make_site(settings, store, clock, lambda: os.eventfd_write(bell, 1), disks.refusal)
        loop = DistantLoop(link, task_files(settings, clock.now_ms), stop.stopping)
        application = make_application(
            Authenticator(site, settings.trusted_proxies),
            loop,
            maximum_body_bytes=settings.maximum_body_bytes,
        )
        state = application.state
        state.server_key = ServerKey.of(settings.data)
        state.faults = lambda: (*disks.faults(), *link.standing.worker_faults)
        state.gauges.begin(begin.last_event)
        state.gauges.workers = loop.workers
        state.sessions = WorkerSessions(begin.worker, link, hands, tally)
        state.public_url = begin.public_url
        if has_local(settings):
            go_first()
        connections = OpenConnections(_bounds(settings), settings.trusted_proxies, tally)
        server = WorkerServer(application, connections, stop.stopping, hands, link)
        stop.end(server)
        link.start()
        server.run()
    finally:
        store.close()


def _bounds(settings: Settings) -> Bounds:
    """What all workers together can have; what only each of them knows is divided."""
    found = find_bounds(settings, says=False)
    return msgspec.structs.replace(
        found,
        reserved=part_of(found.reserved),
        untaken_bytes=part_of(found.untaken_bytes),
    )


def main(line_descriptor: int, hands: int, memory: int, bell: int, parent: int) -> int:
    """Be the process of a worker; the exit code."""
    end_with(parent)
    # Ctrl-C is for the server, which then tells this process to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = Line(socket.socket(fileno=line_descriptor))
    own_hands = socket.socket(fileno=hands)
    own_hands.setblocking(False)
    try:
        begin = line.read(TO_WORKER)
    except (EOFError, OSError):
        return 1
    if not isinstance(begin, BeginWorker):
        return 0
    bound_heaps()
    log_to_standard_error(f"worker {begin.worker + 1}")
    try:
        answer(begin, line, own_hands, memory, bell)
    except BoughError as error:
        with suppress(OSError):
            line.send(Failed.of(0, error))
        return 1
    return 0
