"""Answers an apiserver over TLS until told to stop: POST /validate; GET /healthz and /metrics.

Certificates that change are read again; connections opened after that use the new ones.
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import signal
import socket
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler
from types import FrameType
from typing import NamedTuple, cast

import msgspec

from bough.errors import BoughError, Invalid
from bough.kube.client import KubeClient
from bough.kube.http_server import ListeningServer
from bough.kube.kubeconfig import find_access
from bough.kube_webhook.checks import Lookups
from bough.kube_webhook.lookups import ClusterLookups
from bough.kube_webhook.reviews import ReviewCounts, answer_review

LOG = logging.getLogger(__name__)
VALIDATE = "/validate"
HEALTH = "/healthz"
METRICS = "/metrics"
#: Room for the largest object that etcd stores, twice (before and after), and the envelope.
MOST_BYTES = 8 << 20
#: How long a client may take to send a request, and an apiserver to answer a lookup.
TIMEOUT_S = 10.0
ASKING_S = 1.0
#: The most connections at the same time; an apiserver keeps only a few.
MOST_CONNECTIONS = 64
#: How long the thread of a connection that is closed may take to leave its place to another.
MAKING_ROOM_S = 1.0


class Options(msgspec.Struct, frozen=True):
    """The settings from the command line."""

    tls_cert: str
    tls_key: str
    listen: str = ":8443"
    kubeconfig: str | None = None
    context: str | None = None


def serve(options: Options) -> None:
    """Answer until told to stop."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    access = find_access(kubeconfig=options.kubeconfig, context=options.context)
    client = KubeClient(access, timeout_s=ASKING_S)
    webhook = Webhook(options, ClusterLookups(client))
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    webhook.start()
    LOG.info("answering on port %d", webhook.port)
    stopping.wait()
    webhook.stop()
    client.close()


class Webhook:
    """The HTTPS server; each connection has a thread of its own."""

    def __init__(self, options: Options, lookups: Lookups) -> None:
        certificates = Certificates(options.tls_cert, options.tls_key)

        counts = ReviewCounts()

        class Handler(_Handler):
            def review(self, body: bytes) -> bytes:
                return answer_review(body, lookups, counts)

            def metrics(self) -> str:
                return metrics_text(counts)

        self._server = _Server(options.listen, Handler, certificates)
        self.port = self._server.port
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="kube-webhook", daemon=True
        )

    def start(self) -> None:
        """Start the thread that accepts connections."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, without waiting for requests in progress."""
        self._server.shutdown()
        self._server.server_close()


