"""What a backend has said before, so that only what is new is looked up and written down.

A backend tells everything that it sees, as often as it is asked. Must not know what a sight means.
"""

from __future__ import annotations

from collections.abc import Sequence

from bough.model.backend import Observation


class ObservationCache:
    """What one backend said when it was last asked, all of it written down."""

    def __init__(self) -> None:
        self._known: dict[str, Observation] = {}

    def news(self, seen: Sequence[Observation]) -> list[Observation]:
        """What was not said in the same words before."""
        known = self._known
        return [each for each in seen if known.get(each.attempt) != each]

    def keep(self, seen: Sequence[Observation]) -> None:
        """All of this is written down now."""
        self._known = {each.attempt: each for each in seen}

    def clear(self) -> None:
        """Let everything be new again."""
        self._known = {}
