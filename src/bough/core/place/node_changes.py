"""What happened to the nodes, for readers that keep something derived from them.

Readers remember how far they have read. Both histories are bounded: a reader that comes too late is
told so, and starts again.
"""

from __future__ import annotations

#: How many events are kept at most.
MAXIMUM_RETURNS = 8192
MAXIMUM_CHANGES = 65536


class Returns:
    """Which nodes were given something back, and since when.

    Events are kept as masks, and so are the unions of 2, 4, 8, ... neighbouring events. All that
    came back since some event is the union of a few masks, however many events there were.
    """

    __slots__ = ("_levels", "count", "era")

    def __init__(self) -> None:
        self._levels: list[list[int]] = [[]]
        #: How many events there were, in this era: positions of one mean nothing in another.
        self.count = 0
        self.era = 0

    def append(self, mask: int) -> None:
        """Record that something came back to these nodes."""
        if self.count >= MAXIMUM_RETURNS:
            self._levels = [[]]
            self.count = 0
            self.era += 1
        self.count += 1
        for level in self._levels:
            level.append(mask)
            if len(level) % 2:
                return
            mask = level[-2] | level[-1]
        self._levels.append([mask])

    def since(self, position: int) -> int:
        """The nodes of all events of this era from a position on."""
        end = self.count
        union = level = 0
        while position < end:
            while position % (2 << level) == 0 and position + (2 << level) <= end:
                level += 1
            while position + (1 << level) > end:
                level -= 1
            union |= self._levels[level][position >> level]
            position += 1 << level
        return union


class Changes:
    """Which nodes have more or less free than before, in order; a node may come several times."""

    __slots__ = ("_first", "_nodes")

    def __init__(self) -> None:
        self._nodes: list[int] = []
        self._first = 0

    def __len__(self) -> int:
        return self._first + len(self._nodes)

    def append(self, node: int) -> None:
        """Record that something about a node is different."""
        if len(self._nodes) >= MAXIMUM_CHANGES:
            self._first += len(self._nodes)
            self._nodes.clear()
        self._nodes.append(node)

    def since(self, position: int) -> list[int] | None:
        """The nodes that changed from a position on; `None` where that is no longer known."""
        if position < self._first:
            return None
        return self._nodes[position - self._first :]
