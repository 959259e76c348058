"""Whether many pods are being created, so that whatever only reports on others can wait."""

from __future__ import annotations

import time

#: How much later to report that a task runs, while many others are being started.
_LATER_S = 10.0
#: The rush is great if so many times more pods wait than there are workers.
_GREAT = 8


class CreationRush:
    """The attempts whose pods wait to be created. Any thread can ask it."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._waiting: set[str] = set()
        self._since: float | None = None

    def note(self, attempt: str) -> None:
        """The pod of an attempt is queued for its creation."""
        self._waiting.add(attempt)

    def begin(self, attempt: str) -> None:
        """A worker has taken the attempt."""
        self._waiting.discard(attempt)

    def goes_on(self) -> bool:
        """Whether any pod waits for a worker."""
        return bool(self._waiting)

    def is_on(self) -> bool:
        """Whether more pods wait to be created than there are workers."""
        return len(self._waiting) > self._workers

    def is_great(self) -> bool:
        """Whether so many wait that even the watch of pods is not worth its cost meanwhile."""
        return len(self._waiting) > _GREAT * self._workers

    def delays_reports(self) -> bool:
        """Whether starting waiting tasks is more urgent than reporting on others.

        Not for ever, if the rush does not end. Only the scheduler's loop may ask this.
        """
        if not self.is_on():
            self._since = None
            return False
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        return now - self._since < _LATER_S
