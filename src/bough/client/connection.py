"""One request and its answer over a connection of its own: as much of HTTP/1.1 as that takes.

The library's own client imports the parser of electronic mail, which alone costs as much as all
else a short command does. Must not know what is asked, nor what an answer means.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from typing import Any

#: The longest line of a head, and the most of them; more is an attack or no HTTP.
MAXIMUM_LINE = 65_536
MAXIMUM_HEADERS = 200
BLOCK = 65_536


class Garbled(Exception):
    """What came is no answer in HTTP."""


class CutOff(Exception):
    """The connection ended before the answer did."""


class Connection:
    """A connection that is used once."""

    def __init__(self, host: str, port: int, *, secure: bool, timeout_s: float) -> None:
        # Plain names as bytes: text would be put through the rules of international names.
        name: Any = host.encode() if host.isascii() else host
        self._socket: socket.socket = socket.create_connection((name, port), timeout_s)
        try:
            if secure:
                self._socket = _wrap(self._socket, host)
            self._file = self._socket.makefile("rb")
        except BaseException:
            self._socket.close()
            raise
        self.status = 0
        self._headers: dict[str, str] = {}

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self._socket.close()

    def wait_for_ever(self) -> None:
        """From now on, silence is no failure."""
        self._socket.settimeout(None)

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        """Send a request, and read the head of the answer."""
        lines = [f"{method} {target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
        self._socket.sendall("\r\n".join(lines).encode("latin-1") + body)
        while self.status < 200:
            self._read_head()

    def read(self) -> bytes:
        """All of the answer's body."""
        return b"".join(self._blocks())

    def lines(self) -> Iterator[bytes]:
        """The lines of the body as they come, with their ends."""
        rest = b""
        for block in self._blocks():
            *whole, rest = (rest + block).split(b"\n")
            yield from (line + b"\n" for line in whole)
        if rest:
            yield rest

    def _read_head(self) -> None:
        first = self._line()
        if not first:
            raise ConnectionResetError("The connection was closed before an answer came")
        version, _, rest = first.partition(b" ")
        if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
            raise Garbled(f"it began with {first[:40]!r}")
        self.status = int(rest[:3])
        self._headers = {}
        for _ in range(MAXIMUM_HEADERS):
            line = self._line().rstrip(b"\r\n").decode("latin-1")
            if not line:
                return
            name, _, value = line.partition(":")
            self._headers[name.strip().lower()] = value.strip()
        raise Garbled("its head has no end")

    def _blocks(self) -> Iterator[bytes]:
        """The body, block by block, as the head says that it is framed."""
        if self.status in (204, 304):
            return
        if self._headers.get("transfer-encoding", "").lower() == "chunked":
            while size := _number(self._whole_line().partition(b";")[0], 16):
                yield from self._exactly(size)
                self._whole_line()
            while self._line().strip():
                pass
        elif "content-length" in self._headers:
            yield from self._exactly(_number(self._headers["content-length"].encode(), 10))
        else:
            while block := self._file.read1(BLOCK):
                yield block

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size:
            block = self._file.read1(min(size, BLOCK))
            if not block:
                raise CutOff
            size -= len(block)
            yield block

    def _whole_line(self) -> bytes:
        line = self._line()
        if not line.endswith(b"\n"):
            raise CutOff
        return line

    def _line(self) -> bytes:
        line = self._file.readline(MAXIMUM_LINE + 1)
        if len(line) > MAXIMUM_LINE:
            raise Garbled("a line of its head is too long")
        return line


def _number(text: bytes, base: int) -> int:
    try:
        number = int(text.strip(), base)
    except ValueError:
        raise Garbled(f"{text[:40]!r} is no length") from None
    if number < 0:
        raise Garbled(f"{number} is no length")
    return number


def _wrap(plain: socket.socket, host: str) -> socket.socket:
    import ssl  # noqa: PLC0415  only for https

    return ssl.create_default_context().wrap_socket(plain, server_hostname=host)
