"""Resources as rows of integers with fixed columns, so that they can be compared fast."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bough.model.cluster import Resources

#: The amounts of all resources, in the order of `Columns.names`.
Row = tuple[int, ...]

GPUS: Final = 0
CPU: Final = 1
MEMORY: Final = 2
PODS: Final = 3

_FIXED = ("gpus", "cpu", "memory", "pods")


class Columns:
    """Which resource stands in which column: the four common ones, then the others by name."""

    def __init__(self, offered: Iterable[Resources]) -> None:
        others = sorted({name for each in offered for name, amount in each.other if amount > 0})
        self.names = (*_FIXED, *others)
        self._others = {name: column for column, name in enumerate(self.names)}

    def offer(self, resources: Resources) -> Row:
        """What a node has."""
        row = (resources.gpus, resources.cpu_milli, resources.memory_bytes, resources.pods)
        if len(self.names) == len(row):
            return row
        return (*row, *self._other(resources))

    def request(self, resources: Resources) -> Row:
        """What a pod takes; every pod takes one slot, whatever it says."""
        row = (resources.gpus, resources.cpu_milli, resources.memory_bytes, 1)
        if len(self.names) == len(row):
            return row
        return (*row, *self._other(resources))

    def unknown(self, resources: Resources) -> tuple[str, ...]:
        """The resources that are asked for and that no node has."""
        return tuple(
            name for name, amount in resources.other if amount > 0 and name not in self._others
        )

    def _other(self, resources: Resources) -> Row:
        amounts = dict(resources.other)
        return tuple(amounts.get(name, 0) for name in self.names[len(_FIXED) :])
