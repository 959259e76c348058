"""Puts the contents of a bundle onto nodes: in the given order, then the largest pods first.

Where one preferred domain was not enough, as few of them as possible are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from bough.core.place.choice import Chooser, Spot
from bough.core.place.index import Index
from bough.core.place.options import Spread
from bough.core.place.parts import Run
from bough.core.place.pod_bundles import PodBundle, Wanted, contents
from bough.core.place.shapes import Shape

#: How many domains are tried for pods of several shapes before these are placed apart.
_TRIALS = 4


class Taken(msgspec.Struct, frozen=True, gc=False):
    """Where the first pods of a run go."""

    run: Run
    spots: tuple[Spot, ...]


class Filler:
    """Fills bundles in one index."""

    def __init__(self, index: Index, chooser: Chooser, *, later: bool) -> None:
        self._index = index
        self._chooser = chooser
        self._later = later

    def fill(
        self, bundle: PodBundle | None, within: int, spread: Spread | None
    ) -> tuple[Taken, ...] | None:
        """Place everything; or change nothing, and return `None`."""
        if bundle is None:
            return ()
        shape = bundle.shape
        if shape is not None and not self._index.has_room(shape, within, bundle.pods):
            return None
        mark = self._index.log.mark()
        for wanted in _orders(contents(bundle)):
            for thrift in (None,) if spread is None else (spread, None):
                pouring = _Pouring(wanted)
                if thrift is None:
                    self._pour(pouring, within)
                else:
                    self._pour_closely(pouring, within, thrift)
                if not pouring.left:
                    return pouring.taken()
                self._index.log.undo(mark)
        return None

    def _pour(self, pouring: _Pouring, within: int) -> None:
        """Place as much as fits."""
        for number, missing in tuple(pouring.left.items()):
            shape = pouring.wanted[number].run.shape
            pouring.add(number, self._chooser.fill(shape, within, missing, later=self._later))

    def _pour_closely(self, pouring: _Pouring, within: int, spread: Spread) -> None:
        """Fill domain after domain, as few as possible; nodes outside of the topology come last."""
        rooms = _Rooms(self._index, later=self._later)
        # From the last to the first, which is how equal ones are ranked in the recorded cases.
        masks = (mask & within for mask in reversed(spread.domains.levels[spread.level].masks))
        domains = [mask for mask in masks if mask]
        used = spread.near if self._index.policy.near_running else 0
        while pouring.left and domains:
            best = self._next(pouring, domains, rooms, _around(spread, used))
            domains.remove(best)
            self._pour(pouring, best)
            used |= best
        if pouring.left:
            self._pour(pouring, within & ~spread.domains.inside)

    def _next(
        self, pouring: _Pouring, domains: list[int], rooms: _Rooms, around: tuple[int, ...]
    ) -> int:
        """The domain where the part has pods; or the tightest for what is left; or the roomiest.

        Of equal ones the nearest: `around` holds the domains in use, the finest level first.
        """
        shape, missing = pouring.largest()

        def distance(mask: int) -> int:
            return next((at for at, nodes in enumerate(around) if mask & nodes), len(around))

        domains = [
            mask for mask in domains if not distance(mask) and rooms.of(shape, mask)
        ] or sorted(domains, key=distance)
        whole = [mask for mask in domains if rooms.of(shape, mask) >= missing]
        whole.sort(key=lambda mask: rooms.of(shape, mask))
        if whole and len(pouring.left) == 1:
            return whole[0]
        for mask in whole[:_TRIALS]:
            if self._holds(pouring, mask):
                return mask
        return max(domains, key=lambda mask: rooms.of(shape, mask))

    def _holds(self, pouring: _Pouring, nodes: int) -> bool:
        """Whether all that is left fits there."""
        mark = self._index.log.mark()
        trial = _Pouring(
            [Wanted(pouring.wanted[number].run, pods) for number, pods in pouring.left.items()]
        )
        self._pour(trial, nodes)
        self._index.log.undo(mark)
        return not trial.left


class _Pouring:
    """What is being placed: how many are left of each, and where the others went."""

    def __init__(self, wanted: Sequence[Wanted]) -> None:
        self.wanted = wanted
        self.left = {number: want.pods for number, want in enumerate(wanted) if want.pods}
        self._spots: list[list[Spot]] = [[] for _ in wanted]

    def add(self, number: int, spots: list[Spot]) -> None:
        """Some pods have a place."""
        self._spots[number].extend(spots)
        left = self.left[number] - sum(spot.pods for spot in spots)
        if left:
            self.left[number] = left
        else:
            del self.left[number]

    def largest(self) -> tuple[Shape, int]:
        """The largest shape of which something is left, and how many pods of it."""
        number = max(self.left, key=lambda at: self.wanted[at].run.shape.request)
        shape = self.wanted[number].run.shape
        alike = (at for at in self.left if self.wanted[at].run.shape is shape)
        return shape, sum(self.left[at] for at in alike)

    def taken(self) -> tuple[Taken, ...]:
        """Where everything went."""
        pairs = zip(self.wanted, self._spots, strict=True)
        return tuple(Taken(want.run, tuple(spots)) for want, spots in pairs)


class _Rooms:
    """How many pods of a shape fit into sets of nodes, as long as nothing is taken there."""

    def __init__(self, index: Index, *, later: bool) -> None:
        self._index = index
        self._later = later
        self._rooms: dict[tuple[Shape, int], int] = {}

    def of(self, shape: Shape, nodes: int) -> int:
        """How many pods of a shape fit there."""
        room = self._rooms.get((shape, nodes))
        if room is None:
            room = self._index.count(shape, nodes, later=self._later)
            self._rooms[shape, nodes] = room
        return room


def _around(spread: Spread, used: int) -> tuple[int, ...]:
    """The domains that are in use, from the preferred level outwards."""
    levels = spread.domains.levels[spread.level :: -1]
    return tuple(level.holding(used) for level in levels) if used else ()


def _orders(wanted: list[Wanted]) -> Iterator[list[Wanted]]:
    """As given; then, where that makes a difference, the largest pods first."""
    yield wanted
    if len({want.run.shape for want in wanted}) > 1:
        decreasing = sorted(wanted, key=lambda want: want.run.shape.request, reverse=True)
        if decreasing != wanted:
            yield decreasing
