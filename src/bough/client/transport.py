"""Requests to one server, answers, streams.

Every request has a connection of its own, so that a client can be shared between threads. Only
reading is tried again, and only where the connection failed: a write may have been made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar, overload

import msgspec

from bough.api.common import Json
from bough.client.connection import Connection, CutOff, Garbled
from bough.client.failure import failure
from bough.errors import Invalid, Unavailable
from bough.version import VERSION

#: A list is repeated, a boolean is a word.
Parameter = str | int | Sequence[str]
Query = Mapping[str, Parameter]
Body = msgspec.Struct | Mapping[str, Json] | None
Answer = TypeVar("Answer")
Result = TypeVar("Result")

TRIES = 3
PAUSE_S = 0.2
#: Characters that stand for themselves in every part of an address.
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PORTS = {"http": 80, "https": 443}
_UNSURE = "it is not known whether it was done: look before you ask again"
_LOST = "it may be starting again: tasks go on meanwhile; ask again when it answers"
_HINT = "is it running (`bough serve`)? Say where: `bough login URL`, or BOUGH_SERVER"


class Address(NamedTuple):
    """Where a server is."""

    scheme: str
    host: str
    port: int
    #: What stands before every path; without a slash at its end.
    base: str
    #: All of it, as people write it.
    text: str

    @property
    def authority(self) -> str:
        """The host, and the port where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


class Transport:
    """The address of a server, the headers of every request, and how long to wait."""

    def __init__(self, server: str, token: str | None, user: str | None, timeout_s: float) -> None:
        self._address = read_address(server)
        self._timeout_s = timeout_s
        self._headers = {
            "Host": self._address.authority,
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"bough/{VERSION}",
        }
        if token:
            self._headers["Authorization"] = f"Bearer {_header_value('token', token)}"
        if user:
            self._headers["x-osmo-user"] = _header_value("user", user)

    @property
    def server(self) -> str:
        """The address of the server, as it is shown to people."""
        return self._address.text

    def get(self, answer: type[Answer], path: str, query: Query | None = None) -> Answer:
        """Read something."""
        return self.decode(answer, self._read(path, query))

    def get_json(self, path: str, query: Query | None = None) -> Json:
        """Read JSON of any form."""
        return self.decode(None, self._read(path, query))

    @overload
    def send(
        self,
        answer: type[Answer],
        method: str,
        path: str,
        body: Body = None,
        query: Query | None = None,
    ) -> Answer: ...

    @overload
    def send(
        self, answer: None, method: str, path: str, body: Body = None, query: Query | None = None
    ) -> None: ...

    def send(
        self,
        answer: type[Answer] | None,
        method: str,
        path: str,
        body: Body = None,
        query: Query | None = None,
    ) -> Answer | None:
        """Change something, or ask with a body: one attempt. `None`: the answer has no content."""
        content = self._ask(method, path, query, body)
        return None if answer is None else self.decode(answer, content)

    def send_json(self, method: str, path: str, body: Body = None) -> Json:
        """The same for an answer of any form."""
        return self.decode(None, self._ask(method, path, None, body))

    def text(self, path: str, query: Query | None = None) -> str:
        """Read plain text."""
        return "".join(self.lines(path, query))

    def lines(
        self, path: str, query: Query | None = None, *, headers: Mapping[str, str] | None = None
    ) -> Iterator[str]:
        """The lines of a stream as they come, with their ends; it may stay open for long.

        The stream is open when this returns: that nothing has come yet is no reason to doubt it.
        """
        return self._lines(self._open("GET", path, query, headers=headers))

    def _lines(self, connection: Connection) -> Iterator[str]:
        try:
            connection.wait_for_ever()
            lines = connection.lines()
            while line := self._guard(lambda: _next(lines)):
                yield line.decode(errors="replace")
        finally:
            connection.close()

    def _read(self, path: str, query: Query | None) -> bytes:
        for attempt in range(1, TRIES):
            try:
                return self._ask("GET", path, query)
            except Unavailable as error:
                cause = error.__cause__
                if not isinstance(cause, (OSError, CutOff)) or isinstance(cause, TimeoutError):
                    raise
                time.sleep(PAUSE_S * attempt)
        return self._ask("GET", path, query)

    def _ask(self, method: str, path: str, query: Query | None, body: Body = None) -> bytes:
        connection = self._open(method, path, query, body)
        try:
            return self._guard_sent(method, connection.read)
        finally:
            connection.close()

    @overload
    def decode(self, answer: type[Answer], content: bytes) -> Answer: ...

    @overload
    def decode(self, answer: None, content: bytes) -> Json: ...

    def decode(self, answer: type[Answer] | None, content: bytes) -> Answer | Json:
        """What was answered, as a type or as JSON of any form."""
        try:
            if answer is not None:
                return msgspec.json.decode(content, type=answer)
            return msgspec.json.decode(content) if content.strip() else None
        except msgspec.ValidationError as error:
            raise Unavailable(
                f"The answer of the server at {self.server} is not the expected one: {error}.",
                hint="it may be of another version: compare `bough version`",
            ) from None
        except msgspec.DecodeError:
            raise Unavailable(
                f"What answers at {self.server} is not Bough: the answer is no JSON.",
                hint="check the address: `bough login URL`, or BOUGH_SERVER",
            ) from None

    def _open(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Body = None,
        headers: Mapping[str, str] | None = None,
    ) -> Connection:
        """Send a request and wait for the answer's head; raise what the server says is wrong."""
        scheme, host, port, base, _ = self._address
        content = b"" if body is None else msgspec.json.encode(body)
        target = base + path + _query_text(query)
        secure = scheme == "https"
        connection = self._guard(
            lambda: Connection(host, port, secure=secure, timeout_s=self._timeout_s)
        )
        try:
            sent = self._headers | dict(headers or {})
            self._guard_sent(method, lambda: connection.ask(method, target, sent, content))
            if connection.status >= 300:
                raise failure(connection.status, self._guard(connection.read))
        except BaseException:
            connection.close()
            raise
        return connection

    def _guard_sent(self, method: str, work: Callable[[], Result]) -> Result:
        """The same for a request that the server may have got; what it asked for may be done."""
        try:
            return self._guard(work)
        except Unavailable as error:
            if method != "GET":
                error.hint = _UNSURE
            raise

    def _guard(self, work: Callable[[], Result]) -> Result:
        """Do something on the network, and say in words what is wrong with it."""
        try:
            return work()
        except TimeoutError as error:
            message = f"The server at {self.server} did not answer in {self._timeout_s:g} s."
            raise Unavailable(message) from error
        except OSError as error:
            reason = error.strerror or str(error) or type(error).__name__
            message = f"Cannot reach the server at {self.server}: {reason}."
            raise Unavailable(message, hint=_HINT) from error
        except CutOff as error:
            message = f"The connection to the server at {self.server} was lost."
            raise Unavailable(message, hint=_LOST) from error
        except Garbled as error:
            message = f"The answer of the server at {self.server} cannot be read: {error}."
            raise Unavailable(message, hint=_HINT) from error


