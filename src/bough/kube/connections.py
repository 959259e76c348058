"""Connections to one apiserver: reused, and limited in number and in time.

A request is retried here only if that can do no harm: if nothing was sent, if the apiserver says
that nothing was done (429), or if the request only reads.
"""

from __future__ import annotations

import contextlib
import http.client
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from bough.kube.access import Access, KubeCredential
from bough.kube.back_off import BackOff
from bough.kube.failures import Busy, KubeRefused, Silent, Unreachable, read_refusal
from bough.kube.heads import Answer, written_head

#: How long an idle connection is kept; apiservers keep it for minutes, proxies not so long.
IDLE_S = 30.0
BLOCK = 262_144
#: The longest answer; a page of 500 objects of the largest size that etcd stores is shorter.
MAXIMUM_ANSWER = 1 << 30
#: How often a request is retried after "too many requests".
BUSY_TRIES = 5
_RETRY_AFTER_MOST_S = 10.0
#: Methods that only read, so they can be repeated.
_SAFE = frozenset({"GET"})

Pause = Callable[[float], object]
Guard = Callable[[], object] | None


class Request(NamedTuple):
    """One request."""

    method: str
    target: str
    body: bytes = b""
    content_type: str = "application/json"
    #: Whether 429 is an answer to return, not a reason to wait and retry.
    busy_is_answer: bool = False
    #: In addition to those of every request.
    headers: tuple[tuple[str, str], ...] = ()


class Connections:
    """Requests to one apiserver, from any thread."""

    def __init__(
        self,
        access: Access,
        in_flight: int = 16,
        timeout_s: float = 30.0,
        pause: Pause = time.sleep,
        guard: Guard = None,
    ) -> None:
        """guard:  called right before a write is sent; it raises to prevent that."""
        self.access = access
        self._guard = guard
        self._timeout_s = timeout_s
        self._pause = pause
        self._room = threading.BoundedSemaphore(in_flight)
        self._lock = threading.Lock()
        self._resting: list[_Connection] = []
        self._most_resting = in_flight

    def ask(self, request: Request, timeout_s: float | None = None) -> bytes:
        """Return the body of the answer; raises `KubeRefused` or `Unreachable`."""
        waiting = BackOff(first_s=0.5, most_s=_RETRY_AFTER_MOST_S)
        for attempt in range(BUSY_TRIES):
            try:
                with self._room:
                    return self._answer(request, timeout_s or self._timeout_s)
            except Busy as busy:
                if request.busy_is_answer or attempt == BUSY_TRIES - 1:
                    raise
                asked_s = min(busy.retry_after_s or 0.0, _RETRY_AFTER_MOST_S)
            self._pause(max(asked_s, waiting.wait_s()))
        raise AssertionError("the last try returns or raises")

    def open_stream(self, request: Request, silence_s: float) -> Stream:
        """An answer that is read as it arrives; it fails if nothing comes for `silence_s`."""
        connection, response = self._send(request, self._timeout_s)
        try:
            if response.status >= 300:
                raise _refusal(response, self._read(connection, response, self._timeout_s))
            connection.settimeout(silence_s)
        except BaseException:
            connection.close()
            raise
        return Stream(connection, response, silence_s)

    def close(self) -> None:
        """Close idle connections."""
        with self._lock:
            resting, self._resting = self._resting, []
        for connection in resting:
            connection.close()

    def _answer(self, request: Request, timeout_s: float) -> bytes:
        connection, response = self._send(request, timeout_s)
        try:
            body = self._read(connection, response, timeout_s)
        except BaseException:
            connection.close()
            raise
        self._rest(connection, response)
        if response.status >= 300:
            raise _refusal(response, body)
        return body

    def _send(self, request: Request, timeout_s: float) -> tuple[_Connection, Answer]:
        """Send a request; if the credential is refused, once more with a new one."""
        credential = self.access.credentials.credential()
        connection, response = self._send_as(request, credential, timeout_s)
        if response.status == 401 and self.access.credentials.refused(credential):
            connection.close()
            credential = self.access.credentials.credential()
            connection, response = self._send_as(request, credential, timeout_s)
        return connection, response

    def _send_as(
        self, request: Request, credential: KubeCredential, timeout_s: float
    ) -> tuple[_Connection, Answer]:
        headers = {"Accept": "application/json", "User-Agent": "bough", **dict(request.headers)}
        if credential.token:
            headers["Authorization"] = f"Bearer {credential.token}"
        if request.body:
            headers["Content-Type"] = request.content_type
        while True:
            connection = self._take(credential, timeout_s)
            used_before = connection.used
            if request.method not in _SAFE:
                self._ask_guard(connection)
            try:
                return connection, connection.ask(request, headers)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                # The apiserver may have closed the idle connection at this very moment.
                if used_before and request.method in _SAFE and not isinstance(error, TimeoutError):
                    continue
                raise Unreachable(f"{self._where}: {_told(error)}", sent=True) from None

    def _ask_guard(self, connection: _Connection) -> None:
        try:
            if self._guard is not None:
                self._guard()
        except BaseException:
            connection.close()
            raise

    def _take(self, credential: KubeCredential, timeout_s: float) -> _Connection:
        """An idle connection that still works, or a new one."""
        context = self.access.context(credential)
        while True:
            with self._lock:
                connection = self._resting.pop() if self._resting else None
            if connection is None:
                break
            if connection.is_good(context):
                connection.settimeout(timeout_s)
                return connection
            connection.close()
        connection = _Connection(self.access, context, timeout_s)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise Unreachable(f"{self._where}: {_told(error)}", sent=False) from None
        return connection

    def _rest(self, connection: _Connection, response: Answer) -> None:
        if not response.will_close:
            connection.rest()
            with self._lock:
                if len(self._resting) < self._most_resting:
                    self._resting.append(connection)
                    return
        connection.close()

    def _read(self, connection: _Connection, response: Answer, timeout_s: float) -> bytes:
        """The whole body, within the time limit, however slowly it trickles in."""
        until_s = time.monotonic() + timeout_s
        blocks: list[bytes] = []
        size = 0
        try:
            while block := response.read1(BLOCK):
                blocks.append(block)
                size += len(block)
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    raise TimeoutError(f"the answer was not whole after {timeout_s:g} s")
                if size > MAXIMUM_ANSWER:
                    raise OSError(f"the answer is longer than {MAXIMUM_ANSWER} bytes")
                connection.settimeout(left_s)
            # read1 does not complain if the connection ends before the announced length.
            if response.length:
                raise OSError("the connection ended in the middle of an answer")
            response.close()
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self._where}: {_told(error)}", sent=True) from None
        return b"".join(blocks)

    @property
    def _where(self) -> str:
        return f"no answer from {self.access.address.scheme}://{self.access.address.netloc}"


