"""The line between the server and a process that it has started: the loop, or a worker.

The line is a pair of Unix sockets that no other process has. Each message is preceded by its length
in four bytes. What is said on it is in `loop_messages` and `workers.messages`; here is what is said
to every process, and how settings and errors cross the line.
"""

from __future__ import annotations

import socket
import struct
import threading
from ipaddress import ip_network
from pathlib import Path
from typing import Any, TypeVar

import msgspec

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
from bough.server.settings import Settings

Message = TypeVar("Message")

_LENGTH = struct.Struct("!I")
_MOST_BYTES = 256 << 20
#: Expected errors by name; all others are bugs.
_ERRORS = {
    each.__name__: each
    for each in (Busy, Conflict, Forbidden, Invalid, NotFound, Throttled, Unavailable)
}


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


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """Finish what was begun, and end."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """An error instead of an answer; number 0: the process could not start."""

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
