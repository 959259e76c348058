"""The socket that the server listens on, and who keeps it while no server runs.

Where tasks run on this machine, a holder (`socket_holder`) keeps the socket through restarts. Other
servers need none: nothing that they started is there to take their place.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bough.api.common import ErrorBody
from bough.errors import Unavailable
from bough.server import socket_holder
from bough.server.settings import Settings

LOG = logging.getLogger(__name__)

#: The holder's Unix socket in the data folder.
HOLDER_SOCKET = "listener.sock"
#: How often a holder that is killed is replaced, so that a broken one is not started for ever.
_REPLACEMENTS = 20
_ANSWER_S = 5.0
_CHOOSE = "choose another --port; --port 0 takes one that is free"
_NO_SERVER = ErrorBody(
    "The server does not run at the moment; its tasks go on.",
    error_code="SERVER",
    code="unavailable",
    hint="ask again when it runs; its administrator starts it with `bough serve`",
)


class Listening:
    """The listening socket of a server, from its start to its end."""

    def __init__(self, settings: Settings, running: Path | None) -> None:
        """`running` is locked while tasks run; `None`: none run here, so there is no holder."""
        self._settings = settings
        self._running = running
        self._door = _Door(settings.data)
        self._holder: socket.socket | None = None
        self._closed = False
        self.socket = self._take_over() or _bind(settings)
        if running is not None and self._holder is None:
            self._begin_holding()
        if self._holder is not None:
            threading.Thread(target=self._keep_holder, name="holder", daemon=True).start()

    def close(self) -> None:
        """The server shuts down: the socket is kept only for as long as tasks run."""
        self._closed = True
        if self._holder is not None:
            with contextlib.suppress(OSError):
                self._holder.sendall(socket_holder.BYE)
                self._holder.shutdown(socket.SHUT_WR)
        self.socket.close()

    def _take_over(self) -> socket.socket | None:
        """The socket of the server before, if it is still held and is where this one listens."""
        if self._running is None:
            return None
        found = self._door.ask()
        if found is None:
            return None
        listener, connection = found
        if _is_wanted(listener, self._settings):
            self._holder = connection
            return listener
        before = shown(listener)
        listener.close()
        with contextlib.suppress(OSError):
            connection.sendall(socket_holder.END)
            # It has ended, and let go of the address, when it hangs up.
            connection.recv(1)
        connection.close()
        LOG.warning(
            "the server listened on %s before, and lets go of it now: another program can listen "
            "there and is sent the tokens of those who still ask it; tell them the new address",
            before,
        )
        return None

    def _begin_holding(self) -> None:
        try:
            self._holder = self._door.open(self.socket, self._running or Path())
        except OSError as error:
            LOG.warning(
                "nothing keeps the address of this server while it is restarted, so that another "
                "program can take it then: %s",
                error,
            )

    def _keep_holder(self) -> None:
        """Replace the holder whenever it is killed."""
        for _ in range(_REPLACEMENTS):
            holder = self._holder
            if holder is None:
                return
            with contextlib.suppress(OSError):
                holder.recv(1)
            if self._closed:
                return
            LOG.warning(
                "the process that keeps the address of this server is gone; starting it again"
            )
            holder.close()
            self._holder = None
            self._begin_holding()


class _Door:
    """The holder's Unix socket, by a path that is short enough however long the folder's is."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._path = data / HOLDER_SOCKET

    def ask(self) -> tuple[socket.socket, socket.socket] | None:
        """The socket that a holder keeps, and the connection to it; `None`: there is no holder."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_ANSWER_S)
        try:
            with self._short_path() as path:
                connection.connect(path)
            if socket_holder.peer_user(connection) != os.geteuid():
                raise Unavailable(f"{self._path} is of another user of this machine.")
            connection.sendall(socket_holder.TAKE)
            said, descriptors, _, _ = socket.recv_fds(connection, 16, 1)
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            return None
        except OSError as error:
            connection.close()
            raise Unavailable(f"{self._path} does not answer: {error}.") from None
        if said != socket_holder.HERE or not descriptors:
            connection.close()
            raise Unavailable(
                f"Another server uses {self._data}.", hint="stop it, or use another folder"
            )
        connection.settimeout(None)
        return socket.socket(fileno=descriptors[0]), connection

    def open(self, listener: socket.socket, running: Path) -> socket.socket:
        """Start a holder for a socket; the connection to it."""
        self._path.unlink(missing_ok=True)
        door = socket.socket(socket.AF_UNIX)
        with door, self._short_path() as path:
            # Before it has a path, so that none but its owner can use it from the first moment on.
            os.fchmod(door.fileno(), 0o600)
            door.bind(path)
            door.listen()
            _start(listener, door, self._path, running)
        found = self.ask()
        if found is None:
            raise OSError(errno.ENOENT, "it has ended at once")
        found[0].close()
        return found[1]

    @contextlib.contextmanager
    def _short_path(self) -> Iterator[str]:
        descriptor = os.open(self._data, os.O_PATH | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{descriptor}/{HOLDER_SOCKET}"
        finally:
            os.close(descriptor)


def shown(listener: socket.socket) -> str:
    """Where a socket listens, as an address for people."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _bind(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family)
        # Every connection has it from here: an answer is not held back for the rest of a packet.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        # The text of the error may name the address again.
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else str(error)
        raise Unavailable(
            f"Cannot listen on {settings.host}:{settings.port}: {reason}.", hint=_CHOOSE
        ) from None


def _is_wanted(listener: socket.socket, settings: Settings) -> bool:
    """Whether a socket is where the settings say; any port will do where they say 0."""
    host, port = listener.getsockname()[:2]
    if settings.port not in (0, port):
        return False
    try:
        found = socket.getaddrinfo(settings.host, port, listener.family, socket.SOCK_STREAM)
    except OSError:
        return False
    return host in {address[0] for *_, address in found}


def _start(listener: socket.socket, door: socket.socket, path: Path, running: Path) -> None:
    """Start the process that holds a socket; it belongs to no server."""
    descriptors = (listener.fileno(), door.fileno())
    body = msgspec.json.encode(_NO_SERVER).decode()
    answer = (
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nRetry-After: 5\r\nConnection: close\r\n\r\n{body}"
    )
    program = [sys.executable, "-I", "-S", str(Path(socket_holder.__file__).resolve())]
    numbers = [str(each) for each in descriptors]
    subprocess.Popen(  # noqa: S603 - Python itself; it outlives this process
        [*program, *numbers, str(path.resolve()), str(running.resolve())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=descriptors,
        # Not an argument, which would fill every list of processes.
        env={socket_holder.ANSWER: answer},
        cwd="/",
        start_new_session=True,
    )