class Stream:
    """An answer that is read as it arrives; another thread may call `close`."""

    def __init__(self, connection: _Connection, response: Answer, silence_s: float) -> None:
        self._connection = connection
        self._response = response
        self._silence_s = silence_s
        self._closed = False

    def read(self) -> bytes:
        """The next bytes; empty at the end, and after `close`."""
        try:
            return self._response.read1(BLOCK)
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            if self._closed:
                return b""
            if isinstance(error, TimeoutError):
                raise Silent(f"nothing came for {self._silence_s:g} s") from None
            raise Unreachable(f"the connection was lost: {_told(error)}") from None

    def close(self) -> None:
        """End the stream; a waiting reader returns at once."""
        self._closed = True
        self._connection.hang_up()

    def release(self) -> None:
        """Close the connection; only its reader may call this."""
        self._connection.close()


class _Connection(http.client.HTTPConnection):
    """One connection, which notices when the other side is gone."""

    def __init__(self, access: Access, context: ssl.SSLContext | None, timeout_s: float) -> None:
        address = access.address
        port = address.port or (443 if address.scheme == "https" else 80)
        host = address.hostname or ""
        super().__init__(host, port, timeout=timeout_s)
        self._named = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._tls_name = access.tls_server_name
        self._context = context
        self._idle_since_s = 0.0
        #: The last answer; the socket is closed only when this is, too.
        self._answer: Answer | None = None
        #: Whether a request has been answered on it.
        self.used = False

    def connect(self) -> None:
        """Connect, and verify the other side."""
        super().connect()
        _notice_silence(self.sock)
        if self._context is not None:
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self._tls_name)

    def ask(self, request: Request, headers: Mapping[str, str]) -> Answer:
        """Send a request, and read the head of the answer.

        Head and body are sent in one piece: one system call, and the apiserver is woken once.
        """
        body = request.body
        writes = request.method not in _SAFE
        length = len(body) if body or writes else None
        head = written_head(request.method, request.target, self._named, headers, length)
        self.sock.sendall(head + body)
        answer = self._answer = Answer(self.sock, method=request.method)
        answer.begin()
        return answer

    def close(self) -> None:
        """Close it, and its answer, which may not have been read to its end."""
        super().close()
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.close()

    def settimeout(self, seconds: float) -> None:
        """How long to wait for the next bytes."""
        if self.sock is not None:
            self.sock.settimeout(seconds)

    def rest(self) -> None:
        """Keep it for the next request, after an answer was read to its end."""
        self.used = True
        self._idle_since_s = time.monotonic()

    def is_good(self, context: ssl.SSLContext | None) -> bool:
        """Whether it can be reused: same TLS context, not idle for long, not closed by the peer."""
        if context is not self._context or self.sock is None:
            return False
        if time.monotonic() - self._idle_since_s > IDLE_S:
            return False
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return not poll.poll(0)

    def hang_up(self) -> None:
        """Wake the reading thread, which then closes the connection."""
        sock = self.sock
        if sock is not None:
            # Not `SSLSocket.shutdown`, which would dismantle the object while it is being read.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _notice_silence(sock: socket.socket) -> None:
    """Turn on TCP keepalive: without a sign of life for half a minute the connection fails."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000)


def _refusal(response: Answer, body: bytes) -> KubeRefused:
    refusal = read_refusal(response.status, body)
    after = response.fields.get("retry-after", "")
    refusal.retry_after_s = float(after) if after.isdigit() else None
    return refusal


def _told(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return str(error) or "it took too long"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
