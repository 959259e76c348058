"""What can go wrong with one task on this machine, in words for the user who submitted it."""

from __future__ import annotations

import errno

from bough.errors import BoughError, Invalid

#: Why a task with a tiny memory limit cannot be started.
TOO_LITTLE_MEMORY = "that alone takes more memory than it may use"


class Unstartable(Invalid):
    """The task cannot be started as it is written, or not on this machine."""


class CopyFailed(BoughError):
    """Data of the task could not be copied."""


class NoRoom(BoughError):
    """The disk was full: not the task's fault, so it is started once there is room again."""


def lacks_room(error: BaseException | None) -> bool:
    """Whether an error, or one that caused it, was a full disk."""
    while error is not None:
        if isinstance(error, NoRoom):
            return True
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False
