"""Before everything else: paths are tidied, and every request leaves a line in the access log.

The line has neither query nor headers, where secrets may be. Must not know any route.
"""

from __future__ import annotations

import logging
import re
from time import perf_counter
from typing import Any

import msgspec

from bough.server.shapes import ErrorBody

ACCESS_LOG = logging.getLogger("bough.access")

_SLASHES = re.compile(r"/{2,}")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]


class Gate:
    """Wraps an application."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, or pass on what is none."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        scope = {**scope, "path": _SLASHES.sub("/", scope["path"])}
        started = perf_counter()
        status = 0

        async def watched(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                known = {name.lower() for name, _ in message["headers"]}
                more = [each for each in _HEADERS if each[0] not in known]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        try:
            if "\0" in scope["path"] or b"%00" in scope.get("query_string", b""):
                await _refuse(watched)
            else:
                await self._application(scope, receive, watched)
        finally:
            _log(scope, status, perf_counter() - started)


async def _refuse(send: Any) -> None:
    body = msgspec.json.encode(
        ErrorBody("The address contains the character NUL, which nothing is called.", "USER")
    )
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _log(scope: Any, status: int, seconds: float) -> None:
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
