"""Work that a server repeats in a thread of its own for as long as it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable


class RepeatedWork:
    """Does the work at once, and again after each pause. The work itself must not fail."""

    def __init__(self, name: str, work: Callable[[], object], pause_s: float) -> None:
        """name:  of the thread."""
        self._work = work
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End, once the work that has begun is done."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._work()
            if self._stop.wait(self._pause_s):
                return
