"""Runs before all routes: tidies paths and writes the access log.

A line of the log has neither query nor headers, which may hold secrets. A client that is refused
while it still sends is read from for a while, or it would never read the refusal.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack
from http import HTTPStatus
from time import perf_counter
from typing import cast

import msgspec
from anyio import move_on_after
from litestar import Litestar
from litestar.types import HTTPReceiveMessage, Message, Receive, Scope, Send
from litestar.types.asgi_types import HTTPScope

from bough.api.common import ErrorBody
from bough.server.answer_cache import Answer, KeptAnswers, wants_keeping
from bough.server.client_versions import SAID
from bough.server.concurrency_limits import AT_END, BodyCount

ACCESS_LOG = logging.getLogger("bough.access")

#: How much is still read of a body that was refused, and for how long.
REST_BYTES = 64 << 20
REST_S = 10
_SLASHES = re.compile(r"/{2,}")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]


class Middleware:
    """Wraps an application."""

    def __init__(self, application: Litestar) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass on what is none."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        started = perf_counter()
        path = scope["path"]
        if "//" in path:
            path = _SLASHES.sub("/", path)
        visit = cast("HTTPScope", {**scope, "path": path})
        answers: KeptAnswers = self._application.state.kept_answers
        exchange = _Exchange(visit, receive, send, answers)
        try:
            if "\0" in path or b"%00" in scope.get("query_string", b""):
                await _refuse(exchange.send)
            elif (answer := await answers.look(cast("dict[str, object]", visit))) is not None:
                await exchange.repeat(answer)
            else:
                await self._application(visit, exchange.receive, exchange.send)
        finally:
            exchange.at_end.close()
            _log(visit, exchange.user, exchange.status, perf_counter() - started)


class _Exchange:
    """One request and its answer, as they pass."""

    def __init__(
        self, visit: HTTPScope, receive: Receive, send: Send, answers: KeptAnswers
    ) -> None:
        self._visit = visit
        self._receive = receive
        self._send = send
        self._answers = answers
        self._complete = False
        self._body = BodyCount()
        self._headers: list[tuple[bytes, bytes]] = []
        self._repeated_for = ""
        self._in_parts = False
        #: 0: nothing is answered yet.
        self.status = 0
        self.at_end = ExitStack()
        self.at_end.callback(self._body.close)
        cast("dict[str, object]", visit)[AT_END] = self.at_end

    @property
    def user(self) -> str:
        """The user of the request, as far as it is known."""
        return self._repeated_for or getattr(self._visit.get("user"), "name", "")

    async def repeat(self, answer: Answer) -> None:
        """Answer as the same request was answered before."""
        self.status, self._repeated_for = HTTPStatus.OK, answer.user
        start: Message = {
            "type": "http.response.start",
            "status": self.status,
            "headers": answer.headers,
        }
        await self._send(start)
        await self._send({"type": "http.response.body", "body": answer.body, "more_body": False})

    async def receive(self) -> HTTPReceiveMessage:
        """The next part of the body."""
        message = cast("HTTPReceiveMessage", await self._receive())
        self._complete = not message.get("more_body", False)
        if not self.status:
            # The guard has run before a body is read; what is refused is not kept.
            self._body.add(self.user, len(message.get("body", b"")))
        return message

    async def send(self, message: Message) -> None:
        """The next part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.status >= HTTPStatus.BAD_REQUEST and not self._complete:
                await _take_rest(self.receive)
            message = {**message, "headers": self._with_ours(message["headers"])}
        elif message["type"] == "http.response.body" and wants_keeping(self._visit):
            # Only what is sent in one part is kept.
            self._in_parts = self._in_parts or message.get("more_body", False)
            if not self._in_parts:
                body = message.get("body", b"")
                self._answers.remember(self._visit, self.status, self._headers, body)
        await self._send(message)

    def _with_ours(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        known = {name.lower() for name, _ in headers}
        more = [each for each in _HEADERS if each[0] not in known]
        more += cast("list[tuple[bytes, bytes]]", self._visit.get(SAID, []))
        self._headers = [*headers, *more]
        return self._headers


async def _take_rest(receive: Callable[[], Awaitable[HTTPReceiveMessage]]) -> None:
    """A connection that is closed with something unread is reset, and so is the answer lost."""
    size = 0
    with move_on_after(REST_S):
        while size <= REST_BYTES:
            message = await receive()
            size += len(message.get("body", b""))
            if not message.get("more_body", False):
                return


async def _refuse(send: Send) -> None:
    body = msgspec.json.encode(
        ErrorBody("The address contains the character NUL, which no name has.", "USER")
    )
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _log(scope: HTTPScope, user: str, status: int, seconds: float) -> None:
    client = scope.get("client")
    ACCESS_LOG.info(
        "%s %s %s %s %d %.1fms",
        client[0] if client else "-",
        user or "-",
        scope["method"],
        _printable(scope["path"]),
        status,
        seconds * 1_000,
    )


def _printable(path: str) -> str:
    if path.isprintable() and len(path) <= 300:
        return path
    shown = "".join(each if each.isprintable() else "\ufffd" for each in path)
    return shown if len(shown) <= 300 else shown[:300] + "…"
