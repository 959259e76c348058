"""How the constraints of a demand relate: what need not be tried, and what is proof."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self

from bough.core.place.domains import Domains, ResolvedConstraint
from bough.core.place.parts import Part, Zone
from bough.core.place.shapes import Shape


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
