"""One end of a websocket over a connected socket that does not block.

What cannot be sent at once is kept until it can be; those who send look at `pending` first, so
that this is never more than one block. Pings are answered here.
"""

from __future__ import annotations

import contextlib
import socket
from collections import deque
from itertools import islice
from time import monotonic

from bough.websocket.frames import (
    BINARY,
    CLOSE,
    NORMAL,
    PING,
    PONG,
    FrameReader,
    Piece,
    ProtocolFault,
    header,
    mask,
    new_key,
)

#: What is read, or sent in one frame, at once: less than the 1 MiB that some clients take at most.
BLOCK = 256 << 10
#: The same where it is masked, for which memory is needed: less than what the C library would get
#: from the kernel anew each time.
MASKED_BLOCK = 128 << 10
#: After so long without a word from the other end it is asked whether it is there, so that what is
#: between does not take the connection for dead.
QUIET_S = 20.0
_AT_ONCE = 16
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


class Peer:
    """The end that this process has; the other one is read from and sent to."""

    def __init__(self, connection: socket.socket, *, server: bool, rest: bytes = b"") -> None:
        connection.setblocking(False)
        keep_alive(connection)
        self._socket = connection
        self._masks = not server
        self._frames = FrameReader(masked=server)
        self._buffer = memoryview(bytearray(MASKED_BLOCK if server else BLOCK))
        #: How much to send at once.
        self.block = BLOCK if server else MASKED_BLOCK
        #: What was read with the handshake.
        self._rest = rest
        self._queue: deque[memoryview] = deque()
        #: TLS reads whole records, of which something may be left that no poll tells of.
        self._secure = hasattr(connection, "pending")
        self._heard_s = monotonic()
        #: What was received and sent, without frames.
        self.received = 0
        self.sent = 0
        #: The other end has said that it closes; with what code and reason.
        self.closed_by_other: tuple[int, str] | None = None
        #: This end has said that it closes.
        self.closing = False
        #: The connection is gone.
        self.lost = False

    def fileno(self) -> int:
        """For polls."""
        return self._socket.fileno()

    @property
    def pending(self) -> bool:
        """Whether something is still to be sent."""
        return bool(self._queue)

    @property
    def readable(self) -> bool:
        """Whether anything can still come."""
        return not self.lost and self.closed_by_other is None

    @property
    def has_rest(self) -> bool:
        """Whether something was read with the handshake that is not looked at yet."""
        return bool(self._rest)

    def read(self) -> list[Piece]:
        """What has come, without control frames; a fault of the other end closes.

        It has to be used before the next is read, which may come to the same place in memory.
        """
        size = self._fill()
        if not size:
            return []
        self._heard_s = monotonic()
        found: list[Piece] = []
        try:
            for piece in self._frames.feed(self._buffer[:size]):
                if self.closed_by_other is None and not self._control(piece):
                    self.received += len(piece.data)
                    found.append(piece)
        except ProtocolFault as error:
            self.close(error.code, str(error))
            self.lost = not self.pending
        return found

    def send(self, data: bytes | memoryview, opcode: int = BINARY) -> None:
        """Send a message, as far as that is possible at once."""
        if self.closing or self.lost:
            return
        if opcode < CLOSE:
            self.sent += len(data)
        key = new_key() if self._masks else b""
        parts = [memoryview(header(opcode, len(data), key))]
        if len(data):
            parts.append(memoryview(mask(data, key) if key else data))
        gone = 0 if self._queue else self._send(parts)
        for part in parts:
            if gone >= len(part):
                gone -= len(part)
            else:
                # A copy, because what was given may be written to again.
                self._queue.append(memoryview(bytes(part[gone:])))
                gone = 0

    def flush(self) -> None:
        """Send on what is pending."""
        while self._queue and not self.lost:
            gone = self._send(list(islice(self._queue, _AT_ONCE)))
            if not gone:
                return
            while gone:
                first = self._queue[0]
                if gone < len(first):
                    self._queue[0] = first[gone:]
                    return
                gone -= len(first)
                self._queue.popleft()

    def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Say that this end closes; nothing is sent after that."""
        if not self.closing:
            self.send(code.to_bytes(2, "big") + _shortened(reason), CLOSE)
            self.closing = True

    def keep_busy(self) -> None:
        """Ask the other end whether it is there, if it was quiet for long."""
        now = monotonic()
        if not self.pending and now - self._heard_s > QUIET_S:
            self._heard_s = now
            self.send(b"", PING)

    def shut(self) -> None:
        """Close the connection, however it is."""
        self.lost = True
        self._queue.clear()
        self._socket.close()

    def _control(self, piece: Piece) -> bool:
        """Answer a control frame; whether it was one."""
        if piece.opcode == PING:
            self.send(piece.data, PONG)
        elif piece.opcode == CLOSE:
            said = bytes(piece.data)
            code = int.from_bytes(said[:2], "big") if len(said) > 1 else NORMAL
            self.closed_by_other = (code, said[2:].decode(errors="replace"))
        return piece.opcode >= CLOSE

    def _fill(self) -> int:
        """Read into the buffer; how much."""
        most = len(self._buffer)
        size = len(self._rest[:most])
        if size:
            self._buffer[:size], self._rest = self._rest[:most], self._rest[most:]
            return size
        while size < most:
            try:
                found = self._socket.recv_into(self._buffer[size:])
            except BlockingIOError:
                break
            except OSError as error:
                # TLS has errors of its own for what would block.
                self.lost = self.lost or not _would_block(error)
                break
            if not found:
                self.lost = True
                break
            size += found
            if not self._secure:
                break
        return size

    def _send(self, parts: list[memoryview]) -> int:
        try:
            if self._secure:
                return self._socket.send(parts[0])
            return self._socket.sendmsg(parts)
        except BlockingIOError:
            return 0
        except OSError as error:
            if not _would_block(error):
                self.lost = True
                self._queue.clear()
            return 0


def keep_alive(connection: socket.socket) -> None:
    """Let the kernel notice that the other machine has gone."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            # Other systems than Linux have other names for some of them.
            option = getattr(socket, name, None)
            if option is not None:
                connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _would_block(error: OSError) -> bool:
    return type(error).__name__ in ("SSLWantReadError", "SSLWantWriteError")


def _shortened(reason: str) -> bytes:
    """What a control frame has room for, without half a character."""
    return reason.encode()[:120].decode(errors="ignore").encode()
