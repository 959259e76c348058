"""The next gang of each queue while idle capacity is shared.

By priority; then by how far along gangs are (first those that lack something they need, then those
that have just that, then those with more; or those with the least beyond their minimum); then by
submit time and name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush

import msgspec

from bough.core.cycle.claim import Claim
from bough.core.cycle.contest import Contender, Order
from bough.core.cycle.gates import is_strict
from bough.core.cycle.offers import wants_of, wants_of_shape
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.gang.demand import first_choice, growth
from bough.core.gang.release import surplus_counts
from bough.core.gang.tree import counts_of as pods_in
from bough.model.quota import FlavorResource

#: Before every priority.
FIRST = -(2**63)


class Turn(msgspec.Struct, frozen=True, gc=False):
    """A gang in line; with the others of its shape, where they come after it."""

    claim: Claim
    kind: list[Claim] | None = None
    position: int = 0


class IdleLines:
    """One line for each queue. A gang that is still to grow comes back to it."""

    def __init__(self, copy: WorkingCopy, advance: Callable[[WorkingCopy, Claim], int]) -> None:
        self._copy = copy
        #: How far along a gang is: of one priority, the smaller comes first.
        self._advance = advance
        #: What stands in line; whether others were told to end for it.
        self._lines: dict[str, list[tuple[Order, Turn, bool]]] = {}
        self._requests: dict[str, dict[FlavorResource, int]] = {}
        #: By queue: for how many gangs in its line others were told to end.
        self._nominated: Counter[str] = Counter()

    @property
    def queues(self) -> list[str]:
        """The queues that have a line, by name."""
        return sorted(self._lines)

    def enter(self, turn: Turn) -> None:
        """Stand in line."""
        copy, claim = self._copy, turn.claim
        standing = claim.standing
        nominated = self._is_promised(claim)
        # Newer ones of its priority may have been told to end so that it can grow: it stands as one
        # that lacks something, or they would come back before it, and end again, for ever.
        freed = nominated and not copy.has_changed(claim)
        advance = 0 if freed else self._advance(copy, claim)
        name = f"{standing.uid}\0{standing.name}"
        priority = standing.negative_priority
        if nominated and copy.rules.preemptible_takes_victims:
            # Its victims may rank above it in its own queue: they would come back before it, and
            # end again, for ever. A strict line stays as it is.
            strict = claim.leaf is not None and is_strict(claim.leaf)
            priority = priority if strict else FIRST
        order = (priority, advance, standing.since_ms, name)
        heappush(self._lines.setdefault(claim.queue, []), (order, turn, nominated))
        if nominated:
            self._nominated[claim.queue] += 1

    def leave(self, queue: str) -> Turn:
        """The first in line is served."""
        _, turn, nominated = heappop(self._lines[queue])
        if nominated:
            self._nominated[queue] -= 1
        self._requests.pop(turn.claim.name, None)
        return turn

    def head(self, queue: str) -> Contender | None:
        """What the first in line wants; `None` where the line is empty."""
        line = self._lines[queue]
        if not line:
            return None
        order, turn, _ = line[0]
        name = turn.claim.name
        if name not in self._requests:
            self._requests[name] = self._request(turn.claim)
        return Contender(
            order, self._requests[name], bool(self._nominated and self._nominated[queue]), queue
        )

    def _is_promised(self, claim: Claim) -> bool:
        """Whether others were told to end for it, and it has not got all that yet.

        What it wants beyond that, it wants as all others do.
        """
        copy = self._copy
        known = copy.progress(claim.name)
        if not known.nominated or not copy.has_changed(claim):
            return known.nominated
        waiting = claim.tree.waiting(copy.held(claim))
        places = (claim.tree.places[name] for name in known.places if name in claim.tree.places)
        return any(waiting[leaf] >> bit & 1 for leaf, bit in places)

    def _request(self, claim: Claim) -> dict[FlavorResource, int]:
        if claim.counted:
            return {} if claim.leaf is None else claim.leaf.first_choice(claim.gang)
        copy = self._copy
        wants = wants_of_shape(copy, claim)
        if wants.offers:
            offer = wants.offers[0]
            if copy.dominant is None:
                return offer.request
            return copy.dominant.amounts(claim.queue, first_choice(offer.demand), offer.choice)
        unit = next(growth(claim.tree, copy.held(claim)), None)
        if unit is None:
            return {}
        pods = first_choice(unit.demand)
        if copy.dominant is None:
            return copy.costs[claim.queue].total(pods, 0)
        return copy.dominant.amounts(claim.queue, pods, 0)


def lack(copy: WorkingCopy, claim: Claim) -> int:
    """0: it lacks something that it needs; 1: it has just that; 2: it has more."""
    if claim.counted or not (claim.running or copy.has_changed(claim)):
        return 0
    if not wants_of(copy, claim).satisfied:
        return 0
    return 2 if surplus(copy, claim) else 1


def surplus(copy: WorkingCopy, claim: Claim) -> int:
    """How many pods it has beyond its minimum."""
    return sum(surplus_counts(claim.tree, pods_in(copy.held(claim))))
