"""Where programs of a cluster listen: `HOST:PORT`, on addresses of both kinds."""

from __future__ import annotations

import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bough.errors import Invalid


def parse_listen(text: str) -> tuple[str, int]:
    """`HOST:PORT`, of which the host may be left out: then on all addresses of the machine."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise Invalid(f"--listen: {text!r} must be HOST:PORT, or :PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


class ListeningServer(ThreadingHTTPServer):
    """Answers each connection in a thread of its own."""

    daemon_threads = True

    def __init__(self, listen: str, handler: type[BaseHTTPRequestHandler]) -> None:
        """listen:  `HOST:PORT`; `Invalid` where nothing can listen there."""
        host, port = parse_listen(listen)
        if not host or ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host or "::", port), handler)
        except OSError as error:
            raise Invalid(f"--listen: {listen}: {error.strerror}") from None

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    def server_bind(self) -> None:
        """On all addresses means those of both kinds."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()
