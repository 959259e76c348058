"""The connections of clients: how many there can be, and how long one may hold its place.

A client that sends its request too slowly, or takes its answer too slowly, is cut. Where no more
connections fit, one that waits for a request makes room for a new one: the oldest of the address
with the most. Where all are being served, a few more are taken that can only ask for the health.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
from collections import Counter
from enum import IntEnum
from functools import partial
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, cast

import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from bough.api.common import ErrorBody
from bough.server.bounded_counts import OwnTally, Tally, Want
from bough.server.joined_socket_writes import JoinedWrites
from bough.server.settings import CONNECTIONS, CONNECTIONS_PER_ADDRESS, Network

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send
    from uvicorn.config import Config
    from uvicorn.server import ServerState

LOG = logging.getLogger(__name__)

#: Open files that are not connections: the database, logs, the processes of tasks and templates.
OTHER_FILES = 400
#: There are so many connections, however few files can be open.
LEAST = 32
#: How many connections are accepted before others have their turn.
ACCEPTED_AT_ONCE = 64
#: How many the kernel keeps that are not accepted yet.
BACKLOG = 1024
SWEEP_S = 1.0
#: How often the log says how many connections were closed.
LOG_S = 10.0
HEALTH = "/health"
#: The connection of a request, by this name in the state of its scope.
CONNECTION = "bough.connection"

#: The count of all connections, and of those of one address.
ALL = "connections"
_OF_ADDRESS = "connections of {}"
_OUT_OF_PLACES = "out of places"


class Bounds(msgspec.Struct, frozen=True):
    """What all connections, and each of them, can have."""

    connections: int = CONNECTIONS
    #: Of one address; of one /64 network with IPv6.
    per_address: int = CONNECTIONS_PER_ADDRESS
    #: Beyond these, for the check of health alone.
    reserved: int = 64
    #: The most time until the header of a request is complete.
    header_s: float = 10.0
    #: In each period a client must send or take at least this much, unless nothing more is left.
    period_s: float = 30.0
    period_bytes: int = 64 << 10
    #: What all clients together may leave untaken; beyond it, those with the most are cut.
    untaken_bytes: int = 256 << 20


class Stage(IntEnum):
    """What a connection does; the lower, the sooner it makes room for another."""

    #: For a request, or for the rest of its header.
    WAITING = 0
    #: A body is not complete.
    SENDING = 1
    SERVED = 2


def raise_file_limit(connections: int) -> int:
    """Raise the limit of open files for so many connections; returns how many are possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OTHER_FILES
    if soft < wanted and hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return min(connections, max(LEAST, soft - OTHER_FILES))


