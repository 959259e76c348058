"""What can go wrong with one task where it runs, in words for the person who submitted it."""

from __future__ import annotations

from bough.errors import BoughError, Invalid


class Unstartable(Invalid):
    """The task cannot be started as it is written, or not on this machine."""


class CopyFailed(BoughError):
    """Data of the task could not be copied."""
