"""How near the domains of a preferred level are to those that are in use.

Known for each domain that is left, and kept up as more of them are used: what one more brings
nearer is what stands below the wider domains that were in no use before it, each of which is
looked at once.
"""

from __future__ import annotations

from bough.core.place.domain_options import Spread
from bough.core.place.domains import Level


class Neighbours:
    """The domains of a preferred level, by number, and those of them that are left."""

    def __init__(self, spread: Spread, within: int, near: int) -> None:
        #: From the preferred level outwards.
        self._levels = spread.domains.levels[spread.level :: -1]
        self._masks = self._levels[0].masks
        #: Of each that may be used, the nodes; from the last to the first: of equal ones the last
        #: is taken, as with `roomiest_first`.
        self.nodes = {
            at: mask & within
            for at, mask in reversed(tuple(enumerate(self._masks)))
            if mask & within
        }
        #: Of each that is left: how many levels up it is within one domain with what is in use; 0
        #: for all while nothing is.
        self.distance = dict.fromkeys(self.nodes, 0)
        #: By level, the preferred one left out: what is below each of its domains. Looked up when a
        #: second domain is needed.
        self._below: list[dict[int, list[int]]] | None = None
        self._anything_used = bool(near)
        if near:
            around = [level.holding(near) for level in self._levels]
            for at in self.nodes:
                meets = (up for up, nodes in enumerate(around) if nodes & self._masks[at])
                self.distance[at] = next(meets, len(around))

    def use(self, at: int) -> None:
        """A domain is in use now, and left no more."""
        del self.distance[at]
        if not self.distance:
            return
        if not self._anything_used:
            self._anything_used = True
            self.distance = dict.fromkeys(self.distance, len(self._levels))
        if self._below is None:
            self._below = [self._members(level) for level in self._levels[1:]]
        node = _first(self._masks[at])
        for up, (level, below) in enumerate(zip(self._levels[1:], self._below, strict=True), 1):
            members = below.pop(level.of_node[node], None)
            if members is None:
                # What is wider still was in use before.
                return
            for each in members:
                if self.distance.get(each, 0) > up:
                    self.distance[each] = up

    def _members(self, level: Level) -> dict[int, list[int]]:
        members: dict[int, list[int]] = {}
        for at in self.nodes:
            members.setdefault(level.of_node[_first(self._masks[at])], []).append(at)
        return members


def _first(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
