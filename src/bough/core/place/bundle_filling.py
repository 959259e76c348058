"""Puts the contents of a bundle onto nodes: in the given order, then the largest pods first.

Where one preferred domain was not enough, as few of them as possible are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from bough.core.place.demand_parts import Run
from bough.core.place.domain_options import Spread, roomiest_first
from bough.core.place.near_domains import Neighbours
from bough.core.place.node_choice import Chooser, Spot
from bough.core.place.node_index import Index
from bough.core.place.pod_bundles import PodBundle, Wanted, contents
from bough.core.place.pod_shapes import Shape

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
        """Fill domain after domain; nodes outside of the topology come last."""
        if self._index.policy.roomiest_first:
            self._pour_in_turn(pouring, within, spread)
        else:
            self._pour_thriftily(pouring, within, spread)
        if pouring.left:
            self._pour(pouring, within & ~spread.domains.inside)

    def _pour_in_turn(self, pouring: _Pouring, within: int, spread: Spread) -> None:
        """Fill the roomiest domain, then the next."""
        masks = spread.domains.levels[spread.level].masks
        for domain in roomiest_first(spread):
            if not pouring.left:
                return
            self._pour(pouring, masks[domain] & within)

    def _pour_thriftily(self, pouring: _Pouring, within: int, spread: Spread) -> None:
        """Use as few domains as possible."""
        near = spread.near if self._index.policy.near_running else 0
        domains = Neighbours(spread, within, near)
        rooms: dict[Shape, _Room] = {}
        while pouring.left and domains.distance:
            shape, missing = pouring.largest()
            room = rooms.get(shape)
            if room is None:
                room = rooms[shape] = _Room(partial(self._count, shape, domains))
            best = self._next(pouring, domains, room, missing)
            domains.use(best)
            self._pour(pouring, domains.nodes[best])

    def _count(self, shape: Shape, domains: Neighbours, domain: int) -> int:
        return self._index.count(shape, domains.nodes[domain], later=self._later)

    def _next(self, pouring: _Pouring, domains: Neighbours, room: _Room, missing: int) -> int:
        """The domain where the part has pods; or the tightest for what is left; or the roomiest.

        Of equal ones the nearest; `room` is for the `missing` pods of the largest shape.
        """
        distance = domains.distance
        wanted = [each for each, far in distance.items() if not far and room[each]]
        wanted = wanted or sorted(distance, key=distance.__getitem__)
        whole = [each for each in wanted if room[each] >= missing]
        whole.sort(key=room.__getitem__)
        if whole and len(pouring.left) == 1:
            return whole[0]
        for each in whole[:_TRIALS]:
            if self._holds(pouring, domains.nodes[each]):
                return each
        return max(wanted, key=room.__getitem__)

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


class _Room(dict[int, int]):
    """How many pods of a shape fit into each domain, as long as nothing is taken there."""

    def __init__(self, count: Callable[[int], int]) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, domain: int) -> int:
        """Count it when it is first asked for."""
        room = self[domain] = self._count(domain)
        return room


def _orders(wanted: list[Wanted]) -> Iterator[list[Wanted]]:
    """As given; then, where that makes a difference, the largest pods first."""
    yield wanted
    if len({want.run.shape for want in wanted}) > 1:
        decreasing = sorted(wanted, key=lambda want: want.run.shape.request, reverse=True)
        if decreasing != wanted:
            yield decreasing
