"""The messages between the server and its loop's process, and the line that carries them.

The line is a pair of Unix sockets that no other process has. Each message is preceded by its length
in four bytes. The bell is an eventfd beside the line: ringing it never blocks, and several rings
count as one until the loop answers.
"""

from __future__ import annotations

import socket
import struct
import threading
from ipaddress import ip_network
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bough.control.pools.standings import Standings
from bough.control.scheduling.questions import Answers, Question
from bough.errors import (
    BoughError,
    Broken,
    Busy,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Throttled,
    Unavailable,
)
from bough.server.loop_view import Counts
from bough.server.settings import Settings

Message = TypeVar("Message")

_LENGTH = struct.Struct("!I")
_MOST_BYTES = 256 << 20
#: Expected errors by name; all others are bugs.
_ERRORS = {
    each.__name__: each
    for each in (Busy, Conflict, Forbidden, Invalid, NotFound, Throttled, Unavailable)
}


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """The first message: what the loop needs to begin."""

    settings: dict[str, Any]
    #: The server's time at a moment of the machine's monotonic clock.
    since_boot_ms: int
    at_ms: int
    #: The server's address, if it is known yet.
    address: str | None = None


class Listens(msgspec.Struct, frozen=True, tag="listens"):
    """The server's address."""

    address: str


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """A question about gangs."""

    number: int
    question: Question


class AskStandings(msgspec.Struct, frozen=True, tag="standings"):
    """A question about the quota tree."""

    number: int
    user: str


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """Finish the cycle, and end."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The loop has opened its backends, and starts."""

    #: What the administrator should know about the machine.
    warnings: tuple[str, ...]
    #: The GPUs of the first backend.
    gpus: int


class Status(msgspec.Struct, frozen=True, tag="status"):
    """The loop is alive; sent regularly."""

    leads: bool
    counts: Counts


class Answered(msgspec.Struct, frozen=True, tag="answered"):
    """The answer to a question about gangs."""

    number: int
    answers: Answers


class Stand(msgspec.Struct, frozen=True, tag="stand"):
    """The answer to a question about the quota tree."""

    number: int
    standings: Standings


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """An error instead of an answer; number 0: the loop could not start."""

    number: int
    kind: str
    message: str
    hint: str = ""
    details: tuple[str, ...] = ()

    @classmethod
    def of(cls, number: int, error: BoughError) -> Failed:
        """Encode an error, to be raised at the other end."""
        kind = next((each.__name__ for each in type(error).__mro__ if each.__name__ in _ERRORS), "")
        return cls(number, kind, error.message, error.hint, error.details)

    def error(self) -> BoughError:
        """Decode the error."""
        return _ERRORS.get(self.kind, Broken)(self.message, hint=self.hint, details=self.details)


ToLoop = Begin | Listens | Ask | AskStandings | Stop
FromLoop = Ready | Status | Answered | Stand | Failed


class Line:
    """One end of the line. One thread reads; any thread can send."""

    def __init__(self, end: socket.socket, patience: int = 1) -> None:
        """patience:  how many timeouts of the socket in a row are one for a reader."""
        self.socket = end
        self.patience = patience
        self._sending = threading.Lock()
        self._encoder = msgspec.msgpack.Encoder()

    def send(self, message: msgspec.Struct) -> None:
        """Send a whole message; raises `OSError` if the other end is gone or reads nothing."""
        content = self._encoder.encode(message)
        with self._sending:
            self.socket.sendall(_LENGTH.pack(len(content)) + content)

    def read_to_loop(self) -> ToLoop:
        """Read the next message for the loop; raises `EOFError` if the other end is gone."""
        return self.read(_TO_LOOP)

    def read_from_loop(self) -> FromLoop:
        """Read the next message of the loop; raises `EOFError` if the other end is gone."""
        return self.read(_FROM_LOOP)

    def read(self, decoder: msgspec.msgpack.Decoder[Message]) -> Message:
        """Read the next message; raises `EOFError` if the other end is gone."""
        return decoder.decode(self._read())

    def _read(self) -> bytes:
        (length,) = _LENGTH.unpack(self._read_exactly(_LENGTH.size))
        if length > _MOST_BYTES:
            raise EOFError
        return self._read_exactly(length)

    def _read_exactly(self, length: int) -> bytes:
        found = bytearray()
        missed = 0
        while len(found) < length:
            try:
                part = self.socket.recv(min(length - len(found), 1 << 20))
            except TimeoutError:
                missed += 1
                if missed >= self.patience:
                    raise
                continue
            if not part:
                raise EOFError
            missed = 0
            found += part
        return bytes(found)


_TO_LOOP = msgspec.msgpack.Decoder(ToLoop)
_FROM_LOOP = msgspec.msgpack.Decoder(FromLoop)


def write_settings(settings: Settings) -> dict[str, Any]:
    """Settings as plain values."""
    found: dict[str, Any] = msgspec.to_builtins(settings, enc_hook=str)
    return found


def read_settings(values: dict[str, Any]) -> Settings:
    """Read settings back."""
    networks = values.pop("trusted_proxies")
    plain = {
        each.name: msgspec.convert(values[each.name], each.type, dec_hook=_read_path)
        for each in msgspec.structs.fields(Settings)
        if each.name in values
    }
    return Settings(**plain, trusted_proxies=tuple(map(ip_network, networks)))


def _read_path(kind: type[Any], value: str) -> Path:
    del kind
    return Path(value)
