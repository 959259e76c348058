"""Counts that all workers of a server share, in a piece of memory that they all see.

Each worker has a column of its own, and a limit is compared with the sum of all. So what a worker
that died had counted is taken back at once: its column is cleared. One lock, which the kernel frees
with the process that holds it, makes comparing and adding one step.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b

from bough.server.bounded_counts import Want

#: Rows for each connection that there can be, and for whatever else is counted.
_FOR_EACH_CONNECTION = 4
_BESIDE = 1 << 13
_KEY_BYTES = 16
_NO_KEY = bytes(_KEY_BYTES)
_COUNT_BYTES = 8
#: How far from its place a key can be.
_WINDOW = 256


def make_memory(workers: int, connections: int) -> int:
    """Memory for the counts of so many workers; its descriptor."""
    rows = connections * _FOR_EACH_CONNECTION + _BESIDE
    descriptor = os.memfd_create("tally", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, rows * (_KEY_BYTES + _COUNT_BYTES * workers))
    return descriptor


class SharedTally:
    """The counts of all workers, for one of them or for the server. Any thread can use it."""

    def __init__(self, descriptor: int, workers: int, own: int = 0) -> None:
        """own:  the column of this worker; the server only reads and clears."""
        self._descriptor = descriptor
        size = os.fstat(descriptor).st_size
        self._rows = size // (_KEY_BYTES + _COUNT_BYTES * workers)
        self._memory = mmap.mmap(descriptor, size)
        numbers = memoryview(self._memory)[self._rows * _KEY_BYTES :].cast("q")
        self._columns = [
            numbers[each * self._rows : (each + 1) * self._rows] for each in range(workers)
        ]
        self._own = self._columns[own]
        self._threads = threading.Lock()

    def take(self, *wants: Want) -> Want | None:
        """Add all of them, or nothing; which one does not fit."""
        with self._locked():
            taken: list[tuple[int, int]] = []
            for each in wants:
                row = self._row(each.key, new=True)
                # Without a row it cannot be counted, so it cannot be allowed.
                if row is None or (
                    each.most is not None and self._sum(row) + each.amount > each.most
                ):
                    for earlier, amount in taken:
                        self._subtract(earlier, amount)
                    return each
                self._own[row] += each.amount
                taken.append((row, each.amount))
        return None

    def give_back(self, key: str, amount: int) -> None:
        """Take something off a count."""
        with self._locked():
            row = self._row(key)
            if row is not None:
                self._subtract(row, amount)

    def count(self, key: str) -> int:
        """How much all workers have."""
        return sum(self.of_each(key))

    def of_each(self, key: str) -> list[int]:
        """How much each worker has."""
        with self._locked():
            row = self._row(key)
            return [0 if row is None else each[row] for each in self._columns]

    def clear(self, worker: int) -> None:
        """Take back whatever a worker that is gone had."""
        with self._locked():
            size = self._rows * _COUNT_BYTES
            start = self._rows * _KEY_BYTES + worker * size
            self._memory[start : start + size] = bytes(size)

    def _row(self, key: str, *, new: bool = False) -> int | None:
        """The row of a key; where it has none, a free one that is its own from now on."""
        digest = blake2b(key.encode(), digest_size=_KEY_BYTES).digest()
        first = int.from_bytes(digest[:8]) % self._rows
        free: int | None = None
        for step in range(min(_WINDOW, self._rows)):
            row = (first + step) % self._rows
            found = self._key(row)
            if found == digest:
                return row
            if free is None and not self._sum(row):
                free = row
            if found == _NO_KEY:
                break
        if new and free is not None:
            self._set_key(free, digest)
            return free
        return None

    def _subtract(self, row: int, amount: int) -> None:
        self._own[row] = max(0, self._own[row] - amount)
        # A row without a key ends every search, so only what no search goes past can be freed.
        while not self._sum(row) and self._key((row + 1) % self._rows) == _NO_KEY:
            if self._key(row) == _NO_KEY:
                return
            self._set_key(row, _NO_KEY)
            row = (row - 1) % self._rows

    def _sum(self, row: int) -> int:
        return sum(each[row] for each in self._columns)

    def _key(self, row: int) -> bytes:
        return self._memory[row * _KEY_BYTES : (row + 1) * _KEY_BYTES]

    def _set_key(self, row: int, key: bytes) -> None:
        self._memory[row * _KEY_BYTES : (row + 1) * _KEY_BYTES] = key

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._threads:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN)
