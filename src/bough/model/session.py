"""Sessions with a running task: a command in it, its ports, its files."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class SessionKind(StrEnum):
    """What a session is for."""

    EXEC = "exec"
    PORT_FORWARD = "portforward"
    RSYNC = "rsync"


class SessionRequest(msgspec.Struct, frozen=True):
    """What a session should do, in plain values."""

    kind: SessionKind
    #: The command to run beside the task.
    argv: tuple[str, ...] = ()
    #: Whether the command has a terminal.
    terminal: bool = True
    #: Whether the client speaks in channels; otherwise a terminal in its plain form.
    channels: bool = False
    #: The port of the task that is forwarded.
    port: int = 0
    udp: bool = False
    #: Whether an end of one direction is told apart from the end of both.
    halves: bool = False


class SessionNews(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a session says on its line; each message has one of these."""

    ready: bool = False
    #: Why there is no session, in words.
    fault: str = ""
    #: The client will open another connection with this key.
    key: str = ""
    #: It has ended: with what exit code, where a command ran.
    ended: bool = False
    exit_code: int | None = None


class SessionConnection(msgspec.Struct, frozen=True):
    """A connection that is handed to a session on its line, with its descriptor."""

    #: What to answer first, so that it becomes a websocket.
    head: bytes
    #: What the client has sent already.
    rest: bytes = b""
    #: The key that the client opened it with.
    key: str = ""
