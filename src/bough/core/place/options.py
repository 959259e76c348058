"""Which domains are tried for a constraint, and in which order.

From the preferred level outwards to the required one, or to everything where nothing is required;
within a level the tightest first, so that large holes stay. A domain which cannot hold what is
needed at the very least is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import NamedTuple

from bough.core.place.bits import positions
from bough.core.place.columns import CPU, GPUS
from bough.core.place.domains import OUTSIDE, Domains
from bough.core.place.index import Index
from bough.core.place.parts import Least, Zone


class Spread(NamedTuple):
    """Pods did not fit into one preferred domain: as few of them as possible, then."""

    domains: Domains
    #: The preferred level.
    level: int
    #: Nodes that hold pods of the same part already.
    near: int


class Option(NamedTuple):
    """A set of nodes to try."""

    nodes: int
    #: The level of the domain; `None`: it is none.
    level: int | None = None
    spread: Spread | None = None


def options(index: Index, zone: Zone, within: int) -> Iterator[Option]:
    """Every set of nodes that may satisfy a constraint, the best first."""
    domains, required, preferred = zone.scope
    if zone.pin is not None:
        within &= zone.pin
    widest = 0 if required is None else required
    finest = widest if preferred is None else preferred
    for level in range(finest, widest - 1, -1):
        spread = None
        if preferred is not None and level < preferred:
            spread = Spread(domains, preferred, zone.near)
        for nodes in _by_tightness(index, zone, level, within):
            yield Option(nodes, level, spread)
    if required is None and preferred is not None:
        yield Option(within, None, Spread(domains, preferred, zone.near))


def nearest_first(found: Iterator[Option], spread: Spread, used: int) -> Iterator[Option]:
    """Order equally good sets of nodes so that few preferred domains of what is around are used.

    Those come first in which something is placed already, then those with most room for others.
    """
    level = spread.domains.levels[spread.level]
    around = level.holding(used | spread.near)

    def thrift(option: Option) -> tuple[bool, int]:
        domain = level.of_node[next(positions(option.nodes))]
        free = spread.domains.free(spread.level, GPUS)
        return (not option.nodes & around, 0 if domain == OUTSIDE else -free[domain])

    for _, alike in groupby(found, key=lambda option: option.level):
        yield from sorted(alike, key=thrift)


def required_options(index: Index, zone: Zone, within: int) -> Iterator[Option]:
    """The same without preferences: what is allowed at all."""
    if zone.scope.required is None:
        yield Option(within)
        return
    if zone.pin is not None:
        within &= zone.pin
    for nodes in _by_tightness(index, zone, zone.scope.required, within):
        yield Option(nodes, zone.scope.required)


def can_hold(index: Index, least: Least, nodes: int) -> bool:
    """Whether nodes may hold what is needed at the very least; never refuses what they can."""
    return least.shape is None or index.has_room(least.shape, nodes, least.pods)


def _by_tightness(index: Index, zone: Zone, level: int, within: int) -> Iterator[int]:
    """The domains of a level that may hold the part, those with the least free room first.

    The wider domains around them count first, so that these are filled one after the other, too.
    Before all others come those in which the part has pods already.
    """
    domains = zone.scope.domains
    near: list[int] = []
    if zone.near and index.policy.near_running:
        of_node = domains.levels[level].of_node
        near = sorted({of_node[at] for at in positions(zone.near)} - {OUTSIDE})
        free = domains.free(level, _column(zone))
        near.sort(key=lambda domain: free[domain])
    others = _tightest(zone, level, 0, range(len(domains.levels[0].ids)))
    for domain in chain(near, (each for each in others if each not in near) if near else others):
        nodes = domains.levels[level].masks[domain] & within
        if nodes and can_hold(index, zone.least, nodes):
            yield nodes


def _tightest(zone: Zone, last: int, level: int, numbers: Iterable[int]) -> Iterator[int]:
    """The domains of the last level below some of this one, sorted only as far as is looked at.

    What is free is asked for at each step: between two steps much may have been tried and undone.
    """
    domains = zone.scope.domains
    free = domains.free(level, _column(zone))
    wanted = zone.least.gpus or zone.least.cpu_milli
    for _, number in sorted((free[each], each) for each in numbers if free[each] >= wanted):
        if level == last:
            yield number
        else:
            yield from _tightest(zone, last, level + 1, domains.below[level][number])


def _column(zone: Zone) -> int:
    return GPUS if zone.least.gpus else CPU
