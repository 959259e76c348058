"""Who stands where in the line of each queue.

By priority; then by how far they are (what lacks something it needs, before what has just that,
before what has more; or who has least beyond its minimum); then by submit time and name. Must not
know whose turn it is between queues.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from bough.core.cycle.gangs.claim import Claim
from bough.core.cycle.gangs.contest import Contender, Order
from bough.core.cycle.gangs.wants import wants_of
from bough.core.cycle.gangs.world import World
from bough.core.gang.demand import first_choice, growth
from bough.core.gang.release import surplus_counts
from bough.core.gang.tree import counts_of
from bough.model.quota import FlavorResource


class Lines:
    """One line for each queue. A gang that is still to grow comes back to it."""

    def __init__(self, world: World, advance: Callable[[World, Claim], int]) -> None:
        self._world = world
        #: How far a gang is: of one priority, the smaller comes first.
        self._advance = advance
        self._lines: dict[str, list[tuple[Order, Claim]]] = {}
        self._requests: dict[str, dict[FlavorResource, int]] = {}

    @property
    def queues(self) -> list[str]:
        """The queues that have a line, by name."""
        return sorted(self._lines)

    def enter(self, claim: Claim) -> bool:
        """Stand in line, if the queue has one."""
        if not self._world.takes_gangs(claim.queue):
            return False
        negated, submitted, name = claim.line
        order = (negated, self._advance(self._world, claim), submitted, name)
        heappush(self._lines.setdefault(claim.queue, []), (order, claim))
        return True

    def leave(self, queue: str) -> Claim:
        """The first in line is served."""
        claim = heappop(self._lines[queue])[1]
        self._requests.pop(claim.name, None)
        return claim

    def head(self, queue: str) -> Contender | None:
        """What the first in line wants; `None` where nobody stands in it."""
        line = self._lines[queue]
        if not line:
            return None
        order, claim = line[0]
        if claim.name not in self._requests:
            self._requests[claim.name] = self._request(claim)
        return Contender(order, self._requests[claim.name])

    def _request(self, claim: Claim) -> dict[FlavorResource, int]:
        wants = wants_of(self._world, claim)
        if wants.offers:
            return wants.offers[0].request
        unit = next(growth(claim.tree, self._world.held(claim)), None)
        if unit is None:
            return {}
        return self._world.tariffs[claim.queue].total(first_choice(unit.demand), 0)


def standing(world: World, claim: Claim) -> int:
    """0: it lacks something that it needs; 1: it has just that; 2: it has more."""
    if not wants_of(world, claim).satisfied:
        return 0
    return 2 if surplus(world, claim) else 1


def surplus(world: World, claim: Claim) -> int:
    """How many pods it has beyond its minimum."""
    return sum(surplus_counts(claim.tree, counts_of(world.held(claim))))
