"""Which GPU of a node which attempt has. Must not know what an attempt is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class GpuSlots:
    """The GPUs of all nodes, by number; each is given to one holder at a time."""

    def __init__(self, numbers: Mapping[str, tuple[int, ...]]) -> None:
        self._numbers = dict(numbers)
        self._holders: dict[tuple[str, int], str] = {}

    def take(self, node: str, count: int, holder: str) -> tuple[int, ...] | None:
        """The lowest free ones; `None`: there are not so many."""
        free = [each for each in self._numbers.get(node, ()) if (node, each) not in self._holders]
        if len(free) < count:
            return None
        self.hold(node, free[:count], holder)
        return tuple(free[:count])

    def hold(self, node: str, numbers: Iterable[int], holder: str) -> None:
        """Have it that a holder has these already."""
        for each in numbers:
            self._holders[node, each] = holder

    def free(self, node: str, numbers: Iterable[int], holder: str) -> None:
        """Take back what a holder has, if it does."""
        for each in numbers:
            if self._holders.get((node, each)) == holder:
                del self._holders[node, each]

    def has(self, node: str) -> bool:
        """Whether there is such a node."""
        return node in self._numbers
