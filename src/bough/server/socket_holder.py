"""The holder: a small process that keeps the server's listening socket open while no server runs.

So nothing else can listen there meanwhile and be sent the tokens of clients. A server leaves
its socket with the holder, and the next one on the same data folder takes it over. While none runs,
connections wait for a moment; then each is told so.

It is run as a file, without the rest of the program, so that it stays small and can be of another
version than the server. On the Unix socket in the data folder a server says `take` and is sent the
listening socket; `bye` before it ends in order; `end` when it will listen elsewhere. The end of the
connection means that the server is gone.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import struct
import sys
import time

TAKE, BYE, END, BUSY, HERE = b"take", b"bye", b"end", b"busy", b"here"
#: The variable with the answer for clients while no server runs.
ANSWER = "BOUGH_NO_SERVER"
#: Connections wait so long for the next server, before they are told that there is none.
WAIT_S = 30.0
#: How long the socket is kept after a crash of the server, where no task runs.
CRASH_S = 60.0
_LOOK_S = 1.0
_TALK_S = 0.5
_REQUEST_BYTES = 65_536
_CREDENTIALS = "3i"


def peer_user(connection: socket.socket) -> int:
    """The account that the process at the other end of a Unix socket runs as."""
    size = struct.calcsize(_CREDENTIALS)
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return struct.unpack(_CREDENTIALS, found)[1]


class SocketHolder:
    """Holds the socket, until no server and no task is left."""

    def __init__(
        self, listener: socket.socket, door: socket.socket, paths: tuple[str, str], answer: bytes
    ) -> None:
        self._listener = listener
        #: Where servers ask.
        self._door = door
        #: The path of that, and of the file that the supervisor of every task locks.
        self._path, self._running = paths
        self._inode = os.stat(self._path).st_ino
        self._answer = answer
        self._server: socket.socket | None = None
        self._gone_at = time.monotonic()
        self._said_bye = False
        self._ended = False

    def run(self) -> None:
        """Hold it until there is no reason to."""
        while not self._ended and (self._server is not None or self._is_wanted()):
            for descriptor in self._wait():
                if descriptor == self._door.fileno():
                    self._let_in()
                elif descriptor == self._listener.fileno():
                    self._refuse()
                elif self._server is not None:
                    self._listen_to(self._server)
        if self._is_own_path():
            os.unlink(self._path)

    def _wait(self) -> list[int]:
        poll = select.poll()
        poll.register(self._door, select.POLLIN)
        if self._server is not None:
            poll.register(self._server, select.POLLIN)
        elif time.monotonic() - self._gone_at > WAIT_S:
            poll.register(self._listener, select.POLLIN)
        timeout_s = _LOOK_S if self._server is None else None
        return [each for each, _ in poll.poll(None if timeout_s is None else timeout_s * 1_000)]

    def _is_wanted(self) -> bool:
        """Whether a server may come back, or a task runs that could take its place."""
        if not self._is_own_path():
            return False
        waits = not self._said_bye and time.monotonic() - self._gone_at < CRASH_S
        return waits or self._something_runs()

    def _is_own_path(self) -> bool:
        """Whether servers can still find it: the data folder may be gone, or have another."""
        try:
            return os.stat(self._path).st_ino == self._inode
        except OSError:
            return False

    def _something_runs(self) -> bool:
        try:
            descriptor = os.open(self._running, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def _let_in(self) -> None:
        """Give the socket to a server of the same account, if none has it."""
        connection, _ = self._door.accept()
        connection.settimeout(_TALK_S)
        try:
            asked = connection.recv(len(TAKE))
            if peer_user(connection) in (os.geteuid(), 0) and asked == TAKE:
                if self._server is None:
                    socket.send_fds(connection, [HERE], [self._listener.fileno()])
                    self._server, self._said_bye = connection, False
                    return
                connection.sendall(BUSY)
            connection.close()
        except OSError:
            connection.close()

    def _listen_to(self, server: socket.socket) -> None:
        try:
            said = server.recv(16)
        except OSError:
            said = b""
        if said == END:
            self._ended = True
        elif said == BYE:
            self._said_bye = True
        elif not said:
            server.close()
            self._server, self._gone_at = None, time.monotonic()

    def _refuse(self) -> None:
        """Tell one client that no server runs; what it asked for, and its token, are not kept."""
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        with connection:
            try:
                connection.settimeout(_TALK_S)
                connection.recv(_REQUEST_BYTES)
                connection.sendall(self._answer)
                connection.shutdown(socket.SHUT_WR)
                # Until the client hangs up: a reset would overtake the answer.
                while connection.recv(_REQUEST_BYTES):
                    pass
            except OSError:
                pass


def main(descriptors: list[int], paths: tuple[str, str], answer: bytes) -> None:
    """Hold a socket that was inherited."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    listener, door = (socket.socket(fileno=each) for each in descriptors)
    # The server shares these settings: neither may block the other.
    listener.setblocking(False)
    SocketHolder(listener, door, paths, answer).run()


if __name__ == "__main__":
    main(
        [int(each) for each in sys.argv[1:3]],
        (sys.argv[3], sys.argv[4]),
        os.environb[ANSWER.encode()],
    )
