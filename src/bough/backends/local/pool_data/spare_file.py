"""A file that is given up on a full disk, so that data of pools can still be listed and deleted.

Even reading an index needs a little room, for the files that SQLite makes beside it. Without that,
users could not delete what fills the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Thousands of files can be deleted with it.
_BYTES = 8 << 20
_LEAST_BYTES = 128 << 10


class Reserve:
    """The reserve of one disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def make(self) -> None:
        """Make it if it is missing and there is plenty of room."""
        with suppress(OSError):
            if room_at(self._path.parent) >= 4 * _BYTES:
                self._take()

    @contextmanager
    def given_up(self) -> Iterator[None]:
        """On a full disk, have its room until the block ends; then it is taken back."""
        if room_at(self._path.parent) >= _BYTES:
            yield
            return
        self._path.unlink(missing_ok=True)
        try:
            yield
        finally:
            # At once, since what has filled the disk would take it.
            with suppress(OSError):
                self._take()

    def _take(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        size = _BYTES
        try:
            while size >= _LEAST_BYTES:
                try:
                    os.posix_fallocate(descriptor, 0, size)
                except OSError:
                    size //= 2
                else:
                    return
        finally:
            os.close(descriptor)


def room_at(folder: Path) -> int:
    """How many bytes are free on the disk of a folder."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