class OpenConnections:
    """All connections of a server, or of one of its workers. For one event loop.

    How many there can be holds for all workers together; each of them makes room among its own.
    """

    def __init__(
        self, bounds: Bounds, proxies: tuple[Network, ...] = (), tally: Tally | None = None
    ) -> None:
        """tally:  what the workers of a server count together; `None`: it has one process."""
        self.bounds = bounds
        self._tally: Tally = tally or OwnTally()
        #: A proxy brings the requests of many users, so only the total limit holds for it.
        self._proxies = proxies
        self._open: set[ServedConnection] = set()
        self._reserved: dict[ServedConnection, None] = {}
        #: Of this process, by address.
        self._counts: Counter[str] = Counter()
        #: By stage and address, the oldest first: what can make room.
        self._loose: tuple[_ByAddress, _ByAddress] = ({}, {})
        self._closed: Counter[str] = Counter()
        self._logged_s = 0.0
        self._sweeping = False

    @property
    def protocol(self) -> type[asyncio.Protocol]:
        """What makes a connection; it is counted as soon as it has a client."""
        return cast("type[asyncio.Protocol]", partial(ServedConnection, self))

    def add(self, connection: ServedConnection) -> bool:
        """Find a place; whether there is one."""
        address = connection.address
        refused = self._take(address)
        while refused is not None and self._make_room(None if refused == ALL else address):
            refused = self._take(address)
        if refused is None:
            self._counts[address] += 1
        elif not self._reserve(connection):
            self.count(_OUT_OF_PLACES)
            return False
        self._open.add(connection)
        self._begin_sweeps(connection.loop)
        return True

    def _take(self, address: str) -> str | None:
        """Count a connection; the count that leaves no room for it."""
        most = None if self._is_proxy(address) else self.bounds.per_address
        refused = self._tally.take(
            Want(_OF_ADDRESS.format(address), 1, most), Want(ALL, 1, self.bounds.connections)
        )
        return None if refused is None else refused.key

    def remove(self, connection: ServedConnection) -> None:
        """It is closed, or is about to be."""
        if connection not in self._open:
            return
        self._open.discard(connection)
        self._loosen(connection, None)
        if connection in self._reserved:
            del self._reserved[connection]
            return
        self._tally.give_back(ALL, 1)
        self._tally.give_back(_OF_ADDRESS.format(connection.address), 1)
        self._counts[connection.address] -= 1
        if not self._counts[connection.address]:
            del self._counts[connection.address]

    def move(self, connection: ServedConnection, stage: Stage) -> None:
        """It does something else now."""
        if connection in self._open and connection not in self._reserved:
            self._loosen(connection, stage)

    def count(self, reason: str) -> None:
        """Count a connection that was closed, for the log."""
        self._closed[reason] += 1

    def _make_room(self, address: str | None) -> bool:
        """Close one that can be closed: of an address, or of the one with the most."""
        for loose in self._loose:
            crowded = address
            if address is None and loose:
                crowded = max(loose, key=lambda each: self._counts[each])
            if crowded is not None and loose.get(crowded):
                oldest = next(iter(loose[crowded]))
                self.count("made room for another")
                oldest.cut()
                return True
        return False

    def _reserve(self, connection: ServedConnection) -> bool:
        if len(self._reserved) >= self.bounds.reserved:
            oldest = next((each for each in self._reserved if each.stage != Stage.SERVED), None)
            if oldest is None:
                return False
            oldest.cut()
        self._reserved[connection] = None
        connection.serve_only_health()
        return True

    def _loosen(self, connection: ServedConnection, stage: Stage | None) -> None:
        """Let it make room for others while it is in this stage, and no longer."""
        for each, loose in zip(Stage, self._loose, strict=False):
            members = loose.get(connection.address)
            if members is not None and connection in members:
                del members[connection]
                if not members:
                    del loose[connection.address]
            if each is stage:
                loose.setdefault(connection.address, {})[connection] = None

    def _is_proxy(self, address: str) -> bool:
        if not self._proxies or not address:
            return False
        found = ip_network(address, strict=False)
        return any(found.version == each.version and found.overlaps(each) for each in self._proxies)

    def _begin_sweeps(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._sweeping:
            self._sweeping = True
            loop.call_later(min(SWEEP_S, self.bounds.header_s / 4), self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cut the slow ones; goes on while there are connections."""
        self._sweeping = False
        now_s = loop.time()
        for each in list(self._open):
            each.check(now_s)
        self._cut_largest()
        if self._closed and now_s - self._logged_s >= LOG_S:
            self._logged_s = now_s
            what = ", ".join(
                f"{number} {reason}" for reason, number in sorted(self._closed.items())
            )
            LOG.warning("connections closed: %s; %d are open", what, len(self._open))
            self._closed.clear()
        if self._open or self._closed:
            self._begin_sweeps(loop)

    def _cut_largest(self) -> None:
        untaken = sorted(self._open, key=lambda each: each.untaken)
        total = sum(each.untaken for each in untaken)
        while total > self.bounds.untaken_bytes:
            largest = untaken.pop()
            total -= largest.untaken
            self.count("left too much of an answer untaken")
            largest.cut()


class ServedConnection(H11Protocol):
    """One connection: it says what it does, and is cut where it takes too long."""

    def __init__(
        self,
        everyone: OpenConnections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        # Each request finds its connection, to hand it over to a session.
        super().__init__(config, server_state, {**app_state, CONNECTION: self}, _loop)
        self._everyone = everyone
        self.address = ""
        self.stage = Stage.WAITING
        self._since_s = 0.0
        self._received = 0
        #: How much was received when this stage or period began, and what the client has not taken
        #: yet.
        self._received_before = 0
        self._untaken_before = 0
        self._paused_s: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A client connected; where there is no place for it, it is told so."""
        joined = JoinedWrites(transport, self.loop)
        super().connection_made(cast("asyncio.Transport", joined))
        self.address = _address(transport.get_extra_info("peername"))
        self._since_s = self.loop.time()
        if self._everyone.add(self):
            self._everyone.move(self, self.stage)
        else:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "The server has too many connections.")

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed."""
        self._everyone.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Something of a request came."""
        self._received += len(data)
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        """A request is answered."""
        if self._only_health:
            self.transport.close()
        super().on_response_complete()
        self._note()

    def pause_writing(self) -> None:
        """The client does not take what is sent as fast as it comes."""
        super().pause_writing()
        self._paused_s = self.loop.time()
        self._untaken_before = self.untaken

    def resume_writing(self) -> None:
        """The client took it."""
        super().resume_writing()
        self._paused_s = None

    def serve_only_health(self) -> None:
        """There is no place for anything else."""
        self.app = partial(_only_health, self.app)

    def check(self, now_s: float) -> None:
        """Cut it if it takes too long."""
        bounds = self._everyone.bounds
        if self.transport.is_closing():
            return
        if self.stage is Stage.WAITING and now_s - self._since_s > bounds.header_s:
            self._everyone.count("sent no complete request in time")
            if self._received == self._received_before:
                self.cut()
            else:
                self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The request did not come in time.")
        elif self.stage is Stage.SENDING and self._sends_too_slowly(now_s):
            self._everyone.count("sent a body too slowly")
            if self.cycle.response_started:
                self.cut()
            else:
                self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The body did not come in time.")
        elif self._takes_too_slowly(now_s):
            self._everyone.count("took an answer too slowly")
            self.cut()

    def hand_over(self) -> tuple[socket.socket, bytes]:
        """Give it away: another descriptor of it, and what came after the request already.

        It counts no more, and the request that is being served has no client any more.
        """
        rest, _ = self.conn.trailing_data
        cast("JoinedWrites", self.transport).flush()
        copied = socket.socket(fileno=os.dup(self.transport.get_extra_info("socket").fileno()))
        self.cut()
        # Before the loop says so, since the route may answer at once.
        self.cycle.disconnected = True
        return copied, rest

    def cut(self) -> None:
        """Close it now, whatever was still to be sent."""
        self._everyone.remove(self)
        self.transport.abort()

    @property
    def untaken(self) -> int:
        """What the client did not take yet, in bytes."""
        return self.transport.get_write_buffer_size()

    @property
    def _only_health(self) -> bool:
        return isinstance(self.app, partial)

    def _should_upgrade(self) -> bool:
        """Websockets are asked for as everything else, and then handed over by their route."""
        return False

    def _note(self) -> None:
        stage = Stage.SERVED
        if self.cycle is None or self.cycle.response_complete:
            stage = Stage.WAITING
        elif self.cycle.more_body:
            stage = Stage.SENDING
        if stage is not self.stage:
            self.stage = stage
            self._since_s, self._received_before = self.loop.time(), self._received
            self._everyone.move(self, stage)

    def _sends_too_slowly(self, now_s: float) -> bool:
        bounds = self._everyone.bounds
        if now_s - self._since_s <= bounds.period_s:
            return False
        # What is not read yet is no fault of the client.
        little = self._received - self._received_before < bounds.period_bytes
        self._since_s, self._received_before = now_s, self._received
        return little and not self.flow.read_paused

    def _takes_too_slowly(self, now_s: float) -> bool:
        bounds = self._everyone.bounds
        if self._paused_s is None or now_s - self._paused_s <= bounds.period_s:
            return False
        little = self._untaken_before - self.untaken < bounds.period_bytes
        self._paused_s, self._untaken_before = now_s, self.untaken
        return little

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Answer without the application, and close."""
        self._everyone.remove(self)
        body = _error(message)
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


_ByAddress = dict[str, dict[ServedConnection, None]]


async def _only_health(application: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == HEALTH:
        await application(scope, receive, send)
        return
    body = _error("The server has as many connections as it can serve; try again.")
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    status = HTTPStatus.SERVICE_UNAVAILABLE.value
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _error(message: str) -> bytes:
    return msgspec.json.encode(ErrorBody(message, "SERVER", code="unavailable"))


def _address(peer: tuple[str, int] | None) -> str:
    """What counts as one address."""
    if not peer:
        return ""
    found = ip_address(peer[0].partition("%")[0])
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is None:
            return str(ip_network((found, 64), strict=False))
        found = found.ipv4_mapped
    return str(found)