def metrics_text(counts: ReviewCounts) -> str:
    """The counts in the text format of Prometheus."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    lines = (
        ("allowed_total", "Objects that were allowed.", counts.allowed),
        ("refused_total", "Objects that were refused.", counts.refused),
        ("warned_total", "Objects about which something was told.", counts.warned),
        ("cpu_seconds_total", "CPU used.", used.ru_utime + used.ru_stime),
    )
    return "".join(
        f"# HELP bough_webhook_{name} {text}\n# TYPE bough_webhook_{name} counter\n"
        f"bough_webhook_{name} {value}\n"
        for name, text, value in lines
    )


class _Stamp(NamedTuple):
    """What tells that a file has changed."""

    modified_ns: int
    size: int
    inode: int


class Certificates:
    """A certificate and its key in two files, read again when either of them changes."""

    def __init__(self, certificate: str, key: str) -> None:
        self._files = (certificate, key)
        self._lock = threading.Lock()
        # Before they are read: what changes meanwhile is read again.
        self._stamps = self._look()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """The context for the next connection; if the files cannot be read, the old one stays."""
        with self._lock:
            stamps = self._look()
            if stamps != self._stamps:
                try:
                    self._context = self._load()
                    LOG.info("the certificate was reloaded")
                except Invalid as error:
                    LOG.warning(
                        "the new certificate is not used, the earlier one stays: %s", error.message
                    )
                self._stamps = stamps
            return self._context

    def _look(self) -> tuple[_Stamp | None, ...]:
        found: list[_Stamp | None] = []
        for file in self._files:
            try:
                seen = os.stat(file)
            except OSError:
                found.append(None)
            else:
                found.append(_Stamp(seen.st_mtime_ns, seen.st_size, seen.st_ino))
        return tuple(found)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        certificate, key = self._files
        for option, file in (("--tls-cert", certificate), ("--tls-key", key)):
            if not os.access(file, os.R_OK):
                raise Invalid(f"{option}: {file} cannot be read")
        try:
            # Without a password OpenSSL would ask for one on the terminal, and block.
            context.load_cert_chain(certificate, key, password=lambda: "")
        except (OSError, ValueError) as error:
            raise Invalid(
                f"--tls-cert, --tls-key: {certificate} and {key} are not a certificate and its "
                f"key: {error}"
            ) from None
        return context


class _Server(ListeningServer):
    request_queue_size = 128

    def __init__(
        self, listen: str, handler: type[BaseHTTPRequestHandler], certificates: Certificates
    ) -> None:
        self._certificates = certificates
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._lock = threading.Lock()
        #: Connections on which a request has not come to its end, the longest waiting first.
        self._waiting: dict[socket.socket, None] = {}
        super().__init__(listen, handler)

    def get_request(self) -> tuple[socket.socket, object]:
        """Accept a connection; its own thread makes the handshake, as that can be slow."""
        plain, address = super().get_request()
        plain.settimeout(TIMEOUT_S)
        context = self._certificates.context()
        wrapped = context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        return wrapped, address

    def process_request(self, request: socket.socket, client_address: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Answer the connection in a thread; if there are too many, the longest idle is closed."""
        if not self._places.acquire(blocking=False):
            self._close_longest_waiting()
            if not self._places.acquire(timeout=MAKING_ROOM_S):
                self.shutdown_request(request)
                return
        self.note_waiting(request)
        try:
            super().process_request(request, client_address)  # pyright: ignore[reportArgumentType]
        except BaseException:
            self.note_served(request)
            self._places.release()
            raise

    def note_waiting(self, connection: socket.socket) -> None:
        """From now on a connection waits for a request; another may need its place."""
        with self._lock:
            self._waiting.setdefault(connection)

    def note_served(self, connection: socket.socket) -> None:
        """A request has come to its end, and is answered."""
        with self._lock:
            self._waiting.pop(connection, None)

    def _close_longest_waiting(self) -> None:
        with self._lock:
            first = next(iter(self._waiting), None)
            if first is None:
                return
            del self._waiting[first]
            # Not TLS's own way: that is not for a second thread. Its thread reads an end, and goes.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(first, socket.SHUT_RDWR)

    def process_request_thread(self, request: socket.socket, client_address: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Run the thread of one connection."""
        try:
            super().process_request_thread(request, client_address)  # pyright: ignore[reportArgumentType]
        finally:
            self.note_served(request)
            self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection broke: that is the client's affair, so it is only logged for debugging."""
        LOG.debug("a connection from %s failed", client_address, exc_info=True)
        del request


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = TIMEOUT_S
    server_version = "bough"
    sys_version = ""

    def review(self, body: bytes) -> bytes:
        """The answer to an AdmissionReview."""
        raise Invalid(f"{len(body)} bytes cannot be answered")

    def metrics(self) -> str:
        """The text of the metrics."""
        return ""

    def handle_one_request(self) -> None:
        """Wait for one request, and answer it."""
        self._listener.note_waiting(self.connection)
        super().handle_one_request()

    @property
    def _listener(self) -> _Server:
        return cast("_Server", self.server)

    def do_GET(self) -> None:
        self._listener.note_served(self.connection)
        if self.path == HEALTH:
            self._send(200, b"ok\n", "text/plain; charset=utf-8")
        elif self.path == METRICS:
            self._send(200, self.metrics().encode(), "text/plain; version=0.0.4; charset=utf-8")
        else:
            self._fail(404, f"there is no {self.path[:60]!r}; ask {HEALTH} or {METRICS}")

    def do_POST(self) -> None:
        if self.path.partition("?")[0] != VALIDATE:
            self._fail(404, f"there is no {self.path[:60]!r}; send reviews to {VALIDATE}")
            return
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            self._fail(411, "Content-Length is missing")
            return
        # Python refuses to parse a number with thousands of digits.
        if len(length) > 20 or int(length) > MOST_BYTES:
            self._fail(413, f"the body has {length[:20]} bytes; at most {MOST_BYTES:,} are read")
            return
        body = self.rfile.read(int(length))
        self._listener.note_served(self.connection)
        try:
            answer = self.review(body)
        except BoughError as error:
            self._fail(error.http_status, error.message)
        except Exception:
            LOG.exception("a review could not be answered")
            self._fail(500, "the review could not be answered")
        else:
            self._send(200, answer, "application/json")

    def _fail(self, status: int, message: str) -> None:
        # The rest of the request is not read, so the connection cannot be reused.
        self.close_connection = True
        self._send(status, f"{message}\n".encode(), "text/plain; charset=utf-8")

    def _send(self, status: int, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the library's name
        LOG.debug(format, *args)
