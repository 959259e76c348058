"""Removing folders of tasks, however deep they are and whatever their permissions.

Links are never followed. Nested folders are moved to the top before they are emptied, so that depth
costs no memory, open files or long paths.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from bough.backends.local.data.paths import opened, real_path

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_TAKEN_OUT = ".bough-out-"


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with everything in it; it may be gone already."""
    # The path to it can contain links; what is removed is never found through one.
    above = real_path(path.parent)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), opened(above) as parent:
        remove_from(parent, path.name)


def remove_from(parent: int, name: str) -> None:
    """The same for something in an open folder."""
    try:
        # Most folders of short tasks are empty.
        os.rmdir(name, dir_fd=parent)
        return
    except FileNotFoundError:
        raise
    except OSError:
        pass
    if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=parent)
        return
    top = _open(name, parent)
    try:
        while _remove_folders(top):
            pass
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


def _remove_folders(top: int) -> bool:
    """Remove all files, and each folder with its files; whether there may be more."""
    found = False
    with os.scandir(top) as entries:
        for entry in entries:
            found = True
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=top)
                continue
            folder = _open(entry.name, top)
            try:
                _clear(folder, top)
            finally:
                os.close(folder)
            os.rmdir(entry.name, dir_fd=top)
    return found


def _clear(folder: int, top: int) -> None:
    """Remove the files of a folder, and move its folders to the top."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=folder)
                continue
            # Made writable first, or it cannot be moved.
            os.close(_open(entry.name, folder))
            name = _TAKEN_OUT + os.urandom(8).hex()
            os.rename(entry.name, name, src_dir_fd=folder, dst_dir_fd=top)


def _open(name: str, parent: int) -> int:
    """Open a folder for listing, even if its permissions forbid that."""
    found = os.open(name, _FOLDER, dir_fd=parent)
    try:
        if os.fstat(found).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(f"/proc/self/fd/{found}", stat.S_IRWXU)
        return os.open(".", _LISTED, dir_fd=found)
    finally:
        os.close(found)
