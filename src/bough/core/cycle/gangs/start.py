"""Serve one gang: let it start, free room for it, or say why it waits.

The gates come in this order: its queue, its pods, those before it, its quota, a place. Only what is
guaranteed has victims taken for it. Must not know in what order gangs are served.
"""

from __future__ import annotations

from bough.core.cycle.gangs.claim import Claim
from bough.core.cycle.gangs.outcome import Outcome
from bough.core.cycle.gangs.reasons import (
    wait_behind,
    wait_for_place,
    wait_for_pods,
    wait_for_queue,
    wait_for_quota,
)
from bough.core.cycle.gangs.taking import Taking
from bough.core.cycle.gangs.wants import Offer, wants_of
from bough.core.cycle.gangs.world import World
from bough.core.place.result import Placement
from bough.model.quota import FlavorResource
from bough.model.reason import Refusal


class Server:
    """Serves gangs one after the other, and remembers who must not be passed."""

    def __init__(self, world: World, outcome: Outcome) -> None:
        self.world = world
        self.outcome = outcome
        #: By queue and rank: who waits for quota, and is not passed.
        self._heads: dict[tuple[str, bool], Claim] = {}
        #: Gangs with a guarantee that only lack a place, with what they want most.
        self.unplaced: dict[str, Offer] = {}

    def serve(self, claim: Claim) -> bool:
        """Whether the gang has got what it needs, now or once room is free."""
        if claim.name in self.outcome.evicted:
            return False
        if not self.world.takes_gangs(claim.queue):
            self.outcome.wait(wait_for_queue(self.world, claim))
            return False
        wants = wants_of(self.world, claim)
        if wants.satisfied:
            return True
        if not wants.offers:
            self.outcome.wait(wait_for_pods(claim))
            return False
        head = self._heads.get((claim.queue, claim.gang.preemptible))
        # Who runs, and must only be completed, passes nobody: it is there already.
        if head is not None and head.line < claim.line and not claim.running:
            self.outcome.wait(wait_behind(claim, head))
            return False
        return self._try(claim, wants.offers)

    def is_hopeless(self, claim: Claim) -> bool:
        """Whether it cannot start in this cycle, even if it were the first to be served."""
        if self._takes_victims(claim) or not self.world.takes_gangs(claim.queue):
            return False
        wants = wants_of(self.world, claim)
        return not wants.satisfied and not any(
            self._admits(claim, offer.request) for offer in wants.offers
        )

    def _try(self, claim: Claim, offers: tuple[Offer, ...]) -> bool:
        refusals: list[Refusal] = []
        entitled: list[Offer] = []
        #: What has quota, or would have it without those that may be evicted, but no place.
        placeless: list[Offer] = []
        for offer in offers:
            refusal = self._refusal(claim, offer.request)
            if refusal is not None:
                refusals.append(refusal)
            elif self._place(claim, offer):
                return True
            else:
                placeless.append(offer)
            if refusal is None or self._may_take(claim, offer):
                entitled.append(offer)
        for offer in entitled if self._takes_victims(claim) else ():
            taking = Taking(self.world, claim, offer, self.outcome)
            if self._free_room(claim, offer, taking):
                return True
            if taking.found_quota:
                placeless.append(offer)
        self._wait(claim, offers, entitled, placeless, refusals)
        return False

    def _wait(
        self,
        claim: Claim,
        offers: tuple[Offer, ...],
        entitled: list[Offer],
        placeless: list[Offer],
        refusals: list[Refusal],
    ) -> None:
        """Say why it waits, and keep its turn.

        Who lacks only a place may be passed, if that is kept; who waits for quota may not, unless
        no node is large enough for it: whatever quota it had, all others would wait in vain.
        """
        first = not placeless and self._is_head(claim, refusals)
        if first and not self._has_nodes(claim, offers):
            self.outcome.wait(wait_for_place(claim, offers[0].demand, None))
            return
        if len(refusals) < len(offers):
            self.outcome.wait(wait_for_place(claim, placeless[0].demand, None))
        elif entitled:
            self.outcome.wait(wait_for_place(claim, entitled[0].demand, refusals[0]))
        else:
            self.outcome.wait(wait_for_quota(self.world, claim, refusals))
        if first:
            self._heads[claim.queue, claim.gang.preemptible] = claim
        elif placeless and not claim.gang.preemptible:
            self.unplaced[claim.name] = placeless[0]

    def _refusal(self, claim: Claim, request: dict[FlavorResource, int]) -> Refusal | None:
        guaranteed = not claim.gang.preemptible
        return self.world.ledgers.refusal(claim.queue, request, guaranteed=guaranteed)

    def _admits(self, claim: Claim, request: dict[FlavorResource, int]) -> bool:
        guaranteed = not claim.gang.preemptible
        return self.world.ledgers.admits(claim.queue, request, guaranteed=guaranteed)

    def _takes_victims(self, claim: Claim) -> bool:
        return not claim.gang.preemptible or self.world.rules.preemptible_takes_victims

    def _may_take(self, claim: Claim, offer: Offer) -> bool:
        """Whether all that stands against it is what others use, and might have to give back."""
        if claim.gang.preemptible:
            return self.world.rules.preemptible_takes_victims
        return self.world.ledgers.guaranteed.admits(claim.queue, offer.request)

    def _has_nodes(self, claim: Claim, offers: tuple[Offer, ...]) -> bool:
        """Whether the nodes are large enough for its pods."""
        found = None if self.world.has_changed(claim) else claim.has_nodes
        if found is None:
            placer = self.world.placer
            found = any(placer.could_take(offer.demand, offer.nodes) for offer in offers)
            if not self.world.has_changed(claim):
                claim.has_nodes = found
        return found

    def _is_head(self, claim: Claim, refusals: list[Refusal]) -> bool:
        """Whether it waits for quota that it will have one day; who is behind it waits, too."""
        if not self.world.rules.strict_within_rank:
            return False
        if claim.gang.preemptible:
            # Where the tree as a whole is full, idle parts of it go to whoever can borrow them.
            tree = self.world.ledgers.total
            for refusal in refusals:
                if refusal.node is not None and tree.parent(refusal.node) is None:
                    return False
        return not all(refusal.never for refusal in refusals)

    def _place(self, claim: Claim, offer: Offer, *, waits: bool = False) -> bool:
        """Start a gang on what is free, or being freed; `waits`: when others have ended."""
        world = self.world
        mark = world.mark()
        waits = waits or world.ledgers.must_wait(claim.queue, offer.request)
        found = world.placer.place(
            claim.tree,
            offer.demand,
            world.held(claim),
            later=True,
            within=offer.nodes,
            waits=waits,
        )
        if not isinstance(found, Placement):
            world.undo(mark)
            return False
        request = self._request(claim, found, offer)
        too_early = not found.waits and world.ledgers.must_wait(claim.queue, request)
        if too_early or not self._admits(claim, request):
            world.undo(mark)
            return too_early and self._place(claim, offer, waits=True)
        world.start(claim, found, request, guaranteed=not claim.gang.preemptible)
        world.keep(mark)
        self.outcome.bind(world, claim, found, growth=False)
        return True

    def _request(
        self, claim: Claim, placement: Placement, offer: Offer
    ) -> dict[FlavorResource, int]:
        """What the pods that were really chosen count; candidates may differ in size."""
        placed = {*placement.pods}
        pods = [pod for leaf in claim.tree.leaves for pod in leaf.pods if pod.name in placed]
        return self.world.tariffs[claim.queue].total(pods, offer.choice)

    def _free_room(self, claim: Claim, offer: Offer, taking: Taking) -> bool:
        """Take what is needed from others, and nothing that is not."""
        world = self.world
        mark = world.mark()
        victims = taking.search()
        if victims:
            taking.settle(victims)
            if self._place(claim, offer, waits=True):
                world.keep(mark)
                self.outcome.evict(claim, victims)
                return True
        world.undo(mark)
        return False
