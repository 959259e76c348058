"""Requests to one server, answers, streams.

A connection is kept for a moment, for the next request that reads. Only reading is tried again,
and only where the connection failed: a write may have been made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar, overload

import msgspec

from bough.api.common import Json
from bough.client.addresses import Query, find_proxy, query_text, read_address
from bough.client.connection import SWITCHING, Connection, CutOff, Garbled, OtherScheme
from bough.client.error_answers import failure
from bough.client.server_proof import KnownServer, ask_for_key, check
from bough.errors import Invalid, Unavailable
from bough.version import VERSION

if TYPE_CHECKING:
    from bough.websocket.peer import Peer

Body = msgspec.Struct | Mapping[str, Json] | str | None
Answer = TypeVar("Answer")
Result = TypeVar("Result")

TRIES = 3
PAUSE_S = 0.2
#: The most connections that are kept open: writes have their own, and may be many in a row.
MOST_IDLE = 4
_UNSURE = "it is not known whether it was done: look before you ask again"
_LOST = "it may be starting again: tasks go on meanwhile; ask again when it answers"
_HINT = "is it running (`bough serve`)? Say where: `bough login URL`, or BOUGH_SERVER"


class Transport:
    """The address of a server, the headers of every request, and how long to wait."""

    def __init__(
        self,
        server: str,
        token: str | None,
        user: str | None,
        timeout_s: float,
        known: KnownServer | None = None,
    ) -> None:
        #: Connections that wait for the next request; taken and put back whole, so that threads
        #: can share a client.
        self._idle: list[Connection] = []
        self._address = read_address(server)
        self._proxy = find_proxy(self._address)
        self._timeout_s = timeout_s
        self._headers = {
            "Host": self._address.authority,
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"bough/{VERSION}",
        }
        #: The headers of a request that must not reveal anything.
        self._bare_headers = dict(self._headers)
        #: What every connection has to prove before anything is sent on it; `None`: nothing.
        self._known = known
        if token:
            self._headers["Authorization"] = f"Bearer {_header_value('token', token)}"
        if user:
            self._headers["x-osmo-user"] = _header_value("user", user)

    def __del__(self) -> None:
        """Close what is kept for requests that never came."""
        while self._idle:
            self._idle.pop().close()

    @property
    def server(self) -> str:
        """The address of the server, as it is shown to people."""
        return self._address.text

    def learn_server(self) -> KnownServer | None:
        """Find out which server answers, to insist on it later; `None`: it has no key."""
        connection = self._connect()
        try:
            found = self._ask_for_key(connection)
        finally:
            connection.close()
        self._known = self._known or found
        return found

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

    def send_content(self, answer: type[Answer], path: str, content: bytes) -> Answer:
        """Send bytes that do no harm when they arrive twice; retried like a read."""
        return self.decode(answer, self._repeat("POST", path, None, content))

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

    def websocket(self, path: str, protocol: str) -> Peer:
        """A websocket that speaks a protocol of ours."""
        from bough.websocket import handshake  # noqa: PLC0415  few commands need one
        from bough.websocket.peer import Peer  # noqa: PLC0415

        key = handshake.new_request_key()
        target = self._address.base + path
        connection = self._connect_to_known()
        try:
            sent = self._headers | handshake.request_headers(key, protocol)
            self._guard(lambda: connection.ask("GET", target, sent, b""))
            if connection.status != SWITCHING:
                raise failure(connection.status, self._guard(connection.read))
            taken, accepted, rest = connection.take_over()
            if accepted != handshake.accept_key(key):
                raise Unavailable(f"What answers at {self.server} does not speak websocket.")
        except BaseException:
            connection.close()
            raise
        return Peer(taken, server=False, rest=rest)

    def _lines(self, connection: Connection) -> Iterator[str]:
        try:
            connection.wait_forever()
            lines = connection.lines()
            while line := self._guard(lambda: _next(lines)):
                yield line.decode(errors="replace")
        finally:
            connection.close()

    def _read(self, path: str, query: Query | None) -> bytes:
        return self._repeat("GET", path, query)

    def _repeat(
        self, method: str, path: str, query: Query | None, content: bytes | None = None
    ) -> bytes:
        for attempt in range(1, TRIES):
            try:
                return self._ask(method, path, query, content)
            except Unavailable as error:
                cause = error.__cause__
                if not isinstance(cause, (OSError, CutOff)) or isinstance(cause, TimeoutError):
                    raise
                time.sleep(PAUSE_S * attempt)
        return self._ask(method, path, query, content)

    def _ask(self, method: str, path: str, query: Query | None, body: Body | bytes = None) -> bytes:
        connection = self._open(method, path, query, body)
        try:
            content = self._guard_sent(method, connection.read)
        except BaseException:
            connection.close()
            raise
        self._put_back(connection)
        return content

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
                f"What answers at {self.server} is not Bough: the answer is not JSON.",
                hint="check the address: `bough login URL`, or BOUGH_SERVER",
            ) from None

    def _open(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Body | bytes = None,
        headers: Mapping[str, str] | None = None,
    ) -> Connection:
        """Send a request and wait for the answer's head; raise what the server says is wrong."""
        repeatable = method == "GET" or isinstance(body, bytes)
        content = _content(body)
        target = self._address.base + path + query_text(query)
        # A write that fails on a connection which the server has just closed is not known to be
        # done, so it has a connection of its own.
        kept = self._take() if repeatable else None
        connection = kept or self._connect_to_known()
        try:
            binary = {"Content-Type": "application/octet-stream"} if isinstance(body, bytes) else {}
            sent = self._headers | binary | dict(headers or {})
            self._guard_sent(method, lambda: connection.ask(method, target, sent, content))
            if connection.status >= 300:
                raise failure(connection.status, self._guard(connection.read))
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self) -> Connection:
        return self._guard(lambda: Connection(self._address, self._proxy, self._timeout_s))

    def _connect_to_known(self) -> Connection:
        """A new connection to the server that is known, if one is."""
        connection = self._connect()
        if self._known is None:
            return connection
        try:
            check(self.server, self._known, self._ask_for_key(connection))
            if connection.rest():
                return connection
        except BaseException:
            connection.close()
            raise
        connection.close()
        raise Unavailable(f"The server at {self.server} closes connections before any request.")

    def _ask_for_key(self, connection: Connection) -> KnownServer | None:
        return self._guard(lambda: ask_for_key(connection, self._address, self._bare_headers))

    def _take(self) -> Connection | None:
        """A connection that the server has not closed meanwhile, if there is one."""
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                break
            if connection.is_fresh:
                return connection
            connection.close()
        return None

    def _put_back(self, connection: Connection) -> None:
        """Keep a connection for the next request that reads, a few of them at most."""
        if not connection.rest():
            connection.close()
            return
        self._idle.append(connection)
        while len(self._idle) > MOST_IDLE:
            try:
                self._idle.pop(0).close()
            except IndexError:
                break

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
        except OtherScheme as error:
            said = self._address.scheme
            spoken = "http" if said == "https" else "https"
            message = f"The server at {self.server} speaks {spoken}, and not {said}."
            hint = f"write {spoken}:// in the address: `bough login URL`, or BOUGH_SERVER"
            raise Unavailable(message, hint=hint) from error
        except CutOff as error:
            message = f"The connection to the server at {self.server} was lost."
            raise Unavailable(message, hint=_LOST) from error
        except Garbled as error:
            message = f"The answer of the server at {self.server} cannot be read: {error}."
            raise Unavailable(message, hint=_HINT) from error


def _content(body: Body | bytes) -> bytes:
    if isinstance(body, bytes):
        return body
    return b"" if body is None else msgspec.json.encode(body)


def _next(lines: Iterator[bytes]) -> bytes:
    """The next line of a stream that had begun, or nothing at its end."""
    try:
        return next(lines, b"")
    except ConnectionError as error:
        raise CutOff from error


def _header_value(what: str, value: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise Invalid(f"The {what} must be printable ASCII characters on one line.")
    return value.strip()
