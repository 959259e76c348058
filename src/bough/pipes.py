"""Pipes that hold more than usual, where that takes nothing from others."""

from __future__ import annotations

import contextlib
import fcntl
import os


def may_be_large() -> bool:
    """Whether this process may have large pipes: only root.

    Other users have one limit for all their pipes together. With some large ones they would use it
    up, and every other program of theirs would get pipes of two pages.
    """
    return os.geteuid() == 0


def enlarge(descriptor: int, size: int) -> None:
    """Let a pipe hold so many bytes, if it may; if not, it stays as it is."""
    if may_be_large():
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, size)
