"""HTTP to one server: requests, answers, streams. Must not know what is asked.

Every request has a connection of its own, so that a client can be shared between threads. Only
reading is tried again, and only where there was no connection: a write may have been made.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from bough.client.failure import failure
from bough.errors import Invalid, Unavailable
from bough.version import VERSION

#: Query parameters: what is `None`, empty or `False` by default is left out by the caller.
Query = Mapping[str, Any]

TRIES = 3
PAUSE_S = 0.2


class Transport:
    """Where the server is, who asks, and how long to wait."""

    def __init__(self, server: str, token: str | None, user: str | None, timeout_s: float) -> None:
        parts = urlsplit(server if "://" in server else f"http://{server}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Invalid(f"{server!r} is not the address of a server, like http://127.0.0.1:8080.")
        try:
            self._port = parts.port
        except ValueError:
            raise Invalid(f"{server!r} has no valid port.") from None
        #: As it is shown to people.
        self.server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._base = parts.path.rstrip("/")
        self._timeout_s = timeout_s
        self._headers = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"bough/{VERSION}",
        }
        if token:
            self._headers["Authorization"] = f"Bearer {_header_value('token', token)}"
        if user:
            self._headers["x-osmo-user"] = _header_value("user", user)

    def get(self, path: str, query: Query | None = None) -> Any:
        """Read something."""
        for attempt in range(TRIES):
            if attempt:
                time.sleep(PAUSE_S * attempt)
            try:
                return self._ask("GET", path, query)
            except Unavailable as error:
                cause = error.__cause__
                lost = isinstance(cause, OSError) and not isinstance(cause, TimeoutError)
                if not lost or attempt == TRIES - 1:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def send(self, method: str, path: str, body: Any = None, query: Query | None = None) -> Any:
        """Change something, or ask with a body: one attempt."""
        return self._ask(method, path, query, body)

    def text(self, path: str, query: Query | None = None) -> str:
        """Read plain text."""
        return "".join(self.lines(path, query))

    def lines(
        self, path: str, query: Query | None = None, *, headers: Mapping[str, str] | None = None
    ) -> Iterator[str]:
        """The lines of a stream as they come, with their ends; it may stay open for long."""
        connection, response = self._open("GET", path, query, headers=headers)
        try:
            if connection.sock is not None:
                connection.sock.settimeout(None)
            while line := self._guard(response.readline):
                yield line.decode(errors="replace")
        finally:
            connection.close()

    def _ask(self, method: str, path: str, query: Query | None, body: Any = None) -> Any:
        connection, response = self._open(method, path, query, body)
        try:
            content: bytes = self._guard(response.read)
        finally:
            connection.close()
        try:
            return json.loads(content) if content.strip() else None
        except ValueError:
            raise Unavailable(
                f"What answers at {self.server} is not Bough: the answer is no JSON.",
                hint="check the address: `bough login URL`, or BOUGH_SERVER",
            ) from None

    def _open(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Send a request and wait for the answer's head; raise what the server says is wrong."""
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=self._timeout_s)
        content = None if body is None else json.dumps(body).encode()
        target = self._base + path + _query_text(query)
        sent = self._headers | dict(headers or {})

        def ask() -> http.client.HTTPResponse:
            connection.request(method, target, content, sent)
            return connection.getresponse()

        try:
            response = self._guard(ask)
            if response.status >= 300:
                raise failure(response.status, self._guard(response.read))
        except BaseException:
            connection.close()
            raise
        return connection, response

    def _guard(self, work: Any) -> Any:
        """Do something on the network, and say in words what is wrong with it."""
        hint = "is it running (`bough serve`)? Say where: `bough login URL`, or BOUGH_SERVER"
        try:
            return work()
        except TimeoutError as error:
            message = f"The server at {self.server} did not answer in {self._timeout_s:g} s."
            raise Unavailable(message) from error
        except OSError as error:
            reason = error.strerror or str(error) or type(error).__name__
            message = f"Cannot reach the server at {self.server}: {reason}."
            raise Unavailable(message, hint=hint) from error
        except (http.client.HTTPException, ValueError) as error:
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            message = f"The server at {self.server} broke off, or speaks no HTTP ({what})."
            raise Unavailable(message, hint=hint) from error


def path_of(*segments: str) -> str:
    """A path below `/api`; every segment is quoted."""
    return "/api/" + "/".join(quote(segment, safe="") for segment in segments)


def given(**values: Any) -> dict[str, Any]:
    """The query parameters that were given: not `None`, and no empty list."""
    return {
        name: value
        for name, value in values.items()
        if value is not None and value not in ((), [], "")
    }


def _query_text(query: Query | None) -> str:
    if not query:
        return ""
    spelled = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in query.items()
    }
    return "?" + urlencode(spelled, doseq=True)


def _header_value(what: str, value: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise Invalid(f"The {what} must be printable ASCII characters on one line.")
    return value.strip()
