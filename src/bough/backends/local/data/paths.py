"""Paths from users: parsed strictly, and opened without ever following a symbolic link.

The server may be root and the folders may belong to a task, so nothing in them is trusted: every
step down starts at an open folder, and a link on the way is an error.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from bough.backends.local.task_command import UserAccount

LONGEST_PART = 255
LONGEST_PATH = 1_024
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SHOWN = 80
#: `openat2`, with the same number on all kinds of processors: the way may have no symbolic link.
_SYS_OPENAT2, _NO_LINKS = 437, 0x04
_libc = ctypes.CDLL(None, use_errno=True)


class _HowToOpen(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def split_path(path: str) -> tuple[tuple[str, ...], str | None]:
    """The parts of a path, and what is wrong with it; `None`: nothing is."""
    parts = tuple(each for each in path.split("/") if each not in {"", "."})
    if not parts:
        return parts, "it names no file or folder"
    if ".." in parts:
        return parts, 'it must not contain ".."'
    if not path.isprintable():
        return parts, "it contains characters that cannot be shown"
    encoded = [each.encode(errors="replace") for each in parts]
    if max(len(each) for each in encoded) > LONGEST_PART:
        return parts, f"a part of it is longer than {LONGEST_PART} bytes"
    if sum(len(each) + 1 for each in encoded) > LONGEST_PATH:
        return parts, f"it is longer than {LONGEST_PATH} bytes"
    return parts, None


def shown(text: str) -> str:
    """A user's text for a message: quoted, shortened, and safe to print."""
    kept = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return '"' + "".join(each if each.isprintable() else "\ufffd" for each in kept) + '"'


def real_path(path: Path) -> Path:
    """The same without links; as `Path.resolve`, but the kernel finds it in one step."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return path.resolve()
    try:
        return Path(os.readlink(f"/proc/self/fd/{descriptor}"))
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[int]:
    """Open a folder by its absolute path."""
    descriptor = open_below("/", path.parts[1:])
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def made(path: Path, mode: int = 0o755, account: UserAccount | None = None) -> Iterator[int]:
    """Open a folder, and make it with its parents if it does not exist."""
    descriptor = make_below("/", path.parts[1:], mode, account)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_below(base: str | int, parts: tuple[str, ...]) -> int:
    """Open a folder below another one."""
    current = _open_base(base)
    if len(parts) > 1:
        # In one step, where the kernel can; else step by step, also to say what is wrong.
        found = _open_at_once(current, parts)
        if found is not None:
            os.close(current)
            return found
    try:
        for part in parts:
            current = _step(current, part)
    except BaseException:
        os.close(current)
        raise
    return current


def make_below(
    base: str | int, parts: tuple[str, ...], mode: int = 0o755, account: UserAccount | None = None
) -> int:
    """Open a folder below another one, and make what is missing."""
    current = _open_base(base)
    try:
        for part in parts:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=current)
                give(part, current, mode, account)
            current = _step(current, part)
    except BaseException:
        os.close(current)
        raise
    return current


def write_new(
    base: Path,
    parts: tuple[str, ...],
    contents: bytes,
    mode: int,
    account: UserAccount | None = None,
) -> None:
    """Write a new file below a folder."""
    with opened(base) as descriptor:
        folder = make_below(descriptor, parts[:-1], account=account)
    try:
        file = os.open(parts[-1], _NEW_FILE, 0o600, dir_fd=folder)
    finally:
        os.close(folder)
    with open(file, "wb") as stream:
        stream.write(contents)
        if account is not None:
            os.fchown(file, account.user_id, account.group_id)
        os.fchmod(file, mode)


def give(name: str, folder: int, mode: int, account: UserAccount | None) -> None:
    """Set the mode and owner of what was just made in a folder."""
    # A user who can write there may have replaced it by a pipe, which would block.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        os.fchmod(descriptor, mode)
        if account is not None:
            os.fchown(descriptor, account.user_id, account.group_id)
    finally:
        os.close(descriptor)


def is_folder(path: Path) -> bool | None:
    """Whether a path is a folder or a file; `None`: neither, or there is a link on the way."""
    try:
        with opened(path.parent) as parent:
            mode = os.stat(path.name, dir_fd=parent, follow_symlinks=False).st_mode
    except OSError:
        return None
    if stat.S_ISDIR(mode):
        return True
    return False if stat.S_ISREG(mode) else None


def _open_at_once(folder: int, parts: tuple[str, ...]) -> int | None:
    """Open a folder by one call; `None`: that is not possible, or the kernel is older than 5.6."""
    path = os.fsencode("/".join(parts))
    if b"\0" in path:
        return None
    how = _HowToOpen(_FOLDER, 0, _NO_LINKS)
    found = _libc.syscall(
        ctypes.c_long(_SYS_OPENAT2),
        ctypes.c_int(folder),
        path,
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    return None if found < 0 else found


def _open_base(base: str | int) -> int:
    return os.dup(base) if isinstance(base, int) else os.open(base, _FOLDER)


def _step(current: int, part: str) -> int:
    below = os.open(part, _FOLDER, dir_fd=current)
    os.close(current)
    return below
