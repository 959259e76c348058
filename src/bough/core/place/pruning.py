"""What a search for places need not try, and when it is not worth continuing.

`Layout` says what is true of the constraints of a demand, and so what is proof; `Kinds`, which
nodes and domains are alike for it: where one did not fit, neither do the others. `hopeful` compares
what is missing, at the very least, with what is free, and never gives up what could be placed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple, Self

from bough.core.place.demand_parts import Part, Zone
from bough.core.place.domains import Domains, ResolvedConstraint
from bough.core.place.node_bits import positions
from bough.core.place.node_index import Index
from bough.core.place.pod_bundles import PodBundle
from bough.core.place.pod_shapes import Shape


class Layout(NamedTuple):
    """What is true of the constraints of a demand."""

    shapes: tuple[Shape, ...]
    #: The topologies that are named, each once.
    topologies: tuple[Domains, ...]
    #: Domains with equal nodes are equally good: there is one level, and no preference.
    flat: bool
    #: Only numbers of pods matter, not which nodes they take: a greedy search misses nothing.
    countable: bool

    @classmethod
    def of(cls, root: Part) -> Self:
        """Look at a whole demand."""
        shapes: dict[Shape, None] = {}
        scopes: list[ResolvedConstraint] = []
        nested = pinned = False
        for part, above in _parts(root):
            shapes.update((run.shape, None) for run in part.runs)
            zones = _zones(part)
            scopes += [zone.scope for zone in zones]
            pinned = pinned or any(zone.pin is not None for zone in zones)
            own = _requirements(zones)
            nested = nested or (own > 0 and above + own > 1)
        required = {(scope.domains.name, scope.required) for scope in scopes}
        one_level = len(required) <= 1 and not nested
        free = all(scope.required is None for scope in scopes)
        preferences = any(scope.preferred is not None for scope in scopes)
        return cls(
            shapes=tuple(shapes),
            topologies=tuple({scope.domains.name: scope.domains for scope in scopes}.values()),
            flat=one_level and not pinned and not preferences,
            countable=len(shapes) == 1 and (one_level or free),
        )


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


def hopeful(
    index: Index, part: Part, first: int, missing: int, nodes: int, bundle: PodBundle | None
) -> bool:
    """Whether so many of the children from `first` on may fit, beside what is in the bundle."""
    left = part.children[first:]
    if len(left) < missing:
        return False
    if first and (len(left) == missing or part.uniform):
        # Nothing has changed since the first one was chosen.
        return True
    smallest = sorted(child.least.gpus for child in left)[:missing]
    gpus = sum(smallest) + (bundle.gpus if bundle else 0)
    if gpus > free_gpus(index, nodes, gpus):
        return False
    return _fits_by_count(index, part, first, missing, nodes, bundle) and (
        first > 0 or _fits_by_domains(index, part, missing, nodes)
    )


def free_gpus(index: Index, nodes: int, enough: int) -> int:
    """How many GPUs are free on some nodes; stops counting at `enough`."""
    free = 0
    for gpus in range(len(index.by_gpus) - 1, 0, -1):
        free += gpus * (index.by_gpus[gpus] & nodes).bit_count()
        if free >= enough:
            break
    return free


def _parts(root: Part) -> Iterator[tuple[Part, int]]:
    """Every part, and how many requirements stand above it."""
    waiting = [(root, 0)]
    while waiting:
        part, above = waiting.pop()
        yield part, above
        inside = above + _requirements(_zones(part))
        waiting.extend((child, inside) for child in part.children)


def _zones(part: Part) -> list[Zone]:
    zones = [part.zone] if part.zone else []
    return zones + [group.zone for group in part.sets]


def _requirements(zones: list[Zone]) -> int:
    return sum(1 for zone in zones if zone.scope.required is not None)


def _fits_by_count(
    index: Index, part: Part, first: int, missing: int, nodes: int, bundle: PodBundle | None
) -> bool:
    """Pods of one shape can be counted."""
    left = part.children[first:]
    shape = left[0].least.shape
    if shape is None or any(child.least.shape is not shape for child in left):
        return True
    pods = sum(sorted(child.least.pods for child in left)[:missing])
    if bundle is not None and bundle.shape is shape:
        pods += bundle.pods
    return index.has_room(shape, nodes, pods)


def _fits_by_domains(index: Index, part: Part, missing: int, nodes: int) -> bool:
    """Replicas of one shape that each need a domain: count how many each domain holds."""
    zone = part.children[0].zone
    if zone is None or zone.scope.required is None or zone.least.shape is None:
        return True
    shape = zone.least.shape
    smallest = zone.least.pods
    for child in part.children:
        other = child.zone
        if other is None or other.scope != zone.scope or other.least.shape is not shape:
            return True
        smallest = min(smallest, other.least.pods)
    if not shape.gpus or not smallest:
        return True
    found = 0
    for mask in zone.scope.domains.levels[zone.scope.required].masks:
        found += index.room(shape, mask & nodes, missing * smallest) // smallest
        if found >= missing:
            return True
    return False
