"""Nodes by the order of magnitude of what they have free, for resources with many values.

Gives a shape that is seen for the first time a good start: nodes with much too little are out at
once. Follows the changes of the nodes, and is looked at only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from bough.core.place.columns import CPU, MEMORY, Row
from bough.core.place.node_changes import Changes

#: The columns with many different values.
_COLUMNS = (CPU, MEMORY)


class Magnitudes:
    """Masks of nodes by the number of binary digits of their free CPU, and of their memory."""

    def __init__(self, rows: Sequence[Row], changes: Changes) -> None:
        self._rows = rows
        self._changes = changes
        self._read = 0
        self._digits: dict[int, list[int]] = {}
        self._masks: dict[int, dict[int, int]] = {}

    def at_least(self, wanted: Row) -> int | None:
        """The nodes that may have this much of each; `None`: every one."""
        self._follow()
        found = None
        for column in _COLUMNS:
            if wanted[column] > 0:
                mask = 0
                least = wanted[column].bit_length()
                for digits, nodes in self._masks[column].items():
                    if digits >= least:
                        mask |= nodes
                found = mask if found is None else found & mask
        return found

    def _follow(self) -> None:
        changed = self._changes.since(self._read) if self._digits else None
        self._read = len(self._changes)
        if changed is None:
            self._start()
            return
        for at in dict.fromkeys(changed):
            for column in _COLUMNS:
                self._update(column, at)

    def _start(self) -> None:
        for column in _COLUMNS:
            digits = [max(row[column], 0).bit_length() for row in self._rows]
            masks = dict.fromkeys(digits, 0)
            for at, length in enumerate(digits):
                masks[length] |= 1 << at
            self._digits[column] = digits
            self._masks[column] = masks

    def _update(self, column: int, at: int) -> None:
        digits = self._digits[column]
        masks = self._masks[column]
        length = max(self._rows[at][column], 0).bit_length()
        if length != digits[at]:
            masks[digits[at]] ^= 1 << at
            masks[length] = masks.get(length, 0) | 1 << at
            digits[at] = length
