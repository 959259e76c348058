"""Small real receivers of e-mail and of webhooks on loopback."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email import message_from_string
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Hooks:
    """A receiver of webhooks: answers as it is told, and remembers what it got."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.statuses: list[int] = []
        self.got: list[tuple[str, Any]] = []
        #: Paths at which an answer comes a byte at a time, and never ends by itself.
        self.slow: set[str] = set()
        self.over = threading.Event()


@contextmanager
def receiving_hooks() -> Iterator[Hooks]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_arguments: object) -> None:
            pass

        def do_POST(self) -> None:  # http.server's name
            content = self.rfile.read(int(self.headers["Content-Length"]))
            found.got.append((self.path, json.loads(content)))
            if self.path in found.slow:
                self._trickle()
                return
            status = found.statuses.pop(0) if found.statuses else 200
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"{found.address}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _trickle(self) -> None:
            self.close_connection = True
            with suppress(OSError):
                while not found.over.wait(0.02):
                    self.wfile.write(b"x")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Hooks(f"http://127.0.0.1:{server.server_address[1]}")
    with _served(server):
        try:
            yield found
        finally:
            found.over.set()


class Mails:
    """A receiver of e-mail."""

    def __init__(self, port: int) -> None:
        self.port = port
        #: With the receivers of each.
        self.got: list[tuple[list[str], Message]] = []
        self.refuses = False


@contextmanager
def receiving_mail() -> Iterator[Mails]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say(220, "here")
            receivers: list[str] = []
            while line := self.rfile.readline().decode().strip():
                word = line.split(":")[0].upper()
                if word == "DATA":
                    self._say(354, "go on")
                    lines = iter(lambda: self.rfile.readline().decode(), ".\r\n")
                    found.got.append((receivers, message_from_string("".join(lines))))
                elif word == "RCPT TO":
                    if found.refuses:
                        self._say(451, "later")
                        continue
                    receivers.append(line.partition("<")[2].rstrip(">"))
                self._say(221 if word == "QUIT" else 250, "ok")
                if word == "QUIT":
                    return

        def _say(self, code: int, text: str) -> None:
            self.wfile.write(f"{code} {text}\r\n".encode())

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found = Mails(server.server_address[1])
    with _served(server):
        yield found


@contextmanager
def _served(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
