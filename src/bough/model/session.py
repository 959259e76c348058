"""Sessions with a running task: a command in it, its ports, its files, lines for its log."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class SessionKind(StrEnum):
    """What a session is for."""

    EXEC = "exec"
    PORT_FORWARD = "portforward"
    RSYNC = "rsync"
    #: Lines that the client adds to the log of the task.
    LOG = "log"


#: What the client is told if the server has ended a session without a word.
SERVER_GONE = "the server has gone"


class SessionRequest(msgspec.Struct, frozen=True):
    """What a session should do, as plain values."""

    kind: SessionKind
    #: The command to run beside the task.
    argv: tuple[str, ...] = ()
    #: Whether the command has a terminal.
    terminal: bool = True
    #: Whether the client uses channels; otherwise it uses the plain terminal protocol.
    channels: bool = False
    #: The port of the task that is forwarded.
    port: int = 0
    udp: bool = False
    #: Whether the end of one direction leaves the other one open.
    halves: bool = False


class SessionNews(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message of a session to the server; each says one thing."""

    ready: bool = False
    #: Why the session was refused.
    fault: str = ""
    #: The client will open another connection with this key.
    key: str = ""
    #: It has ended; with an exit code if a command ran.
    ended: bool = False
    exit_code: int | None = None


class SessionEnd(msgspec.Struct, frozen=True):
    """Why the server ends a session: the last thing it says to it."""

    reason: str


class SessionConnection(msgspec.Struct, frozen=True):
    """A connection that the server hands to a session, sent along with its descriptor."""

    #: The response that makes it a websocket, to be sent first.
    head: bytes
    #: Bytes that the client has sent already.
    rest: bytes = b""
    #: The key that the client opened it with.
    key: str = ""
