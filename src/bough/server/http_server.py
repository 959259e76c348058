"""The HTTP server as Bough runs it: its settings, its connections, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from litestar import Litestar

from bough.server.connections import (
    ACCEPTED_AT_ONCE,
    BACKLOG,
    Bounds,
    OpenConnections,
    raise_file_limit,
)
from bough.server.middleware import Middleware
from bough.server.settings import Settings

LOG = logging.getLogger(__name__)

#: How long requests that are under way may take once the server is told to stop.
GRACE_S = 10
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class HttpServer(uvicorn.Server):
    """Says as soon as it is told to stop, so that open streams end."""

    def __init__(
        self, application: Litestar, connections: OpenConnections, stopping: threading.Event
    ) -> None:
        """stopping:  set when it is told to stop."""
        super().__init__(
            uvicorn.Config(
                Middleware(application),
                http=connections.protocol,
                access_log=False,
                log_config=None,
                timeout_graceful_shutdown=GRACE_S,
                server_header=False,
                # Whose headers are believed is decided by the authenticator alone.
                proxy_headers=False,
                backlog=ACCEPTED_AT_ONCE,
                ws="none",
            )
        )
        self._stopping = stopping

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let signals end only the server, so that everything else is closed in order."""
        before = {each: signal.signal(each, self.handle_exit) for each in _SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer; few connections are accepted in one go, but more of them can wait."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(BACKLOG)
        asyncio.get_running_loop().set_exception_handler(_log_loop_error)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; the second time without waiting for requests."""
        self._stopping.set()
        super().handle_exit(sig, frame)


def find_bounds(settings: Settings, *, says: bool = True) -> Bounds:
    """How many connections there can be, with as many open files as the system allows.

    says:  whether it is logged if these are fewer than wanted; one process of a server does that.
    """
    most = raise_file_limit(settings.connections)
    if says and most < settings.connections:
        LOG.warning(
            "the limit of open files leaves room for %d connections, not %d; raise it "
            "(LimitNOFILE= of a systemd unit, or ulimit -n)",
            most,
            settings.connections,
        )
    return Bounds(most, min(most, settings.connections_per_address))


def _log_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """Log an error that repeats while files run out in one line, without a traceback."""
    error = context.get("exception")
    if isinstance(error, OSError) and "socket" in context and "protocol" not in context:
        LOG.error("%s: %s", context["message"], error.strerror)
    else:
        loop.default_exception_handler(context)
