"""Where the logs of attempts are kept, and for how long.

    <folder>/attempts/<attempt>/log.…    the segments
    <folder>/attempts/<attempt>/whole    exists once nothing more will be written

A log outlives its pod, and is deleted some days after it became complete.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from pathlib import Path

from bough.backends.kubernetes.names import dns_name
from bough.backends.logs.log_reader import PART_BYTES, AttemptLogReader
from bough.model.backend import LogPart

_DAY_S = 86_400
#: How often to look for logs that are too old, and how many to check at a time.
_EXPIRE_S = 3_600.0
_AT_ONCE = 500


class LogFolders:
    """The logs of one backend."""

    def __init__(self, folder: Path, keep_days: int) -> None:
        self._attempts = folder / "attempts"
        self._keep_s = keep_days * _DAY_S
        self._expire_at = 0.0
        self._attempts.mkdir(mode=0o700, parents=True, exist_ok=True)

    def of(self, attempt: str) -> Path:
        """The folder of an attempt."""
        return self._attempts / dns_name(attempt)

    def is_whole(self, attempt: str) -> bool:
        """Whether the log is complete, so nothing more will be written."""
        return (self.of(attempt) / "whole").exists()

    def finish(self, attempt: str) -> None:
        """Mark the log as complete."""
        folder = self.of(attempt)
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / "whole").touch()

    def read(
        self, attempt: str, position: int, last_lines: int | None, limit_bytes: int | None
    ) -> LogPart | None:
        """A part of a log; `None` if there is none."""
        folder = self.of(attempt)
        if not folder.is_dir():
            return None
        reader = AttemptLogReader(folder, finished=self.is_whole(attempt))
        if last_lines is not None:
            return reader.read_last(last_lines)
        return reader.read(position, PART_BYTES if limit_bytes is None else limit_bytes)

    def expire(self) -> tuple[str, ...]:
        """Delete logs that are too old, every now and then; return their attempts."""
        now = time.monotonic()
        if now < self._expire_at:
            return ()
        deleted: list[str] = []
        self._expire_at = now + _EXPIRE_S
        oldest = time.time() - self._keep_s
        for count, folder in enumerate(sorted(self._attempts.iterdir())):
            with contextlib.suppress(OSError):
                if (folder / "whole").stat().st_mtime < oldest:
                    shutil.rmtree(folder)
                    # The folder is named TASK-NUMBER after the attempt TASK/NUMBER.
                    deleted.append("/".join(folder.name.rsplit("-", 1)))
            if count >= _AT_ONCE:
                # Check the rest soon.
                self._expire_at = now
                break
        return tuple(deleted)
