"""Which attempt has which GPU of a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class GpuSlots:
    """The GPUs of all nodes, by index; each has at most one holder."""

    def __init__(self, numbers: Mapping[str, tuple[int, ...]]) -> None:
        self._numbers = dict(numbers)
        self._holders: dict[tuple[str, int], str] = {}

    def take(self, node: str, count: int, holder: str) -> tuple[int, ...] | None:
        """Take the lowest free ones; `None`: not enough are free."""
        free = [each for each in self._numbers.get(node, ()) if (node, each) not in self._holders]
        if len(free) < count:
            return None
        self.hold(node, free[:count], holder)
        return tuple(free[:count])

    def hold(self, node: str, numbers: Iterable[int], holder: str) -> None:
        """Record that a holder has these already."""
        for each in numbers:
            self._holders[node, each] = holder

    def free(self, node: str, numbers: Iterable[int], holder: str) -> None:
        """Free those of these that a holder has."""
        for each in numbers:
            if self._holders.get((node, each)) == holder:
                del self._holders[node, each]

    def has(self, node: str) -> bool:
        """Whether there is such a node."""
        return node in self._numbers
