"""A work queue of names: several threads work on it, each name in one thread at a time.

A name that is noted while it is being worked on is done once more; one that fails is retried after
a while.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections import deque
from collections.abc import Callable

LOG = logging.getLogger(__name__)
#: How long to wait after an unexpected error.
_AGAIN_S = 5.0


class WorkQueue:
    """Calls `work(name)` for every name that was noted."""

    def __init__(self, work: Callable[[str], float | None], workers: int, name: str) -> None:
        """work:  returns after how many seconds to call it again; `None`: do not."""
        self._work = work
        self._changed = threading.Condition()
        self._ready: deque[str] = deque()
        #: Names in `_ready`, or to be put there when their worker is done.
        self._noted: set[str] = set()
        self._busy: set[str] = set()
        self._later: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}
        self._closed = False
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True)
            for number in range(workers)
        ]

    def start(self) -> None:
        """Start the threads."""
        for each in self._threads:
            each.start()

    def close(self, patience_s: float = 5.0) -> None:
        """Stop, once the work in progress is done."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        until = time.monotonic() + patience_s
        for each in self._threads:
            if each.is_alive():
                each.join(max(0.0, until - time.monotonic()))

    def note(self, name: str) -> None:
        """Queue a name now."""
        with self._changed:
            self._note(name)

    def note_later(self, name: str, delay_s: float) -> None:
        """Queue a name after a while."""
        with self._changed:
            self._note_later(name, delay_s)

    def _note(self, name: str) -> None:
        self._due.pop(name, None)
        if name not in self._noted:
            self._noted.add(name)
            if name not in self._busy:
                self._ready.append(name)
                self._changed.notify()

    def _note_later(self, name: str, delay_s: float) -> None:
        due = time.monotonic() + delay_s
        if name in self._noted or self._due.get(name, due + 1) <= due:
            return
        self._due[name] = due
        heapq.heappush(self._later, (due, name))
        self._changed.notify()

    def _run(self) -> None:
        while (name := self._take()) is not None:
            again_s: float | None = _AGAIN_S
            try:
                again_s = self._work(name)
            except Exception:
                LOG.exception("%s failed, retrying", name)
            with self._changed:
                self._busy.discard(name)
                if name in self._noted:
                    self._ready.append(name)
                    self._changed.notify()
                elif again_s is not None:
                    self._note_later(name, again_s)

    def _take(self) -> str | None:
        with self._changed:
            while not self._closed:
                wait_s = self._wake_due()
                if self._ready:
                    name = self._ready.popleft()
                    self._noted.discard(name)
                    self._busy.add(name)
                    return name
                self._changed.wait(wait_s)
            return None

    def _wake_due(self) -> float | None:
        """Queue the names that are due; return how long until the next."""
        now = time.monotonic()
        while self._later:
            due, name = self._later[0]
            if self._due.get(name) == due and due > now:
                return due - now
            heapq.heappop(self._later)
            if self._due.get(name) == due:
                self._note(name)
        return None