def read_address(server: str) -> Address:
    """The parts of an address like `http://host:8265/base`; the scheme may be left out."""
    scheme, separator, rest = server.strip().partition("://")
    if not separator:
        scheme, rest = "http", server.strip()
    scheme = scheme.lower()
    authority, _, path = rest.partition("?")[0].partition("#")[0].partition("/")
    host, port = _split_port(authority.rpartition("@")[2])
    if scheme not in _PORTS or not host or not host.isprintable() or " " in host:
        raise Invalid(f"{server!r} is not the address of a server, like http://127.0.0.1:8265.")
    if port and not (port.isdecimal() and int(port) < 65_536):
        raise Invalid(f"{server!r} has no valid port.")
    base = f"/{quote(path.strip('/'), '/%')}" if path.strip("/") else ""
    found = Address(scheme, host, int(port) if port else _PORTS[scheme], base, "")
    return found._replace(text=f"{scheme}://{found.authority}{base}")


def path_of(*segments: str) -> str:
    """A path below `/api`; every segment is quoted."""
    return "/api/" + "/".join(quote(segment) for segment in segments)


def quote(text: str, safe: str = "") -> str:
    """Text as it stands in an address."""
    plain = _PLAIN | frozenset(safe.encode())
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in text.encode())


def given(**values: Parameter | None) -> dict[str, Parameter]:
    """The query parameters that were given: not `None`, and no empty list."""
    return {
        name: value for name, value in values.items() if value is not None and value not in ("", [])
    }


def _next(lines: Iterator[bytes]) -> bytes:
    """The next line of a stream that had begun, or nothing at its end."""
    try:
        return next(lines, b"")
    except ConnectionError as error:
        raise CutOff from error


def _query_text(query: Query | None) -> str:
    pairs = [
        f"{quote(name)}={quote(str(each).lower() if isinstance(each, bool) else str(each))}"
        for name, value in (query or {}).items()
        for each in ((value,) if isinstance(value, (str, int)) else value)
    ]
    return f"?{'&'.join(pairs)}" if pairs else ""


def _split_port(authority: str) -> tuple[str, str]:
    if authority.startswith("["):
        host, _, port = authority[1:].partition("]")
        return host, port.removeprefix(":")
    host, _, port = authority.partition(":")
    return host, port


def _header_value(what: str, value: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise Invalid(f"The {what} must be printable ASCII characters on one line.")
    return value.strip()
