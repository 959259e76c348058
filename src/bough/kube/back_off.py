"""How long to wait after failures in a row: longer each time, bounded, and random.

Randomness keeps several clients from retrying in step.
"""

from __future__ import annotations

import random


class BackOff:
    """Doubles from `first_s` up to `most_s`; each wait is a random part of that, at least half."""

    def __init__(self, first_s: float = 0.2, most_s: float = 20.0) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._next_s = first_s

    def wait_s(self) -> float:
        """How long to wait now; each call returns a longer time than the last, up to the bound."""
        bound, self._next_s = self._next_s, min(2 * self._next_s, self._most_s)
        return bound * random.uniform(0.5, 1.0)  # noqa: S311

    def reset(self) -> None:
        """Start again from the first wait, after a success."""
        self._next_s = self._first_s
