"""Forwards ports of a task to this machine's loopback: connections and datagrams.

It listens on the loopback only, so that no other machine reaches the task.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from bough.client.sessions import Sessions, new_connection_key
from bough.errors import BoughError, Invalid, Unavailable
from bough.websocket.peer import Peer, keep_alive
from bough.websocket.relay import READ, WRITE, Forwarding, Listener, Loop

LOOPBACK = "127.0.0.1"
_BACKLOG = 64
_ADDRESS_BYTES = 6
_DATAGRAM_BYTES = 65_536


class ForwardedPort(NamedTuple):
    """A port of a task, and the local port that leads to it."""

    local: int
    remote: int


class Forwarder:
    """Forwards some ports of one task until it is told to stop."""

    def __init__(
        self, sessions: Sessions, name: str, task: str, tell: Callable[[str], None]
    ) -> None:
        self._sessions = sessions
        self._name = name
        self._task = task
        #: Called with a sentence when a single connection fails.
        self._tell = tell
        self._loop = Loop()
        #: Connections that threads have opened, for the event loop to serve.
        self._opened: deque[Forwarding] = deque()
        self._bell, self._ring = socket.socketpair()
        self._bell.setblocking(False)
        self._reason = "The session was ended."
        self._loop.add(Listener(self._bell.fileno(), self._serve_opened))

    def add(self, port: ForwardedPort, *, udp: bool) -> int:
        """Forward another port; returns the local port, which is chosen if 0 was given."""
        kind = socket.SOCK_DGRAM if udp else socket.SOCK_STREAM
        own = socket.socket(socket.AF_INET, kind)
        try:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0 if udp else 1)
            own.bind((LOOPBACK, port.local))
        except OSError as error:
            own.close()
            raise Invalid(
                f"Port {port.local} of {LOOPBACK} cannot be used: {error.strerror}.",
                hint="choose another one: LOCAL:TASK, or 0 for any",
            ) from None
        try:
            peer = self._sessions.forward(self._name, self._task, port.remote, udp=udp)
        except BaseException:
            own.close()
            raise
        if udp:
            self._loop.add(_Datagrams(peer, own, self._ended))
        else:
            own.listen(_BACKLOG)
            self._loop.add(_Control(peer, own, self._begin, self._ended))
        return own.getsockname()[1]

    def run(self) -> None:
        """Forward until a session ends; raises why it did."""
        self._loop.run()
        raise Unavailable(self._reason)

    def stop(self) -> None:
        """Stop, called from another thread."""
        self._loop.stopped = True
        self._wake()

    def _ended(self, peer: Peer) -> None:
        reason = "" if peer.closed_by_other is None else peer.closed_by_other[1]
        self._reason = f"The session was ended{f': {reason}' if reason else ''}."
        self._loop.stopped = True

    def _begin(self, control: Peer, connection: socket.socket) -> None:
        """A program has connected: open a connection in the task, while others are served."""
        key = new_connection_key()
        control.send(msgspec.json.encode({"key": key, "cookie": ""}))
        threading.Thread(target=self._open, args=(key, connection), daemon=True).start()

    def _open(self, key: str, connection: socket.socket) -> None:
        try:
            peer = self._sessions.connect("portforward", self._name, key)
        except BoughError as error:
            connection.close()
            self._tell(error.message)
            return
        keep_alive(connection)
        self._opened.append(_Connection(peer, connection, self._tell))
        self._wake()

    def _serve_opened(self, listener: Listener) -> None:
        del listener
        with contextlib.suppress(BlockingIOError):
            self._bell.recv(4_096)
        while self._opened:
            self._loop.add(self._opened.popleft())

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._ring.send(b"!")


class _Connection(Forwarding):
    """One connection; reports why the other end refused it."""

    def __init__(self, peer: Peer, stream: socket.socket, tell: Callable[[str], None]) -> None:
        super().__init__(peer, stream, halves=True)
        self._tell = tell

    def close(self) -> None:
        reason = "" if self.peer.closed_by_other is None else self.peer.closed_by_other[1]
        super().close()
        if reason:
            self._tell(reason)


class _Control:
    """Listens, and announces every connection to the session."""

    def __init__(
        self,
        peer: Peer,
        own: socket.socket,
        begin: Callable[[Peer, socket.socket], None],
        over: Callable[[Peer], None],
    ) -> None:
        own.setblocking(False)
        self.ended = False
        self.peer = peer
        self._own = own
        self._begin = begin
        self._over = over

    def interests(self) -> dict[int, int]:
        """Connections are accepted only while the session takes their announcements."""
        found = {self.peer.fileno(): READ | (WRITE if self.peer.pending else 0)}
        if not self.peer.pending:
            found[self._own.fileno()] = READ
        return found

    def ready(self, descriptor: int, events: int) -> None:
        """Accept a connection, or notice the end of the session."""
        if descriptor == self._own.fileno():
            with contextlib.suppress(OSError):
                connection, _ = self._own.accept()
                self._begin(self.peer, connection)
            return
        if events & WRITE:
            self.peer.flush()
        if events & READ:
            self.peer.read()
        if self.peer.gone:
            self.ended = True
            self._over(self.peer)

    def tick(self) -> None:
        """Ping if needed."""
        self.peer.keep_busy()

    def close(self) -> None:
        """Release everything."""
        self.ended = True
        self.peer.hang_up()
        self._own.close()


class _Datagrams(_Control):
    """Datagrams in both directions, each with the address of the local program."""

    def __init__(self, peer: Peer, own: socket.socket, over: Callable[[Peer], None]) -> None:
        super().__init__(peer, own, lambda _, __: None, over)
        self._message = bytearray()

    def ready(self, descriptor: int, events: int) -> None:
        """Pass on what there is."""
        if descriptor == self._own.fileno():
            with contextlib.suppress(OSError):
                data, (host, port) = self._own.recvfrom(_DATAGRAM_BYTES)
                self.peer.send(socket.inet_aton(host) + port.to_bytes(2, "big") + data)
            return
        if events & WRITE:
            self.peer.flush()
        for piece in self.peer.read() if events & READ else ():
            self._message += piece.data
            if piece.last:
                message = bytes(self._message)
                self._message.clear()
                self._answer(message)
        if self.peer.gone:
            self.ended = True
            self._over(self.peer)

    def _answer(self, message: bytes) -> None:
        if len(message) < _ADDRESS_BYTES:
            return
        host = socket.inet_ntoa(message[:4])
        port = int.from_bytes(message[4:_ADDRESS_BYTES], "big")
        # Send to local programs only, whatever the server says.
        if host == LOOPBACK:
            with contextlib.suppress(OSError):
                self._own.sendto(message[_ADDRESS_BYTES:], (host, port))


def pass_through(sessions: Sessions, name: str, asked: str) -> None:
    """Connect standard input and output, which rsync makes one socket, with rsync in a task.

    The key was asked for before.
    """
    control = sessions.rsync(name, asked)
    key = new_connection_key()
    control.send(msgspec.json.encode({"key": key, "cookie": ""}))
    peer = sessions.connect("rsync", name, key)
    stream = socket.socket(fileno=os.dup(0))
    loop = Loop()
    forwarding = Forwarding(peer, stream, halves=True)
    loop.ends_with = forwarding
    loop.add(forwarding)
    loop.run()
    control.close()
    control.flush()
    control.shut()
