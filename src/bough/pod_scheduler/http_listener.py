"""The scheduler's HTTP server: health and metrics for all, questions for those with its token.

The token is in a Secret, so the cluster's own access rules say who may ask.
"""

from __future__ import annotations

import hmac
import logging
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import msgspec

from bough.errors import BoughError, NotFound, Unauthenticated
from bough.kube.http_server import ListeningServer

LOG = logging.getLogger(__name__)
#: The header with the token: an apiserver that forwards a question uses up `Authorization` itself.
TOKEN_HEADER = "X-Bough-Token"  # noqa: S105  a name
#: How long a client may take to send its request.
TIMEOUT_S = 10.0
#: How many questions are answered in parallel; each one holds up the loop while it is answered.
MOST_QUESTIONS = 4


class Reply(NamedTuple):
    """An answer."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


class Routes(NamedTuple):
    """What can be asked for."""

    healthy: Callable[[], Reply]
    ready: Callable[[], Reply]
    metrics: Callable[[], Reply]
    #: By path; each is called with the parameters of the question.
    questions: dict[str, Callable[[dict[str, str]], object]]


class Listener:
    """Answers requests, each in a thread of its own."""

    def __init__(self, listen: str, token: str, routes: Routes) -> None:
        turns = threading.BoundedSemaphore(MOST_QUESTIONS)

        class Handler(_Handler):
            def reply(self, path: str, asked: dict[str, str]) -> Reply:
                return _reply(routes, turns, path, asked, self.headers.get(TOKEN_HEADER), token)

        self._server = ListeningServer(listen, Handler)
        self.port = self._server.port
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="kube-listener", daemon=True
        )

    def start(self) -> None:
        """Start the thread that accepts connections."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and close the port."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    timeout = TIMEOUT_S
    server_version = "bough"
    sys_version = ""

    def reply(self, path: str, asked: dict[str, str]) -> Reply:
        """The answer to a request; a listener overrides this with its routes."""
        return _failed(404, "not_found", f"there is no {path} for {len(asked)} parameters")

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        asked = dict(parse_qsl(address.query, max_num_fields=10))
        reply = self.reply(address.path, asked)
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the library's name
        LOG.debug(format, *args)


def _reply(
    routes: Routes,
    turns: threading.BoundedSemaphore,
    path: str,
    asked: dict[str, str],
    shown: str | None,
    token: str,
) -> Reply:
    plain = {"/healthz": routes.healthy, "/readyz": routes.ready, "/metrics": routes.metrics}
    try:
        if path in plain:
            return plain[path]()
        if path not in routes.questions:
            raise NotFound(f"there is no {path}")
        if not hmac.compare_digest((shown or "").encode(), token.encode()):
            raise Unauthenticated(f"{TOKEN_HEADER} is not the token of this scheduler")
        with turns:
            answer = routes.questions[path](asked)
        return Reply(200, msgspec.json.encode(answer), "application/json")
    except BoughError as error:
        return _failed(error.http_status, error.code, error.message)
    except Exception:
        LOG.exception("a question could not be answered")
        return _failed(500, "error", "it failed")


def _failed(status: int, reason: str, message: str) -> Reply:
    """A failure in the form of an apiserver's `Status`, as one may forward the answer."""
    body = {"kind": "Status", "code": status, "reason": reason, "message": message}
    return Reply(status, msgspec.json.encode(body), "application/json")
