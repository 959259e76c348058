"""Which domains are tried for a constraint, and in which order.

From the preferred level outwards to the required one, or to everything where nothing is required;
within a level the tightest first, so that large holes stay. A domain which cannot hold what is
needed at the very least is left out. Must not know how what is needed is placed inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bough.core.place.columns import CPU, GPUS
from bough.core.place.domains import Domains
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
            yield Option(nodes, spread)
    if required is None and preferred is not None:
        yield Option(within, Spread(domains, preferred, zone.near))


def required_options(index: Index, zone: Zone, within: int) -> Iterator[Option]:
    """The same without preferences: what is allowed at all."""
    if zone.scope.required is None:
        yield Option(within)
        return
    if zone.pin is not None:
        within &= zone.pin
    for nodes in _by_tightness(index, zone, zone.scope.required, within):
        yield Option(nodes)


def can_hold(index: Index, least: Least, nodes: int) -> bool:
    """Whether nodes may hold what is needed at the very least; never refuses what they can."""
    return least.shape is None or index.has_room(least.shape, nodes, least.pods)


def _by_tightness(index: Index, zone: Zone, level: int, within: int) -> Iterator[int]:
    """The domains of a level that may hold the part, those with the least free room first.

    The wider domains around them count first, so that these are filled one after the other, too.
    """
    domains = zone.scope.domains
    column = GPUS if zone.least.gpus else CPU
    wanted = zone.least.gpus or zone.least.cpu_milli
    free = [domains.free(at, column) for at in range(level + 1)]
    masks = domains.levels[level].masks
    near = zone.near if index.policy.near_running else 0
    found: list[tuple[tuple[int, ...], int]] = []
    for domain, room in enumerate(free[level]):
        if room >= wanted:
            far = 0 if near and masks[domain] & near else 1
            found.append(((far, *_tightness(domains, free, level, domain)), domain))
    for _, domain in sorted(found):
        nodes = masks[domain] & within
        if nodes and can_hold(index, zone.least, nodes):
            yield nodes


def _tightness(
    domains: Domains, free: Sequence[Sequence[int]], level: int, domain: int
) -> tuple[int, ...]:
    """How much is free in each domain around this one, from the widest to itself."""
    if level == 0:
        return (free[0][domain],)
    above = domains.above[level][domain]
    return (*_tightness(domains, free, level - 1, above), free[level][domain])
