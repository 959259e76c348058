"""Connections that go from one process to another, each with a few words about it.

The server gives a worker new connections, and keeps each open until the worker says that it has it:
one that was never taken goes to another worker, and nothing of it was read. A worker that gets a
connection for a session of another worker passes it on through the server.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

import msgspec

from bough.model.session import SessionConnection

#: The most bytes of one message: a client can have sent much already.
_MOST_BYTES = 1 << 20


class NewConnection(msgspec.Struct, frozen=True, tag="new"):
    """A client has connected."""


class Taken(msgspec.Struct, frozen=True, tag="taken"):
    """How many new connections a worker has taken so far."""

    count: int


class ForSession(msgspec.Struct, frozen=True, tag="session"):
    """A connection for a session of a worker."""

    worker: int
    told: SessionConnection


Handed = NewConnection | Taken | ForSession
_HANDED = msgspec.msgpack.Decoder(Handed)


def make_hands() -> tuple[socket.socket, socket.socket]:
    """Both ends of a way for connections; neither ever waits."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for each in ends:
        each.setblocking(False)
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
    return ends


def give(hands: socket.socket, message: Handed, connection: socket.socket | None = None) -> None:
    """Send a message, with a connection; raises `OSError` if it cannot be sent now."""
    content = msgspec.msgpack.encode(message)
    if connection is None:
        hands.send(content)
    else:
        socket.send_fds(hands, [content], [connection.fileno()])


def receive(hands: socket.socket) -> tuple[Handed, socket.socket | None] | None:
    """Read a message; `None`: there is none now. Raises `EOFError` if the other end is gone."""
    try:
        try:
            content, descriptors = _read(hands)
        except ConnectionResetError:
            # The other end is gone and has not read everything. What it said before comes after
            # this error, which is reported once.
            content, descriptors = _read(hands)
    except (BlockingIOError, InterruptedError):
        return None
    except OSError:
        raise EOFError from None
    if not content:
        for each in descriptors:
            os.close(each)
        raise EOFError
    connection = socket.socket(fileno=descriptors[0]) if descriptors else None
    return _HANDED.decode(content), connection


def _read(hands: socket.socket) -> tuple[bytes, list[int]]:
    content, descriptors, _, _ = socket.recv_fds(hands, _MOST_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
    return content, descriptors


def drop(connection: socket.socket | None) -> None:
    """Close a connection that no one takes."""
    if connection is not None:
        with suppress(OSError):
            connection.close()
