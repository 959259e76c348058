"""A small real HTTP server on loopback: answers as it is told, and remembers the requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from tests.answer_types import complete


class Asked(NamedTuple):
    method: str
    path: str
    query: dict[str, list[str]]
    body: Any
    headers: dict[str, str]


class Answering:
    """The requests, and their answers."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.asked: list[Asked] = []
        #: How many connections there were, and whether each ends after its first answer.
        self.connections = 0
        self.closes = False
        self.answers: dict[tuple[str, str], list[tuple[int, bytes]]] = {}

    def answer(self, method: str, path: str, body: Any = None, status: int = 200) -> None:
        """Answer a request; several answers are given one after the other, the last forever.

        What the body does not say is filled in by the type of the answer.
        """
        if status < 300 and not isinstance(body, bytes) and body is not None:
            body = complete(method, path, body)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers.setdefault((method, path), []).append((status, content))

    def find(self, method: str, path: str) -> tuple[int, bytes]:
        found = self.answers.get((method, path))
        if not found:
            missing = {"message": f"nothing at {method} {path}", "error_code": "USER"}
            return 404, json.dumps(missing).encode()
        return found.pop(0) if len(found) > 1 else found[0]

    @property
    def last(self) -> Asked:
        return self.asked[-1]

    @property
    def requests(self) -> list[str]:
        return [f"{each.method} {each.path}" for each in self.asked]


@contextmanager
def answering() -> Iterator[Answering]:
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_arguments: object) -> None:
            pass

        def setup(self) -> None:
            super().setup()
            found.connections += 1

        def _serve(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            found.asked.append(
                Asked(
                    self.command,
                    unquote(parts.path),
                    parse_qs(parts.query),
                    json.loads(content) if content else None,
                    {name.lower(): value for name, value in self.headers.items()},
                )
            )
            status, body = found.find(self.command, unquote(parts.path))
            if status == 0:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection |= found.closes

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815  http.server's names

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Answering(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
