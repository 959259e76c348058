"""Files that are whole or not there, and on the disk when a call returns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, content: bytes, *, replace: bool = True, durably: bool = True) -> None:
    """Write a file that only its owner can read, whole or not at all; see `whole_file`."""
    with whole_file(path, replace=replace, durably=durably) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path, *, replace: bool = True, durably: bool = True) -> Iterator[BinaryIO]:
    """A file to write that only its owner can read; it gets its name when all of it is written.

    replace: whether an existing file of that name is replaced; if not, it is a `FileExistsError`.
    durably:  the file and its name are on the disk when this ends.
    """
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            if durably:
                file.flush()
                os.fsync(descriptor)
        if replace:
            part.rename(path)
        else:
            # A link replaces nothing, also where another process makes the file at this moment.
            os.link(part, path)
            part.unlink()
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    if durably:
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(descriptor: int) -> None:
    """Bring all files of a file system to the disk at once; one by one would take a commit each.

    descriptor:  of any file or folder on it.
    """
    import ctypes  # noqa: PLC0415  the command line imports this module, and need not load that

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(descriptor):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
