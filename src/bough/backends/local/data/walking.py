"""Finds the files below a folder of a task: bounded, and never through a link."""

from __future__ import annotations

import errno
import os
import stat

import msgspec

from bough.backends.local.errors import CopyFailed
from bough.backends.local.task_command import CopyLimits

#: Prefix of files that are being written; these are never copied.
UNFINISHED = ".bough-part-"
REPLACED = ".bough-old-"
_DEEPEST = 100
_NOTED = 20
READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Found(msgspec.Struct, frozen=True):
    """A file or a link, by its path below the folder."""

    parts: tuple[str, ...]
    mode: int


class Walk:
    """The files and links below one folder."""

    def __init__(self, source: str, bounds: CopyLimits) -> None:
        #: The folder, for messages.
        self._source = source
        self._bounds = bounds
        self.found: list[Found] = []
        #: How many files and folders are below the source, copied or not.
        self._seen = 0
        #: The first files that were skipped, and why.
        self.skipped: list[str] = []

    def find(self, folder: int, above: tuple[str, ...]) -> None:
        """Find all files and links below a folder, by name; closes the folder."""
        try:
            if len(above) > _DEEPEST:
                raise CopyFailed(f"{self._source} has folders deeper than {_DEEPEST}")
            for name in self._list(folder):
                self._find_one(folder, above, name)
        finally:
            os.close(folder)

    def skip(self, parts: tuple[str, ...], why: str) -> None:
        """Note that something is not copied."""
        if len(self.skipped) < _NOTED:
            self.skipped.append(f"{'/'.join(parts)}: {why}")

    def _list(self, folder: int) -> list[str]:
        """The sorted names in a folder; refuses too many before all are in memory."""
        names: list[str] = []
        with os.scandir(folder) as entries:
            for each in entries:
                self._seen += 1
                if self._seen > self._bounds.files:
                    raise CopyFailed(
                        f"{self._source} has more than {self._bounds.files} files and "
                        "folders, which is the most that is copied"
                    )
                names.append(each.name)
        return sorted(names)

    def _find_one(self, folder: int, above: tuple[str, ...], name: str) -> None:
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                self.find(os.open(name, READ_FOLDER, dir_fd=folder), (*above, name))
                return
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            if error.errno == errno.ELOOP:
                return
            raise
        if name.startswith((UNFINISHED, REPLACED)):
            return
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            self.skip((*above, name), "it is neither a file nor a folder")
            return
        self.found.append(Found((*above, name), mode))
