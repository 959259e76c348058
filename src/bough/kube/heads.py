"""Heads of requests and of answers, written and read with little: most of what is sent is short.

`http.client` reads the bodies. It would read a head as that of a mail, which takes longer than
everything else that a short request needs.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterable, Mapping
from typing import BinaryIO

#: The longest line of a head, and how many it may have.
LONGEST_LINE, MOST_LINES = 65_536, 200
_BODILESS = frozenset({204, 304})
#: After the other answers below 200 the one that counts follows on the same connection.
_SWITCHING = 101
#: The most digits of a length; no answer is as long as that.
_MOST_DIGITS = 18
#: What would end a line of a head, or a word of its first line.
_BREAKS = re.compile(r"[\r\n\0]")
_BLANKS = re.compile(r"[\0-\x20\x7f]")
_STATUS_LINE = re.compile(rb"HTTP/1\.([0-9]) +([1-9][0-9]{2})(?: .*)?")


def written_head(
    method: str, target: str, host: str, headers: Mapping[str, str], length: int | None
) -> bytes:
    """The head of a request; `length` is that of its body, if it has one."""
    if _BLANKS.search(target):
        raise http.client.InvalidURL(f"{target!r} must have no blanks")
    fields = {"Host": host, "Accept-Encoding": "identity", **headers}
    if length is not None:
        fields["Content-Length"] = str(length)
    lines = [f"{method} {target} HTTP/1.1", *_lines(fields.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def _lines(fields: Iterable[tuple[str, str]]) -> Iterable[str]:
    for name, value in fields:
        line = f"{name}: {value}"
        if _BREAKS.search(line):
            # Without the value: it may be a token.
            raise http.client.HTTPException(f"{name} must have no line breaks")
        yield line


class Answer(http.client.HTTPResponse):
    """An answer, whose body is read as that of any `HTTPResponse`."""

    #: The fields of its head, by name in lower case; of several with one name, the first.
    fields: Mapping[str, str]

    def begin(self) -> None:
        """Read the head."""
        minor, status = _read_status(self.fp)
        while status < 200 and status != _SWITCHING:
            read_fields(self.fp)
            minor, status = _read_status(self.fp)
        self.status = self.code = status
        self.version = 10 + min(minor, 1)
        fields = self.fields = read_fields(self.fp)
        self.chunked = fields.get("transfer-encoding", "").lower() == "chunked"
        self.chunk_left = None
        length = fields.get("content-length", "")
        known = length.isascii() and length.isdecimal() and not self.chunked
        if known and len(length) > _MOST_DIGITS:
            raise http.client.HTTPException(f"Content-Length has {len(length)} digits")
        self.length = int(length) if known else None
        if status in _BODILESS or status < 200:
            self.length = 0
        closes = minor == 0 or "close" in fields.get("connection", "").lower()
        self.will_close = closes or not (self.chunked or self.length is not None)


def _read_status(source: BinaryIO) -> tuple[int, int]:
    """The second part of the version, and the status."""
    line = _read_line(source)
    if not line:
        raise http.client.RemoteDisconnected("the connection was closed without an answer")
    found = _STATUS_LINE.fullmatch(line.rstrip(b"\r\n"))
    if found is None:
        raise http.client.BadStatusLine(line.decode("latin-1"))
    return int(found[1]), int(found[2])


def read_fields(source: BinaryIO) -> dict[str, str]:
    """All fields up to the empty line after them."""
    found: dict[str, str] = {}
    for _ in range(MOST_LINES):
        line = _read_line(source)
        if line in (b"\r\n", b"\n"):
            return found
        if not line:
            raise http.client.HTTPException("the connection ended in the head of an answer")
        if line[:1] in (b" ", b"\t"):
            # It goes on with the value of the line before, and is no field.
            continue
        name, _, value = line.decode("latin-1").partition(":")
        found.setdefault(name.strip().lower(), value.strip())
    raise http.client.HTTPException(f"the head of an answer has more than {MOST_LINES} lines")


def _read_line(source: BinaryIO) -> bytes:
    line = source.readline(LONGEST_LINE + 1)
    if len(line) > LONGEST_LINE:
        raise http.client.LineTooLong("head")
    return line
