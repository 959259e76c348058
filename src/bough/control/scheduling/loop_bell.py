"""What wakes the loop."""

from __future__ import annotations

import threading


class Bell:
    """Rings the loop from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def __call__(self) -> None:
        """Ring."""
        self._event.set()

    def wait(self, timeout_s: float) -> None:
        """Sleep until it rings, or until the timeout."""
        self._event.wait(timeout_s)

    def answer(self) -> bool:
        """Reset the bell before looking at what it rang for; returns whether it had rung."""
        rung = self._event.is_set()
        self._event.clear()
        return rung
