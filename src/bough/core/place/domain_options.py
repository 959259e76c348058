"""Which domains are tried for a constraint, and in which order.

From the preferred level outwards to the required one, or to everything where nothing is required;
within a level the tightest first, so that large holes stay. A domain which cannot hold what is
needed at the very least is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import NamedTuple

from bough.core.place.columns import CPU, GPUS
from bough.core.place.demand_parts import Least, Zone
from bough.core.place.domains import OUTSIDE, Domains
from bough.core.place.node_bits import positions
from bough.core.place.node_index import Index


class Spread(NamedTuple):
    """Pods did not fit into one preferred domain: as few of them as possible, then."""

    domains: Domains
    #: The preferred level.
    level: int
    #: Nodes that hold pods of the same part already.
    near: int
    #: What makes a domain tight.
    column: int = GPUS


class Option(NamedTuple):
    """A set of nodes to try."""

    nodes: int
    #: The level of the domain; `None`: it is none.
    level: int | None = None
    spread: Spread | None = None


def options(index: Index, zone: Zone, within: int) -> Iterator[Option]:
    """Every set of nodes that may satisfy a constraint, the best first."""
    domains, required, preferred = zone.scope
    widest = 0 if required is None else required
    finest = widest if preferred is None else preferred
    around = domains.around(within, finest)
    if around is not None:
        # Wider domains have no other nodes.
        widest = max(widest, around[0])
    if zone.pin is not None:
        within &= zone.pin
    for level in range(finest, widest - 1, -1):
        spread = None
        if preferred is not None and level < preferred:
            spread = spread_of(zone, preferred)
        for nodes in _by_tightness(index, zone, level, within):
            yield Option(nodes, level, spread)
    if required is None and preferred is not None:
        nodes = _everywhere(index, zone, within)
        known = around is not None and not nodes & ~domains.inside
        if not known and can_hold(index, zone.least, nodes):
            yield Option(nodes, None, spread_of(zone, preferred))


def spread_of(zone: Zone, level: int) -> Spread:
    """Pods that fit into no single domain of a level are spread over several."""
    return Spread(zone.scope.domains, level, zone.near, _column(zone))


def roomiest_first(spread: Spread) -> Iterator[int]:
    """The preferred domains, those with the most free room first: `_by_tightness` backwards."""
    domains = spread.domains
    widest = range(len(domains.levels[0].ids))
    ranked = [*_tightest(domains, spread.column, 0, spread.level, 0, widest)]
    yield from reversed(ranked)


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
        yield Option(_everywhere(index, zone, within))
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
    wanted = zone.least.gpus or zone.least.cpu_milli
    widest = range(len(domains.levels[0].ids))
    others = _tightest(domains, _column(zone), wanted, level, 0, widest)
    for domain in chain(near, (each for each in others if each not in near) if near else others):
        nodes = domains.levels[level].masks[domain] & within
        enough = domains.free(level, CPU)[domain] >= zone.least.cpu_milli
        if nodes and enough and can_hold(index, zone.least, nodes):
            yield nodes


def _tightest(
    domains: Domains, column: int, wanted: int, last: int, level: int, numbers: Iterable[int]
) -> Iterator[int]:
    """The domains of the last level below some of this one, sorted only as far as is looked at.

    What is free is asked for at each step: between two steps much may have been tried and undone.
    """
    free = domains.free(level, column)
    for _, number in sorted((free[each], each) for each in numbers if free[each] >= wanted):
        if level == last:
            yield number
        else:
            below = domains.below[level][number]
            yield from _tightest(domains, column, wanted, last, level + 1, below)


def _everywhere(index: Index, zone: Zone, within: int) -> int:
    """All nodes for pods that only prefer a level."""
    return within if index.policy.outside else within & zone.scope.domains.inside


def _column(zone: Zone) -> int:
    return GPUS if zone.least.gpus else CPU
