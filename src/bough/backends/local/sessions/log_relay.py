"""Adds lines that a client sends to the log of a task.

The messages are those of OSMO's control container: a line of text, or that no more will come, which
is answered. Lines go through a pipe that the supervisor reads like the output of the task.
"""

from __future__ import annotations

import os
import select
from collections import deque
from typing import NamedTuple

import msgspec

from bough.model.session import SERVER_GONE
from bough.websocket.frames import GOING_AWAY, PROTOCOL_FAULT, REFUSED, TEXT
from bough.websocket.peer import MessageReader, Peer
from bough.websocket.relay import READ, WRITE

_MOST_MESSAGE = 1 << 20
_DONE = b'{"action": "log_done"}'
_NO_BARRIER = "tasks of a group start together here: there are no barriers to wait at"
_FORM = 'messages must be like {"Source": "...", "Text": "...", "IOType": "STDOUT"}'


class LogPipes(NamedTuple):
    """The ends of pipes into the log of a task that lines are written to."""

    output: int
    errors: int


class LogRelay:
    """Serves the client that sends lines; it is read only while the log takes them."""

    def __init__(self, peer: Peer, pipes: LogPipes) -> None:
        self.ended = False
        self.peer = peer
        self._pipes = pipes
        self._messages = MessageReader(peer, _MOST_MESSAGE, "a message is too long")
        #: What the log has not taken yet: the pipe, and at most so much as is written in one go.
        self._left: deque[tuple[int, bytes]] = deque()
        if peer.has_rest:
            self._take()

    def interests(self) -> dict[int, int]:
        """The client, or the pipe that is full."""
        wanted = WRITE if self.peer.pending else 0
        if self._left:
            found = {self._left[0][0]: WRITE}
        else:
            found, wanted = {}, wanted | READ
        return found | ({self.peer.fileno(): wanted} if wanted else {})

    def ready(self, descriptor: int, events: int) -> None:
        """Pass on what there is."""
        if descriptor != self.peer.fileno():
            self._write()
            return
        if events & WRITE:
            self.peer.flush()
        if events & READ:
            self._take()
        self.ended = self.ended or (self.peer.gone and not self._left)

    def tick(self) -> None:
        """Ping if needed."""
        self.peer.keep_busy()

    def close(self) -> None:
        """Hang up."""
        self.ended = True
        self.peer.hang_up(GOING_AWAY, SERVER_GONE)

    def _take(self) -> None:
        for message in self._messages.read():
            self._obey(message)
            if self.ended:
                return
        if self.peer.closing:
            self._end()
        else:
            self._write()

    def _obey(self, message: bytes) -> None:
        found = _read(message)
        if found is None:
            self._refuse(PROTOCOL_FAULT, _FORM)
            return
        kind, text = found
        if kind == "LOG_DONE":
            self._write()
            self.peer.send(_DONE, TEXT)
        elif kind == "BARRIER":
            self._refuse(REFUSED, _NO_BARRIER)
        elif kind != "METRICS":
            # Figures of transfers are measured where the transfer is made.
            pipe = self._pipes.errors if kind == "STDERR" else self._pipes.output
            line = text.encode(errors="replace").removesuffix(b"\n") + b"\n"
            # So much is written to a pipe as a whole, so lines of several clients stay whole.
            for start in range(0, len(line), select.PIPE_BUF):
                self._left.append((pipe, line[start : start + select.PIPE_BUF]))

    def _write(self) -> None:
        while self._left:
            pipe, part = self._left[0]
            try:
                os.write(pipe, part)
            except BlockingIOError:
                return
            except OSError:
                # The log is closed: the task is ending.
                self._refuse(GOING_AWAY, "the task is ending")
                return
            self._left.popleft()
        self.ended = self.ended or self.peer.gone

    def _refuse(self, code: int, reason: str) -> None:
        self.peer.close(code, reason)
        self._end()

    def _end(self) -> None:
        self._left.clear()
        self.ended = True


def _read(message: bytes) -> tuple[str, str] | None:
    """The kind and the text of a message; existing clients send an object as JSON in a string."""
    try:
        found = msgspec.json.decode(message)
        if isinstance(found, str):
            found = msgspec.json.decode(found)
    except msgspec.DecodeError:
        return None
    if not isinstance(found, dict):
        return None
    fields = {str(name).lower(): value for name, value in found.items()}
    kind, text = fields.get("iotype"), fields.get("text", "")
    return (kind, text) if isinstance(kind, str) and isinstance(text, str) else None
