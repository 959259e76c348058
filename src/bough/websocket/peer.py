"""One end of a websocket over a connected socket that does not block.

What the socket does not take at once is buffered; callers check `pending` before they send, so the
buffer never holds more than one block. Pings are answered here.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections import deque
from collections.abc import Iterator
from itertools import islice
from time import monotonic

from bough.websocket.frames import (
    BINARY,
    CLOSE,
    LONGEST_HEADER,
    NO_KEY,
    NORMAL,
    PING,
    PONG,
    TOO_LARGE,
    FrameReader,
    Piece,
    ProtocolFault,
    header,
    mask,
    new_key,
)
from bough.websocket.kernel_pipe import KernelPipe, can_be_spliced

#: The most bytes to read at once or send in one frame: below the 1 MiB limit of some clients.
BLOCK = 256 << 10
#: The most to send in one frame whose mask changes it, which needs a buffer: small enough that the
#: C library reuses its memory instead of asking the kernel each time.
MASKED_BLOCK = 128 << 10
#: After so long without data from the other end it is pinged, so that proxies in between do not
#: take the connection for dead.
QUIET_S = 20.0
_AT_ONCE = 16
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


class Peer:
    """The local end of a websocket."""

    def __init__(self, connection: socket.socket, *, server: bool, rest: bytes = b"") -> None:
        connection.setblocking(False)
        keep_alive(connection)
        self._socket = connection
        #: TLS reads whole records, so it may hold decrypted bytes that poll does not report.
        self._secure = hasattr(connection, "pending")
        self._masks = not server
        # Masks are for proxies in between that do not know websockets, and cost as much as the
        # rest. Under TLS, and on this machine, there are none.
        self._disguised = not self._secure and not _is_local(connection)
        self._frames = FrameReader(masked=server)
        self._buffer = memoryview(bytearray(BLOCK))
        #: How much to send at once.
        self.block = MASKED_BLOCK if self._masks and self._disguised else BLOCK
        #: Bytes that were read together with the handshake.
        self._rest = rest
        self._queue: deque[memoryview] = deque()
        #: A message that is sent before the queue: what is left of its header, and its data.
        self._head = b""
        self._held: KernelPipe | None = None
        self._splices = can_be_spliced(connection)
        self._heard_s = monotonic()
        #: What was received and sent, without frames.
        self.received = 0
        self.sent = 0
        #: The other end has sent a close frame; its code and reason.
        self.closed_by_other: tuple[int, str] | None = None
        #: This end has sent a close frame.
        self.closing = False
        #: The connection is gone.
        self.lost = False

    def fileno(self) -> int:
        """For polls."""
        return self._socket.fileno()

    @property
    def pending(self) -> bool:
        """Whether bytes are waiting to be sent."""
        return bool(self._queue) or self._held is not None

    @property
    def gone(self) -> bool:
        """Whether the other end has closed, or the connection is lost: no more data comes."""
        return self.lost or self.closed_by_other is not None

    @property
    def has_rest(self) -> bool:
        """Whether bytes read with the handshake are still unprocessed."""
        return bool(self._rest)

    @property
    def left_as_is(self) -> int:
        """How much of a large frame is still to come that `read_into` can pass on."""
        return self._frames.left_as_is if self._splices and not self._rest else 0

    @property
    def sends_as_is(self) -> bool:
        """Whether a message can be sent from a pipe now: it would go before what is pending."""
        disguised = self._masks and self._disguised
        return self._splices and not (disguised or self.closing or self.lost or self.pending)

    def read(self, *, moves: bool = False) -> list[Piece]:
        """Read what has arrived, without control frames; a protocol fault closes the websocket.

        Use the result before the next read, which may overwrite the same buffer. Those who move
        large frames by `read_into` say so: after a large frame only the header of the next is read.
        """
        large = moves and self._splices and self._frames.reads_large
        size = self._fill(LONGEST_HEADER if large else BLOCK)
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

    def read_into(self, pipe: KernelPipe) -> int:
        """Move what has come of a large frame into a pipe; returns how much."""
        try:
            found = pipe.fill(self.fileno(), self._frames.left_as_is)
        except BlockingIOError:
            return 0
        except OSError:
            found = 0
        if found:
            self._heard_s = monotonic()
            self.received += found
            self._frames.passed_on(found)
        else:
            self.lost = True
        return found

    def send_from(self, pipe: KernelPipe) -> None:
        """Send what a pipe holds as one message, if `sends_as_is`.

        What the socket does not take at once stays in the pipe.
        """
        self.sent += pipe.size
        self._head = header(BINARY, pipe.size, NO_KEY if self._masks else b"")
        self._held = pipe
        self.flush()

    def send(self, data: bytes | memoryview, opcode: int = BINARY) -> None:
        """Send a message; what the socket does not take at once stays pending."""
        if self.closing or self.lost:
            return
        if opcode < CLOSE:
            self.sent += len(data)
        key = (new_key() if self._disguised else NO_KEY) if self._masks else b""
        parts = [memoryview(header(opcode, len(data), key))]
        if len(data):
            parts.append(memoryview(mask(data, key) if key else data))
        gone = 0 if self.pending else self._send(parts)
        for part in parts:
            if gone >= len(part):
                gone -= len(part)
            else:
                # A copy, because the caller may reuse its buffer.
                self._queue.append(memoryview(bytes(part[gone:])))
                gone = 0

    def flush(self) -> None:
        """Send more of what is pending."""
        if self._held is not None:
            self._flush_held(self._held)
            if self._held is not None:
                return
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
        """Send a close frame; nothing is sent after it."""
        if not self.closing:
            self.send(code.to_bytes(2, "big") + _shortened(reason), CLOSE)
            self.closing = True

    def keep_busy(self) -> None:
        """Ping the other end if it has been quiet for long."""
        now = monotonic()
        if not self.pending and now - self._heard_s > QUIET_S:
            self._heard_s = now
            self.send(b"", PING)

    def hang_up(self, code: int = NORMAL, reason: str = "") -> None:
        """Send a close frame if that is still possible, and close the connection."""
        if not self.lost:
            self.close(code, reason)
            self.flush()
        self.shut()

    def shut(self) -> None:
        """Close the connection, whatever its state."""
        self._lose()
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

    def _fill(self, most: int) -> int:
        """Read into the buffer; returns how many bytes."""
        size = len(self._rest[:most])
        if size:
            self._buffer[:size], self._rest = self._rest[:most], self._rest[most:]
            return size
        while size < most:
            try:
                found = self._socket.recv_into(self._buffer[size:most])
            except BlockingIOError:
                break
            except OSError as error:
                # TLS raises errors of its own where a plain socket would block.
                self.lost = self.lost or not _would_block(error)
                break
            if not found:
                self.lost = True
                break
            size += found
            if not self._secure:
                break
        return size

    def _flush_held(self, pipe: KernelPipe) -> None:
        if self._head:
            # The kernel waits for the data, rather than send so few bytes alone.
            gone = self._send([memoryview(self._head)], socket.MSG_MORE)
            self._head = self._head[gone:]
        if not self._head and not self.lost:
            try:
                pipe.drain(self.fileno())
            except BlockingIOError:
                return
            except OSError:
                self._lose()
        if not pipe.size:
            self._held = None

    def _send(self, parts: list[memoryview], flags: int = 0) -> int:
        try:
            if self._secure:
                return self._socket.send(parts[0])
            return self._socket.sendmsg(parts, (), flags)
        except BlockingIOError:
            return 0
        except OSError as error:
            if not _would_block(error):
                self._lose()
            return 0

    def _lose(self) -> None:
        self.lost = True
        self._queue.clear()
        self._held = None


class MessageReader:
    """Joins the pieces of messages; a message that is too long closes the websocket."""

    def __init__(self, peer: Peer, most: int, too_long: str) -> None:
        """most:  the most bytes of a message; too_long:  what the other end is told then."""
        self._peer = peer
        self._most = most
        self._too_long = too_long
        self._begun = bytearray()

    def read(self) -> Iterator[bytes]:
        """Read what has arrived; yields the messages that are complete."""
        for piece in self._peer.read():
            self._begun += piece.data
            if len(self._begun) > self._most:
                self._peer.close(TOO_LARGE, self._too_long)
                return
            if piece.last:
                message, self._begun = bytes(self._begun), bytearray()
                yield message


def keep_alive(connection: socket.socket) -> None:
    """Turn on TCP keepalive, so that a machine that has gone is noticed."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            # Some of these options have other names outside of Linux.
            option = getattr(socket, name, None)
            if option is not None:
                connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _would_block(error: OSError) -> bool:
    return type(error).__name__ in ("SSLWantReadError", "SSLWantWriteError")


def _shortened(reason: str) -> bytes:
    """Cut a reason to the size of a control frame, without splitting a character."""
    return reason.encode()[:120].decode(errors="ignore").encode()


def _is_local(connection: socket.socket) -> bool:
    """Whether the other end is on this machine."""
    if connection.family == socket.AF_UNIX:
        return True
    try:
        return ipaddress.ip_address(connection.getpeername()[0]).is_loopback
    except (OSError, ValueError):
        return False
