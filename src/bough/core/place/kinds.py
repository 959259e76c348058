"""Nodes and domains that are alike for a demand: where one did not fit, neither do the others."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from bough.core.place.bits import positions
from bough.core.place.index import Index
from bough.core.place.layout import Layout
from bough.core.place.shapes import Shape


class Kinds:
    """Tells nodes apart as far as one demand can."""

    def __init__(self, index: Index, layout: Layout) -> None:
        self._index = index
        self._layout = layout
        self._rules: dict[int, tuple[bool, ...]] = {}
        self._places: dict[int, tuple[int, ...]] = {}

    def different(self, shape: Shape, nodes: int, first: int, *, later: bool) -> Iterator[int]:
        """The nodes from `first` on that fit, one of each kind."""
        index = self._index
        tried: set[Hashable] = set()
        candidates = index.with_gpus(shape.gpus) & index.may_fit(shape, nodes, later=later)
        for at in positions(candidates >> first << first):
            if not index.fits(at, shape, later=later):
                index.unfit(shape, 1 << at, later=later)
                continue
            kind = (index.idle[at], index.later[at], self._rules_of(at), self._places_of(at))
            if kind not in tried:
                tried.add(kind)
                yield at

    def of_domain(self, nodes: int) -> Hashable:
        """Equal for sets of nodes that differ in nothing but names."""
        index = self._index
        return tuple(
            sorted((index.idle[at], index.later[at], self._rules_of(at)) for at in positions(nodes))
        )

    def _rules_of(self, at: int) -> tuple[bool, ...]:
        """Which shapes of the demand may use a node."""
        found = self._rules.get(at)
        if found is None:
            found = tuple(bool(shape.possible >> at & 1) for shape in self._layout.shapes)
            self._rules[at] = found
        return found

    def _places_of(self, at: int) -> tuple[int, ...]:
        """The domains of a node."""
        found = self._places.get(at)
        if found is None:
            found = tuple(
                level.of_node[at] for domains in self._layout.topologies for level in domains.levels
            )
            self._places[at] = found
        return found
