"""Bytes on their way from one socket to another that never leave the kernel.

Most of what a forwarded connection costs is copying bytes into this process and out again. Linux
can move them from a socket into a pipe and on to another socket instead.
"""

from __future__ import annotations

import os
import socket

from bough.pipes import enlarge, may_be_large

#: How much a pipe holds. Through one of the usual size, moving takes longer than copying.
_ROOM = 1 << 20
#: The most pipes of a process: connections beyond them are copied, so that descriptors are left.
_MOST = 64


class KernelPipe:
    """Holds what was taken from one socket until another has taken it."""

    count = 0

    def __init__(self) -> None:
        self._reads, self._writes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        enlarge(self._writes, _ROOM)
        #: How many bytes it holds.
        self.size = 0
        KernelPipe.count += 1

    @classmethod
    def made(cls) -> KernelPipe | None:
        """A new one, or `None` where there can be none or no more of them."""
        if not hasattr(os, "splice") or not may_be_large() or cls.count >= _MOST:
            return None
        try:
            return cls()
        except OSError:
            return None

    def fill(self, source: int, most: int) -> int:
        """Take what has come on a socket; returns how much, 0 at its end."""
        found = os.splice(source, self._writes, most, flags=_FLAGS)
        self.size += found
        return found

    def drain(self, target: int) -> int:
        """Give a socket what it takes now; returns how much."""
        gone = os.splice(self._reads, target, self.size, flags=_FLAGS)
        self.size -= gone
        return gone

    def close(self) -> None:
        """Forget what it holds."""
        KernelPipe.count -= 1
        os.close(self._reads)
        os.close(self._writes)


def can_be_spliced(connection: socket.socket) -> bool:
    """Whether a socket can be one end: bytes of TLS have to be read and written here."""
    plain = not hasattr(connection, "pending")
    return plain and connection.family in (socket.AF_INET, socket.AF_INET6)


_FLAGS = getattr(os, "SPLICE_F_MOVE", 0) | getattr(os, "SPLICE_F_NONBLOCK", 0)
