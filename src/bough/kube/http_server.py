"""The HTTP server that programs in a cluster share: listens on `HOST:PORT`, on IPv4 and IPv6."""

from __future__ import annotations

import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bough.errors import Invalid


def parse_listen(text: str) -> tuple[str, int]:
    """Parse `HOST:PORT`; without a host it means all addresses of the machine."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise Invalid(f"--listen: {text!r} must be HOST:PORT, or :PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


class ListeningServer(ThreadingHTTPServer):
    """Answers each connection in a thread of its own."""

    daemon_threads = True

    def __init__(self, listen: str, handler: type[BaseHTTPRequestHandler]) -> None:
        """listen:  `HOST:PORT`; raises `Invalid` if it is not possible to listen there."""
        host, port = parse_listen(listen)
        if not host or ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host or "::", port), handler)
        except OSError as error:
            raise Invalid(f"--listen: {listen}: {error.strerror}") from None

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    def server_bind(self) -> None:
        """Accept IPv4 as well as IPv6, if it listens on all addresses."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()
