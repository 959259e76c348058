"""Counts that have limits: connections, streams, bodies and sessions.

Where several processes answer requests, they count together (`workers.shared_counts`).
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, Protocol


class Want(NamedTuple):
    """What a request, a connection or a session would add to a count."""

    key: str
    amount: int
    #: The most that the count may be afterwards; `None`: it has no limit.
    most: int | None


class Tally(Protocol):
    """Counts by key."""

    def take(self, *wants: Want) -> Want | None:
        """Add all of them, or nothing; which one does not fit."""
        ...

    def give_back(self, key: str, amount: int) -> None:
        """Take something off a count."""
        ...

    def count(self, key: str) -> int:
        """How much there is."""
        ...


class OwnTally:
    """The counts of one process. For one thread at a time."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def take(self, *wants: Want) -> Want | None:
        """Add all of them, or nothing; which one does not fit."""
        for each in wants:
            if each.most is not None and self._counts[each.key] + each.amount > each.most:
                return each
        for each in wants:
            self._counts[each.key] += each.amount
        return None

    def give_back(self, key: str, amount: int) -> None:
        """Take something off a count."""
        self._counts[key] -= amount
        if self._counts[key] <= 0:
            del self._counts[key]

    def count(self, key: str) -> int:
        """How much there is."""
        return self._counts[key]
