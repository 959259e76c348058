"""Optional units of elastic gangs, as long as there is room that nothing needs.

What a gang has beyond its minimum counts as borrowed, whatever the gang's own rank, and is given
back first.
"""

from __future__ import annotations

from bough.core.cycle.claim import Claim
from bough.core.cycle.offers import Offer, first_offers, request_placed
from bough.core.cycle.outcome import Outcome
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.gang.demand import growth
from bough.core.place.result import Placement


class Grower:
    """Lets gangs grow; remembers what did not fit, as room only shrinks from here on."""

    def __init__(self, copy: WorkingCopy, outcome: Outcome) -> None:
        self.copy = copy
        self._outcome = outcome
        #: By gang: the nodes of its tree that cannot grow.
        self._closed: dict[str, set[int]] = {}

    def grow_once(self, claim: Claim) -> bool:
        """Start one optional unit; whether one fitted."""
        copy = self.copy
        if not copy.rules.allocate:
            return False
        if claim.queue not in copy.costs or claim.name in self._outcome.evicted:
            return False
        closed = self._closed.setdefault(claim.name, set())
        for unit in growth(claim.tree, copy.held(claim), closed):
            if any(self._place(claim, offer) for offer in first_offers(copy, claim, unit.demand)):
                return True
            closed.add(unit.node.position)
        return False

    def _place(self, claim: Claim, offer: Offer) -> bool:
        copy, ledgers = self.copy, self.copy.ledgers
        guaranteed = not (claim.preemptible or copy.rules.growth_borrows)
        if not ledgers.admits(claim.queue, offer.request, guaranteed=guaranteed):
            return False
        mark = copy.mark()
        nominated = claim.name in self._outcome.nominations
        waits = nominated or ledgers.must_wait(claim.queue, offer.request)
        within, demand = offer.nodes, offer.demand
        found = copy.place_again(claim, demand, within=within, waits=waits) or copy.placer.place(
            claim.tree, demand, copy.held(claim), later=True, within=within, waits=waits
        )
        if isinstance(found, Placement):
            request = request_placed(copy, claim, found, offer)
            more = copy.more_guaranteed(claim, found.pods)
            # What was placed may be more than what was asked for.
            fits = request == offer.request or (
                ledgers.admits(claim.queue, request, guaranteed=guaranteed)
                and (found.waits or not ledgers.must_wait(claim.queue, request))
            )
            if fits and ledgers.guaranteed.admits(claim.queue, more):
                ledgers.guaranteed.add_usage(claim.queue, more)
                copy.start(claim, found, request, guaranteed=guaranteed)
                copy.keep(mark)
                self._outcome.bind(copy, claim, found, growth=True)
                return True
        copy.undo(mark)
        return False
