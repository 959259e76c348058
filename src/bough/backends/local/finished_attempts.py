"""Attempts whose end the server has recorded: kept for some days with their logs, then deleted."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from bough.backends.local.attempt_folder import Folders
from bough.backends.local.data.locations import results_folder
from bough.backends.local.data.removal import remove
from bough.backends.local.errors import lacks_room
from bough.backends.local.options import LocalOptions
from bough.backends.local.supervisor.instructions import decode_order

#: How many are deleted in one call, which a caller waits for.
_AT_ONCE = 50
#: The folder can hold other files, such as `lost+found`.
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class FinishedAttempts:
    """The folders of finished attempts."""

    def __init__(self, folders: Folders, options: LocalOptions) -> None:
        self._folders = folders
        self._options = options
        self._keep = timedelta(days=options.keep_days)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, name: str, now_ms: int) -> None:
        """Add an attempt, on the day on which its end was recorded.

        Where the disk is full it stays as it is, and is added when a later server finds it.
        """
        day = self._folders.finished / _day(now_ms)
        try:
            day.mkdir(mode=0o700, exist_ok=True)
            (self._folders.open / name).rename(day / name)
        except FileNotFoundError:
            return
        except OSError as error:
            if not lacks_room(error):
                raise

    def expire(self, now_ms: int) -> int:
        """Begin to delete what is too old, some at a time; how many attempts that were."""
        last_ms = now_ms - self._keep // timedelta(milliseconds=1)
        last = _day(last_ms)
        names = (each for each in os.listdir(self._folders.finished) if _DAY.fullmatch(each))
        days = sorted(each for each in names if each < last)
        count = 0
        for day in days[:1]:
            marks = self._folders.finished / day
            for name in sorted(os.listdir(marks))[:_AT_ONCE]:
                self._discard_results(name, last_ms)
                self.discard(name)
                (marks / name).unlink()
                count += 1
            with contextlib.suppress(OSError):
                marks.rmdir()
        return count

    def discard(self, name: str) -> None:
        """Delete an attempt, in the background."""
        with contextlib.suppress(FileNotFoundError):
            self._folders.of(name).path.rename(self._throw(name))
        self.empty_trash()

    def _discard_results(self, name: str, last_ms: int) -> None:
        """Delete the results of an attempt's task, unless a later attempt has replaced them."""
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            order = decode_order(self._folders.of(name).launch.read_bytes())
            made = results_folder(self._options, order.workflow_id, order.launch.name)
            # The change time is the only time of a folder that its task cannot set.
            if made.stat().st_ctime * 1_000 < last_ms:
                made.rename(self._throw(name))
                made.parent.rmdir()

    def empty_trash(self) -> None:
        """Delete what is in the trash, in the background."""
        with self._lock:
            if self._thread is None and any(self._folders.trash.iterdir()):
                self._thread = threading.Thread(target=self._empty, name="local trash", daemon=True)
                self._thread.start()

    def _throw(self, name: str) -> Path:
        """A new path in the trash."""
        return self._folders.trash / f"{name}.{secrets.token_hex(4)}"

    def _empty(self) -> None:
        while True:
            with self._lock:
                names: list[Path] = list(self._folders.trash.iterdir())
                if not names:
                    self._thread = None
                    return
            for each in names:
                try:
                    remove(each)
                except OSError:
                    # Something cannot be deleted; the next server tries again.
                    return


def _day(now_ms: int) -> str:
    return datetime.fromtimestamp(now_ms / 1_000, UTC).strftime("%Y-%m-%d")
