"""How much disk a task's folders take, measured again and again, a few files at a time.

A supervisor has one thread and must not block: each step looks at some files, and the sum is known
when all have been looked at. Links are not followed; a file with several names counts once.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Generator, Iterable
from itertools import islice
from pathlib import Path

_BLOCK = 512
#: How many files a step looks at.
_AT_ONCE = 500
#: Nothing useful is deeper, and what is cannot be measured in bounded time.
DEEPEST = 256
#: When folders are measured first; the pauses double up to the second number, and are never
#: shorter than so many times what the last measurement took.
_FIRST_S, _LONGEST_S = 1.0, 10.0
_SHARE = 50
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class DiskWatch:
    """Measures some folders while a task runs, and says when they are too large."""

    def __init__(self, folders: Iterable[Path], limit_bytes: int, now: float) -> None:
        #: When to measure next, by the monotonic clock.
        self.due_at = now + _FIRST_S
        #: What is too large, in words; empty: nothing.
        self.fault = ""
        self._folders = tuple(folders)
        self._limit_bytes = limit_bytes
        self._measuring: Measuring | None = None
        self._began_s = 0.0
        self._pause_s = _FIRST_S

    def go_on(self, now: float) -> None:
        """Measure a little further, if it is time."""
        if now < self.due_at:
            return
        if self._measuring is None:
            self._measuring = Measuring(self._folders)
            self._began_s = time.process_time()
        found = self._measuring
        done = found.go_on()
        if found.used_bytes > self._limit_bytes:
            self.fault = f"more disk than it may ({self._limit_bytes // 2**20} MiB)"
        elif found.too_deep:
            self.fault = f"folders deeper than {DEEPEST}, which cannot be measured"
        if done or self.fault:
            found.close()
            self._measuring = None
            took_s = time.process_time() - self._began_s
            self._pause_s = min(_LONGEST_S, 2 * self._pause_s)
            self.due_at = now + max(self._pause_s, took_s * _SHARE)


class Measuring:
    """One measurement of some folders."""

    def __init__(self, folders: Iterable[Path]) -> None:
        #: What is known so far.
        self.used_bytes = 0
        #: Whether something is too deep to be measured.
        self.too_deep = False
        self._seen: set[tuple[int, int]] = set()
        self._steps = self._measure(tuple(folders))

    def go_on(self) -> bool:
        """Look at some more files; whether that was all."""
        return len(list(islice(self._steps, _AT_ONCE))) < _AT_ONCE

    def close(self) -> None:
        """Stop before the end."""
        self._steps.close()

    def _measure(self, folders: tuple[Path, ...]) -> Generator[bool, None, None]:
        for each in folders:
            with contextlib.suppress(OSError):
                yield from self._look(os.open(each, _FOLDER), 0)

    def _look(self, folder: int, depth: int) -> Generator[bool, None, None]:
        """Count what is in an open folder, and close it."""
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    below = self._count(folder, entry, depth)
                    yield True
                    if below is not None:
                        yield from self._look(below, depth + 1)
        except OSError:
            # It was removed or changed meanwhile.
            return
        finally:
            os.close(folder)

    def _count(self, folder: int, entry: os.DirEntry[str], depth: int) -> int | None:
        """Count a file or folder; a folder is opened."""
        with contextlib.suppress(OSError):
            found = entry.stat(follow_symlinks=False)
            if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
                if (found.st_dev, found.st_ino) in self._seen:
                    return None
                self._seen.add((found.st_dev, found.st_ino))
            self.used_bytes += found.st_blocks * _BLOCK
            if stat.S_ISDIR(found.st_mode):
                if depth >= DEEPEST:
                    self.too_deep = True
                    return None
                return os.open(entry.name, _FOLDER, dir_fd=folder)
        return None
