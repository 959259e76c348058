"""Writes to streams that may not take everything at once: what is left waits here."""

from __future__ import annotations

import contextlib
import os
import socket

from bough.websocket.kernel_pipe import KernelPipe


class Outgoing:
    """Buffers writes to a descriptor that does not block."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._left: list[memoryview] = []
        #: Written before the rest.
        self._held: KernelPipe | None = None
        #: Close the descriptor when everything is written.
        self._ending = False
        self.broken = False
        self.closed = False

    @property
    def pending(self) -> bool:
        """Whether bytes are left to write."""
        return bool(self._left) or self._held is not None

    @property
    def usable(self) -> bool:
        """Whether something can still be written."""
        return not (self.broken or self.closed or self._ending)

    def write(self, data: bytes | memoryview) -> None:
        """Write as much as possible now, and keep the rest."""
        if not self.usable:
            return
        view = memoryview(data)
        if not self.pending:
            view = view[self._write(view) :]
        if view and not self.broken:
            self._left.append(memoryview(bytes(view)))

    def write_from(self, pipe: KernelPipe) -> None:
        """Write what a pipe holds, while nothing else is pending."""
        self._held = pipe
        self.flush()

    def flush(self) -> None:
        """Write more of the rest."""
        if self._held is not None:
            self._drain(self._held)
            if self._held is not None:
                return
        while self._left:
            first = self._left[0]
            gone = self._write(first)
            if self.broken:
                break
            if gone < len(first):
                self._left[0] = first[gone:]
                break
            self._left.pop(0)
        self._end_if_written()

    def end(self) -> None:
        """Close it once everything is written; nothing more will follow."""
        self._ending = True
        self._end_if_written()

    def finish(self) -> None:
        """Signal the end to the reader; a terminal or a file is just closed."""
        os.close(self.descriptor)

    def shut(self) -> None:
        """Close it now."""
        if not self.closed:
            self.closed = True
            self._left.clear()
            self._held = None
            with contextlib.suppress(OSError):
                self.finish()

    def _end_if_written(self) -> None:
        if self._ending and not self.pending:
            self.shut()

    def _drain(self, pipe: KernelPipe) -> None:
        try:
            pipe.drain(self.descriptor)
        except BlockingIOError:
            return
        except OSError:
            self.break_off()
        if not pipe.size:
            self._held = None

    def break_off(self) -> None:
        """Nothing more can be written."""
        self.broken = True
        self._left.clear()
        self._held = None

    def _write(self, view: memoryview) -> int:
        try:
            return os.write(self.descriptor, view)
        except BlockingIOError:
            return 0
        except OSError:
            self.break_off()
            return 0


class SocketOutgoing(Outgoing):
    """The same for one direction of a socket."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection.fileno())
        self._socket = connection

    def finish(self) -> None:
        """End this direction alone."""
        self._socket.shutdown(socket.SHUT_WR)
