"""Fair turns for work that only a few can do at one time: no user keeps the others waiting."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager

from bough.errors import Busy


class FairTurns:
    """Lets a few work at one time; waiting users take turns."""

    def __init__(self, at_once: int, of_one_user: int, refusal: str = "Too many ask.") -> None:
        """refusal: the error message after waiting too long."""
        self._refusal = refusal
        self._at_once = at_once
        self._of_one_user = of_one_user
        self._changed = threading.Condition()
        #: The users who wait, the next one first, and what each of them waits with.
        self._waiting: dict[str, deque[object]] = {}
        self._at_work: Counter[str] = Counter()

    @contextmanager
    def turn(self, user: str, wait_s: float) -> Iterator[None]:
        """Wait for a turn of a user, and have it."""
        with self._changed:
            if not self._wait(user, wait_s):
                raise Busy(self._refusal)
            self._at_work[user] += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_work[user] -= 1
                if not self._at_work[user]:
                    del self._at_work[user]
                self._changed.notify_all()

    def _wait(self, user: str, wait_s: float) -> bool:
        own = object()
        self._waiting.setdefault(user, deque()).append(own)
        try:
            return self._changed.wait_for(lambda: self._next() is own, wait_s)
        finally:
            # The user's next turn comes after all who wait now.
            left = self._waiting.pop(user)
            left.remove(own)
            if left:
                self._waiting[user] = left
            self._changed.notify_all()

    def _next(self) -> object:
        if self._at_work.total() < self._at_once:
            for user, waiting in self._waiting.items():
                if self._at_work[user] < self._of_one_user:
                    return waiting[0]
        return None
