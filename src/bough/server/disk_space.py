"""The disks of a server: when one is nearly full, new work is refused and everything else goes on.

What ends or deletes something, and logging in, need little: for that the database has a reserve.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from bough.errors import BoughError
from bough.server.backend_file import has_local
from bough.server.repeated_work import RepeatedWork
from bough.server.settings import Settings
from bough.store import Store
from bough.store.sqlite_reserve import RESERVE_BYTES, keep_reserve

LOG = logging.getLogger(__name__)

#: A disk with less room than this, or than this part of it if that is less, is nearly full.
_LOW_BYTES = 64 << 20
_LOW_PART = 20
_LOW_FILES = 256
#: How often the reserve is looked at.
_LOOK_S = 10.0
#: The file that is deleted at a start while the disk is nearly full.
RESERVE_FILE = "reserve"

_FULL = (
    "The disk of the database ({}) is nearly full: no new work is accepted until there is room "
    "again; cancel and delete still work."
)
_ROOM_AGAIN = "There is room on the disk of the database again: new work is accepted."


class DiskSpace(RepeatedWork):
    """Looks at the disks of the database, where that is a file, and of the tasks.

    From its start on it keeps a reserve in the database.
    """

    def __init__(self, settings: Settings, store: Store, *, says: bool = True) -> None:
        """says:  whether it is logged; one process of a server does that."""
        super().__init__("disk", self._keep, _LOOK_S)
        self._says = says
        self._store = store
        self._database = _folder_of(store)
        self._tasks = settings.task_folder if has_local(settings) else None
        self._full = False
        self._failed = False

    def faults(self) -> tuple[str, ...]:
        """Which disks are nearly full, in sentences."""
        found = [each for each in (self.refusal(),) if each]
        if self._tasks is not None and is_low(self._tasks):
            found.append(
                f"The disk of the tasks' files ({self._tasks}) is nearly full: tasks start when "
                "there is room again."
            )
        return tuple(found)

    def refusal(self) -> str:
        """Why no new work is accepted; empty: it is."""
        full = self._database is not None and is_low(self._database)
        if full is not self._full:
            self._full = full
            if self._says:
                LOG.warning("%s", _FULL.format(self._database) if full else _ROOM_AGAIN)
        return _FULL.format(self._database) if full else ""

    def _keep(self) -> None:
        try:
            if self._database is not None and _room(self._database) > 4 * RESERVE_BYTES:
                keep_reserve(self._store)
                _make_file(self._database / RESERVE_FILE)
            self._failed = False
        except (BoughError, OSError) as error:
            if not self._failed:
                LOG.warning("the reserve for a full disk cannot be kept: %s", error)
            self._failed = True


def give_up_file(database: str) -> None:
    """Make room for a start, which makes the log of the database anew, longer with the reserve."""
    path = Path(database).resolve().parent / RESERVE_FILE
    if "://" not in database and path.exists() and is_low(path.parent):
        LOG.warning("the disk of the database is nearly full: %s is given up for this start", path)
        path.unlink(missing_ok=True)


def _make_file(path: Path) -> None:
    """A file that is as large as what a start needs."""
    if path.exists():
        return
    part = path.with_name(f".{path.name}.new")
    descriptor = os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, RESERVE_BYTES + RESERVE_BYTES // 2)
        part.rename(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def is_low(path: Path) -> bool:
    """Whether the disk of a folder is nearly full."""
    try:
        found = os.statvfs(path)
    except OSError:
        return False
    least = min(_LOW_BYTES, found.f_blocks * found.f_frsize // _LOW_PART)
    # Some file systems do not count files, and report a maximum of 0.
    files = found.f_favail >= _LOW_FILES or not found.f_files
    return found.f_bavail * found.f_frsize < least or not files


def _room(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def _folder_of(store: Store) -> Path | None:
    """The folder of SQLite's file; `None`: the database is elsewhere."""
    path = store.engine.url.database if store.is_sqlite else None
    return None if path is None else Path(path).resolve().parent
