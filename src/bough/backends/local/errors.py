"""What can go wrong with one task where it runs, in words for the person who submitted it."""

from __future__ import annotations

import errno

from bough.errors import BoughError, Invalid

#: Why a task whose limit is tiny cannot be started.
TOO_LITTLE_MEMORY = "that alone takes more memory than it may use"


class Unstartable(Invalid):
    """The task cannot be started as it is written, or not on this machine."""


class CopyFailed(BoughError):
    """Data of the task could not be copied."""


class NoRoom(BoughError):
    """The disk was full: no fault of the task, which can be started when there is room again."""


def lacks_room(error: BaseException | None) -> bool:
    """Whether something went wrong because the disk was full, however it is told."""
    while error is not None:
        if isinstance(error, NoRoom):
            return True
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False
