"""Runs before all routes: tidies paths and writes the access log.

A line of the log has neither query nor headers, which may hold secrets. A client that is refused
while it still sends is read from for a while, or it would never read the refusal.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from http import HTTPStatus
from time import perf_counter
from typing import cast

import msgspec
from anyio import move_on_after
from litestar.types import ASGIApp, HTTPReceiveMessage, Message, Receive, Scope, Send
from litestar.types.asgi_types import HTTPScope

from bough.api.common import ErrorBody
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

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass on what is none."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        at_end = ExitStack()
        path = _SLASHES.sub("/", scope["path"])
        visit = cast("HTTPScope", {**scope, "path": path, AT_END: at_end})
        started = perf_counter()
        status = 0
        complete = False
        body = BodyCount()
        at_end.callback(body.close)

        async def taken() -> HTTPReceiveMessage:
            nonlocal complete
            message = cast("HTTPReceiveMessage", await receive())
            complete = not message.get("more_body", False)
            if not status:
                # The guard has run before a body is read; what is refused is not kept.
                user = getattr(visit.get("user"), "name", "")
                body.add(user, len(message.get("body", b"")))
            return message

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status >= HTTPStatus.BAD_REQUEST and not complete:
                    await _take_rest(taken)
                known = {name.lower() for name, _ in message["headers"]}
                more = [each for each in _HEADERS if each[0] not in known]
                more += cast("list[tuple[bytes, bytes]]", visit.get(SAID, []))
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        try:
            if "\0" in path or b"%00" in scope.get("query_string", b""):
                await _refuse(watched)
            else:
                await self._application(visit, taken, watched)
        finally:
            at_end.close()
            _log(visit, status, perf_counter() - started)


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


def _log(scope: HTTPScope, status: int, seconds: float) -> None:
    client = scope.get("client")
    user = getattr(scope.get("user"), "name", "") or "-"
    ACCESS_LOG.info(
        "%s %s %s %s %d %.1fms",
        client[0] if client else "-",
        user,
        scope["method"],
        _printable(scope["path"]),
        status,
        seconds * 1_000,
    )


def _printable(path: str) -> str:
    shown = "".join(each if each.isprintable() else "\ufffd" for each in path)
    return shown if len(shown) <= 300 else shown[:300] + "…"
