"""Reading what completed tasks left behind: files alone, and never through a link.

The folders were written by tasks, so nothing in them is trusted: each step down starts at an open
folder, and what is neither a file nor a folder is passed over.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from bough.backends.local.data.locations import results_folder
from bough.backends.local.data.paths import open_below, opened, split_path
from bough.backends.local.options import LocalOptions
from bough.errors import Unavailable
from bough.model.result import FilePart, KeptFile, KeptFiles

_DEEPEST = 100
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Parts = tuple[str, ...]


class LocalResults:
    """The results that this machine keeps."""

    def __init__(self, options: LocalOptions) -> None:
        self._options = options

    def list_files(self, workflow_id: str, task: str, after: Parts, limit: int) -> KeptFiles | None:
        """The files after a path, at most so many; `None`: nothing is kept of the task."""
        found: list[KeptFile] = []
        left_out = 0
        try:
            with opened(results_folder(self._options, workflow_id, task)) as folder:
                for file in _walk(folder, (), after):
                    if file is None:
                        left_out += 1
                    elif len(found) == limit:
                        return KeptFiles(tuple(found), True, left_out)
                    else:
                        found.append(file)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(error) from error
        return KeptFiles(tuple(found), False, left_out)

    def read_part(
        self, workflow_id: str, task: str, path: Parts, offset: int, limit: int
    ) -> FilePart | None:
        """A part of a file; `None`: there is no such file."""
        base = results_folder(self._options, workflow_id, task)
        try:
            with contextlib.ExitStack() as stack:
                folder = open_below(stack.enter_context(opened(base)), path[:-1])
                stack.callback(os.close, folder)
                file = os.open(path[-1], _FILE, dir_fd=folder)
                stack.callback(os.close, file)
                about = os.fstat(file)
                if not stat.S_ISREG(about.st_mode):
                    return None
                content = os.pread(file, limit, offset)
                return FilePart(content, _kept("/".join(path), about))
        except OSError as error:
            if isinstance(error, PermissionError):
                raise _unreadable(error) from error
            return None


def _walk(folder: int, above: Parts, after: Parts) -> Iterator[KeptFile | None]:
    """The files below a folder in the order of their paths; `None`: one that is passed over."""
    with contextlib.ExitStack() as stack:
        here = os.open(".", _FOLDER, dir_fd=folder)
        stack.callback(os.close, here)
        for name in sorted(os.listdir(here)):
            parts = (*above, name)
            about = os.stat(name, dir_fd=here, follow_symlinks=False)
            if stat.S_ISDIR(about.st_mode) and len(parts) <= _DEEPEST:
                # All that is in it may have been told before.
                if parts >= after[: len(parts)]:
                    below = os.open(name, _FOLDER, dir_fd=here)
                    try:
                        yield from _walk(below, parts, after)
                    finally:
                        os.close(below)
            elif parts > after:
                yield _file(parts, about)


def _file(parts: Parts, about: os.stat_result) -> KeptFile | None:
    path = "/".join(parts)
    if not stat.S_ISREG(about.st_mode) or split_path(path)[1] is not None:
        return None
    return _kept(path, about)


def _kept(path: str, about: os.stat_result) -> KeptFile:
    version = f"{about.st_size:x}-{about.st_mtime_ns:x}-{about.st_ino:x}"
    return KeptFile(path, about.st_size, version, about.st_mtime_ns // 1_000_000)


def _unreadable(error: OSError) -> Unavailable:
    return Unavailable(f"The results cannot be read now: {error.strerror or error}.")
