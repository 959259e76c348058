"""Connects a client with a port of a task: connections and datagrams.

The client controls the session by one websocket. On it the client announces the key of each further
websocket, which carries one connection. Datagrams use the first websocket, each with the address
that it came from on the client's side.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

import msgspec

from bough.model.session import SERVER_GONE
from bough.websocket.frames import GOING_AWAY, PROTOCOL_FAULT
from bough.websocket.peer import MessageReader, Peer
from bough.websocket.relay import READ, WRITE

#: The longest datagram; each is preceded by an IPv4 address and a port.
_ADDRESS_BYTES = 6
_MOST_DATAGRAM = 65_536 + _ADDRESS_BYTES
_MOST_MESSAGE = 16_384
_LONGEST_KEY = 200
#: How many addresses on the client's side can have a socket at a time.
_MOST_ADDRESSES = 256
_LOOPBACK = "127.0.0.1"


class Control:
    """The websocket on which the client announces connections."""

    def __init__(self, peer: Peer, announce: Callable[[str], None]) -> None:
        self.ended = False
        self.peer = peer
        self._announce = announce
        too_long = "a message about a connection is too long"
        self._messages = MessageReader(peer, _MOST_MESSAGE, too_long)
        if peer.has_rest:
            self._take()

    def interests(self) -> dict[int, int]:
        """To read, and to answer pings."""
        wanted = (READ if not self.peer.gone else 0) | (WRITE if self.peer.pending else 0)
        return {self.peer.fileno(): wanted} if wanted else {}

    def ready(self, descriptor: int, events: int) -> None:
        """Read what has arrived."""
        del descriptor
        if events & WRITE:
            self.peer.flush()
        if events & READ:
            self._take()

    def tick(self) -> None:
        """Ping if needed."""
        self.peer.keep_busy()

    def close(self) -> None:
        """Hang up."""
        self.ended = True
        self.peer.hang_up(GOING_AWAY, SERVER_GONE)

    def _take(self) -> None:
        for message in self._messages.read():
            key = _read_key(message)
            if key is None:
                self.peer.close(PROTOCOL_FAULT, 'messages must be like {"key": "..."}')
                break
            self._announce(key)
        self.ended = self.ended or self.peer.gone or self.peer.closing


class Datagrams:
    """A websocket whose messages are datagrams to and from a port of the task."""

    def __init__(self, peer: Peer, port: int) -> None:
        self.ended = False
        self.peer = peer
        self._port = port
        self._messages = MessageReader(peer, _MOST_DATAGRAM, "a datagram is too long")
        #: Sockets by address on the client's side, the most recently used last.
        self._sockets: dict[bytes, socket.socket] = {}
        if peer.has_rest:
            self._take()

    def interests(self) -> dict[int, int]:
        """Sockets are read only while the client keeps up; else the kernel drops datagrams."""
        found = {self.peer.fileno(): READ | (WRITE if self.peer.pending else 0)}
        if not self.peer.pending:
            found |= {each.fileno(): READ for each in self._sockets.values()}
        return found

    def ready(self, descriptor: int, events: int) -> None:
        """Pass on what there is."""
        if descriptor == self.peer.fileno():
            if events & WRITE:
                self.peer.flush()
            if events & READ:
                self._take()
            return
        for address, each in self._sockets.items():
            if each.fileno() == descriptor:
                # An error of an earlier send: nothing listens on that port.
                with contextlib.suppress(OSError):
                    self.peer.send(address + each.recv(_MOST_DATAGRAM))
                return

    def tick(self) -> None:
        """Ping if needed."""
        self.peer.keep_busy()

    def close(self) -> None:
        """Hang up."""
        self.ended = True
        for each in self._sockets.values():
            each.close()
        self.peer.hang_up(GOING_AWAY, SERVER_GONE)

    def _take(self) -> None:
        for message in self._messages.read():
            if len(message) >= _ADDRESS_BYTES:
                self._pass_on(message[:_ADDRESS_BYTES], message[_ADDRESS_BYTES:])
        self.ended = self.ended or self.peer.gone or self.peer.closing

    def _pass_on(self, address: bytes, data: bytes) -> None:
        found = self._sockets.pop(address, None)
        if found is None:
            while len(self._sockets) >= _MOST_ADDRESSES:
                self._sockets.pop(next(iter(self._sockets))).close()
            found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            found.setblocking(False)
            found.connect((_LOOPBACK, self._port))
        self._sockets[address] = found
        # A datagram that cannot be sent is lost, as datagrams may be.
        with contextlib.suppress(OSError):
            found.send(data)


def connect(port: int, timeout_s: float = 5.0) -> socket.socket:
    """Connect to a port in this process's network namespace."""
    made = socket.create_connection((_LOOPBACK, port), timeout_s)
    with contextlib.suppress(OSError):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _read_key(message: bytes) -> str | None:
    try:
        found = msgspec.json.decode(message)
    except msgspec.DecodeError:
        return None
    key = found.get("key") if isinstance(found, dict) else None
    fits = isinstance(key, str) and 0 < len(key) <= _LONGEST_KEY and key.isprintable()
    return key if fits else None
