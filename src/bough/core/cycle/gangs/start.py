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
from bough.core.cycle.gangs.reclaim import Reclaim, Victim
from bough.core.cycle.gangs.room import Room
from bough.core.cycle.gangs.wants import Offer, wants_of
from bough.core.cycle.gangs.world import World
from bough.core.cycle.victims import search
from bough.core.place.result import Placement
from bough.model.gang import Pod
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
        for offer in offers:
            refusal = self._refusal(claim, offer.request)
            if refusal is None and self._place(claim, offer):
                return True
            if refusal is not None:
                refusals.append(refusal)
            if refusal is None or self._may_take(claim, offer):
                entitled.append(offer)
        if self._takes_victims(claim):
            for offer in entitled:
                if self._free_room(claim, offer):
                    return True
        if len(refusals) < len(offers):
            # Some flavor has quota for it, so that only a place is missing.
            refusals = []
        self._leave(claim, entitled, refusals)
        return False

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

    def _leave(self, claim: Claim, entitled: list[Offer], refusals: list[Refusal]) -> None:
        """Say why a gang waits, and who may not pass it."""
        if entitled:
            if not claim.gang.preemptible and not refusals:
                self.unplaced[claim.name] = entitled[0]
            refusal = refusals[0] if refusals else None
            self.outcome.wait(wait_for_place(claim, entitled[0].demand, refusal))
        else:
            self.outcome.wait(wait_for_quota(self.world, claim, refusals))
        if self.world.rules.strict_within_rank and self._is_head(claim, refusals):
            self._heads[claim.queue, claim.gang.preemptible] = claim

    def _is_head(self, claim: Claim, refusals: list[Refusal]) -> bool:
        """Whether it waits for quota that it will have one day; who is behind it waits, too."""
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
        self.outcome.bind(claim, found, growth=False)
        return True

    def _request(
        self, claim: Claim, placement: Placement, offer: Offer
    ) -> dict[FlavorResource, int]:
        """What the pods that were really chosen count; candidates may differ in size."""
        placed = {*placement.pods}
        pods = [pod for leaf in claim.tree.leaves for pod in leaf.pods if pod.name in placed]
        return self.world.tariffs[claim.queue].total(pods, offer.choice)

    def _free_room(self, claim: Claim, offer: Offer) -> bool:
        """Take what is needed from others, and nothing that is not."""
        world = self.world
        mark = world.mark()
        taking = Taking(world, claim, offer, self.outcome)
        victims = taking.search()
        if victims:
            taking.settle(victims)
            if self._place(claim, offer, waits=True):
                world.keep(mark)
                self.outcome.evict(claim, victims)
                return True
        world.undo(mark)
        return False


class Taking:
    """The search for victims of one gang."""

    def __init__(
        self,
        world: World,
        claim: Claim,
        offer: Offer,
        outcome: Outcome,
    ) -> None:
        self._world = world
        self._claim = claim
        self._request = offer.request
        self._room = Room(world, claim, offer.demand, offer.nodes)
        self._reclaim = Reclaim(world, claim, offer.request, outcome.served)
        self._evicted = outcome.evicted
        #: What each victim took that was not taken before it.
        self._pods: dict[Victim, tuple[Pod, ...]] = {}
        #: By gang: what of its surplus is taken on its own; and gangs that are taken whole.
        self._whole: dict[str, Victim] = {}
        self._missing: set[Victim] = set()

    def search(self) -> list[Victim] | None:
        """The victims; `None` where none suffice, or more are needed than a cycle may evict."""
        victims = search(
            self._reclaim.candidates(),
            allowed=self._reclaim.allowed,
            take=self._take,
            put_back=self._put_back,
            fits=self._fits,
        )
        limit = self._world.rules.eviction_limit
        if victims is None or limit is None:
            return victims
        evicted = self._evicted | {victim.claim.name for victim in victims}
        return victims if len(evicted) <= limit else None

    def settle(self, victims: list[Victim]) -> None:
        """Say what the victims hold from now on."""
        for victim in victims:
            held = self._world.held(victim.claim)
            names = (pod.name for pod in victim.pods)
            self._world.hold(victim.claim, victim.claim.tree.without_pods(held, names))

    def _take(self, victim: Victim) -> None:
        claim = victim.claim
        pods = self._pods.get(victim)
        if pods is None:
            pods = self._pods[victim] = self._world.firm(claim, victim.pods)
        self._room.watch(claim, pods)
        self._world.evict(claim, pods)
        self._room.recount(claim, pods)
        self._missing.discard(victim)
        if victim.whole:
            self._whole[claim.name] = victim

    def _put_back(self, victim: Victim) -> None:
        claim = victim.claim
        pods = self._pods[victim]
        self._world.spare(claim, pods)
        self._room.recount(claim, pods)
        if victim.whole:
            del self._whole[claim.name]
            self._missing = {each for each in self._missing if each.claim is not claim}
        elif claim.name in self._whole:
            # A gang that is broken keeps nothing: its surplus cannot stay behind.
            self._missing.add(victim)

    def _fits(self) -> bool:
        if self._missing:
            return False
        world = self._world
        if not world.ledgers.total.admits(self._claim.queue, self._request):
            return False
        return self._room.suffices()
