"""A server on the loopback that answers as a test says: what no real apiserver can be made to do.

It hangs up, trickles, stops in the middle, is too busy, or wants another token. What a real one can
be made to do is tried on a real one, in tests/kubernetes.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from bough.kube.access import Access, FixedCredential, Text
from bough.kube.client import KubeClient
from bough.kube.connections import Connections
from tests.kubernetes.bed.certificates import write_certificates


class Exchange(BaseHTTPRequestHandler):
    """One request, and the ways to answer it."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def read_body(self) -> bytes:
        """What was sent."""
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def answer(self, body: Any, status: int = 200, **headers: str) -> None:
        """A whole answer."""
        sent = json.dumps(body).encode()
        self.begin(status, **{"Content-Length": str(len(sent))}, **headers)
        self.wfile.write(sent)

    def refuse(self, status: int, reason: str = "", message: str = "", **headers: str) -> None:
        """A failure, as an apiserver tells it."""
        told = {"kind": "Status", "code": status, "reason": reason, "message": message}
        self.answer(told, status, **headers)

    def begin(self, status: int = 200, **headers: str) -> None:
        """The head of an answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def begin_lines(self) -> None:
        """The head of a watch."""
        self.begin(Transfer_Encoding="chunked")

    def line(self, value: Any) -> None:
        """One line of a watch."""
        self.chunk(json.dumps(value).encode() + b"\n")

    def event(self, kind: str, name: str, version: int) -> None:
        """One event of a watch."""
        metadata = {"name": name, "resourceVersion": str(version)}
        self.line({"type": kind, "object": {"metadata": metadata}})

    def chunk(self, data: bytes) -> None:
        """A part of an answer whose length is not known."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def end_lines(self) -> None:
        """The end of a watch."""
        self.wfile.write(b"0\r\n\r\n")

    def hang_up(self) -> None:
        """No more of this connection."""
        self.close_connection = True

    def do_GET(self) -> None:
        self.server.asked.append((self.command, self.path))
        self.server.behaviour(self)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815

    def setup(self) -> None:
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()
        super().setup()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is printed."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    behaviour: Callable[[Exchange], object]
    asked: list[tuple[str, str]]

    def handle_error(self, *_: object) -> None:
        """Connections that end in the middle are what is tested."""


class ScriptedApiserver:
    """`with ScriptedApiserver(folder, behaviour) as server:`"""

    def __init__(self, folder: Path, behaviour: Callable[[Exchange], object]) -> None:
        write_certificates(folder)
        self._server = _Server(("127.0.0.1", 0), Exchange)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(folder / "bed.crt", folder / "bed.key")
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._server.behaviour = behaviour
        #: Methods and paths, in the order in which they came.
        self.asked: list[tuple[str, str]] = []
        self._server.asked = self.asked
        self.url = f"https://127.0.0.1:{self._server.server_port}"
        self.authority = folder / "bed-ca.crt"

    def __enter__(self) -> ScriptedApiserver:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


# Clients of it

#: Only a bound of patience.
SOON_S = 60


def access_to(server: ScriptedApiserver, token: Text | None = None) -> Access:
    return Access(server.url, FixedCredential(token), Text(path=str(server.authority)))


_opened: list[Connections] = []


def close_connections() -> None:
    """Close every connection that was opened here; each test does so at its end."""
    while _opened:
        _opened.pop().close()


def connections_to(access: Access, **options: Any) -> Connections:
    _opened.append(Connections(access, **{"timeout_s": SOON_S, **options}))
    return _opened[-1]


def client_with(access: Access, **options: Any) -> KubeClient:
    client = KubeClient(access, **{"timeout_s": SOON_S, **options})
    _opened.append(client._connections)
    return client


def client_of(server: ScriptedApiserver, timeout_s: float = SOON_S) -> KubeClient:
    return client_with(access_to(server), timeout_s=timeout_s)


def wait_for(so: Callable[[], bool]) -> None:
    until = time.monotonic() + SOON_S
    while not so():
        assert time.monotonic() < until
        time.sleep(0.01)
