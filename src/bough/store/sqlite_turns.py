"""Lets the processes that write one SQLite file take turns, so that none starves the others.

SQLite makes waiting writers poll at growing intervals, so they hardly ever catch a process that
writes all the time between two of its transactions. Here a writer takes two locks: first the door,
then the room; once it has the room it releases the door. So a process that has just written queues
behind the one at the door. Both locks are bytes of a file beside the database, held until the
process releases them or dies.
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from time import monotonic, sleep

from bough.errors import Unavailable

_LOCK = "hhqqi4x"
_DOOR, _ROOM = 0, 1
#: How often to try a lock.
_LOOK_S = 0.0005


class FileTurns:
    """Takes turns for one process. For one thread at a time."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._file: int | None = None
        self._opened = False

    def take(self, wait_s: float) -> None:
        """Wait for the turn to write."""
        file = self._open()
        if file is None:
            return
        until_s = monotonic() + wait_s
        _await(file, _DOOR, until_s)
        try:
            _await(file, _ROOM, until_s)
        finally:
            _set(file, fcntl.F_UNLCK, _DOOR)

    def give_back(self) -> None:
        """Let the next one write."""
        if self._file is not None:
            _set(self._file, fcntl.F_UNLCK, _ROOM)

    def close(self) -> None:
        """Close the file."""
        file, self._file, self._opened = self._file, None, False
        if file is not None:
            os.close(file)

    def _open(self) -> int | None:
        """Open the file; `None`: this process may not, and relies on SQLite's own lock."""
        if not self._opened and self._database not in ("", ":memory:"):
            self._opened = True
            flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
            with suppress(OSError):
                self._file = os.open(f"{self._database}.turns", flags, 0o600)
                # It belongs to the database's owner, even if root was the first to write.
                about = os.stat(self._database)
                os.fchown(self._file, about.st_uid, about.st_gid)
        return self._file


def _await(file: int, what: int, until_s: float) -> None:
    while not _set(file, fcntl.F_WRLCK, what):
        if monotonic() > until_s:
            raise Unavailable("The database is busy with other changes; try again.")
        sleep(_LOOK_S)


def _set(file: int, kind: int, what: int) -> bool:
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack(_LOCK, kind, os.SEEK_SET, what, 1, 0))
    except BlockingIOError:
        return False
    return True
