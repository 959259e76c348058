"""HTTP/1.1 over a socket: as much of it as the client needs, through a proxy where there is one.

`http.client` of the library imports the parser of electronic mail, which makes every command start
later; docs/decisions/0019 has the figures.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator, Mapping

from bough.client.addresses import Address, Proxy

#: The longest line of a head, and the most of them; more is an attack or no HTTP.
MAXIMUM_LINE = 65_536
MAXIMUM_HEADERS = 200
BLOCK = 65_536
#: How long a connection is kept for the next request; servers keep one for 5 s or longer.
IDLE_S = 2.0
#: What TLS says of an answer that is none of TLS; it depends on the version of OpenSSL.
_NO_TLS = {"HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE", "WRONG_VERSION_NUMBER"}
#: How a server that expects TLS answers a request that is none: an alert.
_TLS_ALERT = b"\x15\x03"
#: The status of an answer after which the connection is a websocket.
SWITCHING = 101


class Garbled(Exception):
    """The answer is no HTTP."""


class CutOff(Exception):
    """The connection ended before the answer did."""


class OtherScheme(Exception):
    """The address says http where the server speaks https, or the other way round."""


class Connection:
    """A connection for one request at a time."""

    def __init__(self, address: Address, proxy: Proxy | None, timeout_s: float) -> None:
        self._address = address
        #: A proxy that is sent whole addresses; a secure connection goes through a tunnel instead.
        self._passing = proxy if address.scheme == "http" else None
        self._proxied = proxy is not None
        self._socket = _connect(proxy or address, timeout_s)
        self.status = 0
        self._headers: dict[str, str] = {}
        self._reusable = False
        self._idle_since_s = 0.0
        self._file = self._socket.makefile("rb")
        try:
            if address.scheme == "https":
                if proxy is not None:
                    self._open_tunnel(proxy)
                self._file.close()
                self._socket = _wrap(self._socket, address.host)
                self._file = self._socket.makefile("rb")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self._socket.close()

    def reaches(self, address: str) -> bool:
        """Whether the other end, without a proxy between, is at an address like `127.0.0.1:80`."""
        host, port = self._socket.getpeername()[:2]
        return not self._proxied and address == f"{host}:{port}"

    def wait_forever(self) -> None:
        """From now on, silence is no failure."""
        self._socket.settimeout(None)

    def rest(self) -> bool:
        """End a request; whether another one can be sent."""
        self._idle_since_s = time.monotonic()
        return self._reusable

    @property
    def is_fresh(self) -> bool:
        """Whether it can still be used: not idle for long, and the server has not hung up."""
        if time.monotonic() - self._idle_since_s > IDLE_S:
            return False
        # Not `select`, which refuses the sockets of programs that have more than 1,024 files open.
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        """Send a request, and read the head of the answer."""
        sent = {**headers, "Content-Length": str(len(body))}
        if self._passing is not None:
            target = f"http://{self._address.authority}{target}"
            sent |= _proxy_headers(self._passing)
        self._send(f"{method} {target}", sent, body)

    def take_over(self) -> tuple[socket.socket, str, bytes]:
        """The socket after the switch to a websocket, with what the server accepted and sent."""
        self._socket.setblocking(False)
        try:
            rest = self._file.peek()
        except OSError:
            # With TLS, where nothing has come yet.
            rest = b""
        return self._socket, self._headers.get("sec-websocket-accept", ""), rest

    def read(self) -> bytes:
        """All of the answer's body."""
        return b"".join(self._blocks())

    def lines(self) -> Iterator[bytes]:
        """The lines of the body as they come, with their ends."""
        rest = b""
        for block in self._blocks():
            *whole, rest = (rest + block).split(b"\n")
            yield from (line + b"\n" for line in whole)
        if rest:
            yield rest

    def _open_tunnel(self, proxy: Proxy) -> None:
        host = f"[{self._address.host}]" if ":" in self._address.host else self._address.host
        target = f"{host}:{self._address.port}"
        self._send(f"CONNECT {target}", {"Host": target, **_proxy_headers(proxy)}, b"")
        if self.status >= 300:
            raise OSError(f"the proxy {proxy.host}:{proxy.port} refuses with status {self.status}")

    def _send(self, request: str, headers: Mapping[str, str], body: bytes) -> None:
        lines = [f"{request} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        self.status, self._reusable = 0, False
        while self._is_preliminary():
            self._read_head()

    def _is_preliminary(self) -> bool:
        """Whether the final answer is still to come."""
        return self.status < 200 and self.status != SWITCHING

    def _read_head(self) -> None:
        first = self._line()
        if not first:
            raise ConnectionResetError("The connection was closed before an answer came")
        if first.startswith(_TLS_ALERT) and self._address.scheme == "http":
            raise OtherScheme
        version, _, rest = first.partition(b" ")
        if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
            raise Garbled(f"it began with {first[:40]!r}")
        self.status = int(rest[:3])
        self._headers = {"connection": "close"} if version == b"HTTP/1.0" else {}
        for _ in range(MAXIMUM_HEADERS):
            line = self._line().rstrip(b"\r\n").decode("latin-1")
            if not line:
                return
            name, _, value = line.partition(":")
            self._headers[name.strip().lower()] = value.strip()
        raise Garbled("its head has no end")

    def _blocks(self) -> Iterator[bytes]:
        """The body, block by block, as the head says that it is framed."""
        if self._headers.get("transfer-encoding", "").lower() == "chunked":
            while size := _number(self._whole_line().partition(b";")[0], 16):
                yield from self._exactly(size)
                self._whole_line()
            while self._line().strip():
                pass
        elif "content-length" in self._headers:
            yield from self._exactly(_number(self._headers["content-length"].encode(), 10))
        elif self.status not in (204, 304):
            while block := self._file.read1(BLOCK):
                yield block
            return
        self._reusable = self._headers.get("connection", "").lower() != "close"

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size:
            block = self._file.read1(min(size, BLOCK))
            if not block:
                raise CutOff
            size -= len(block)
            yield block

    def _whole_line(self) -> bytes:
        line = self._line()
        if not line.endswith(b"\n"):
            raise CutOff
        return line

    def _line(self) -> bytes:
        line = self._file.readline(MAXIMUM_LINE + 1)
        if len(line) > MAXIMUM_LINE:
            raise Garbled("a line of its head is too long")
        return line


def _number(text: bytes, base: int) -> int:
    try:
        number = int(text.strip(), base)
    except ValueError:
        raise Garbled(f"{text[:40]!r} is not a length") from None
    if number < 0:
        raise Garbled(f"{number} is not a length")
    return number


def _connect(to: Address | Proxy, timeout_s: float) -> socket.socket:
    # Plain names as bytes: text would be put through the rules of international names.
    name: str | bytes = to.host.encode() if to.host.isascii() else to.host
    return socket.create_connection((name, to.port), timeout_s)  # pyright: ignore[reportArgumentType]


def _wrap(plain: socket.socket, host: str) -> socket.socket:
    import ssl  # noqa: PLC0415  only for https

    try:
        return ssl.create_default_context().wrap_socket(plain, server_hostname=host)
    except ssl.SSLError as error:
        if error.reason in _NO_TLS:
            raise OtherScheme from error
        raise


def _proxy_headers(proxy: Proxy) -> dict[str, str]:
    if not proxy.user:
        return {}
    from binascii import b2a_base64  # noqa: PLC0415  only for proxies that ask for a user

    encoded = b2a_base64(proxy.user.encode(), newline=False).decode()
    return {"Proxy-Authorization": f"Basic {encoded}"}
