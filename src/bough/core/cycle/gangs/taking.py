"""The search for the victims of one gang: who is taken, and what that frees.

Takes them in the working copy, one by one, and puts back whom nobody needs. Must not know why the
gang wants room, nor in what order candidates come.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from bough.core.cycle.gangs.claim import Claim
from bough.core.cycle.gangs.outcome import Outcome
from bough.core.cycle.gangs.reclaim import Reclaim, Victim
from bough.core.cycle.gangs.room import Room
from bough.core.cycle.gangs.wants import Offer
from bough.core.cycle.gangs.world import World
from bough.core.cycle.victims import search
from bough.core.place.result import Placement
from bough.model.gang import Pod

#: How many orders of each kind are tried after the first two; what is needed at all is rare.
MOST_ORDERS = 8


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
        self._offer = offer
        self._room = Room(world, claim, offer.demand, offer.nodes)
        self._reclaim = Reclaim(world, claim, offer.request, outcome.served)
        self._evicted = outcome.evicted
        #: What each victim took that was not taken before it.
        self._pods: dict[Victim, tuple[Pod, ...]] = {}
        #: By gang: what of its surplus is taken on its own; and gangs that are taken whole.
        self._whole: dict[str, Victim] = {}
        self._missing: set[Victim] = set()
        #: Who was spared because its queue, or a node above, is within its quota.
        self._spared: list[Victim] = []
        #: Whether there is quota once some, or all, that may be evicted are.
        self.found_quota = False

    def search(self) -> list[Victim] | None:
        """The victims; `None` where none suffice, or more are needed than a cycle may evict."""
        victims = self._search(self._reclaim.candidates())
        if victims is None and self._spared:
            victims = self._search_otherwise()
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

    def _search(self, candidates: Iterable[Victim]) -> list[Victim] | None:
        self._pods.clear()
        self._spared.clear()
        return search(
            candidates,
            allowed=self._allowed,
            take=self._take,
            put_back=self._put_back,
            fits=self._fits,
        )

    def _search_otherwise(self) -> list[Victim] | None:
        """Take them in other orders.

        A queue is spared as soon as it is down to its quota: those that are of use must come
        before that. So those come first that are where the gang would go; then, for each that was
        spared all the same, that one; then each of the others comes last, as it may be in the way.
        """
        order = self._nearest_first()
        victims = self._search(order)
        spared = dict.fromkeys(victim.claim for victim in self._spared)
        for claim in islice(spared, MOST_ORDERS):
            if victims is None:
                victims = self._search(sorted(order, key=lambda each: each.claim is not claim))
        others = dict.fromkeys(victim.claim for victim in order if victim.claim not in spared)
        for claim in islice(others, MOST_ORDERS):
            if victims is None:
                victims = self._search(sorted(order, key=lambda each: each.claim is claim))
        return victims

    def _nearest_first(self) -> list[Victim]:
        """All candidates; first those that are where the gang would go if all of them went."""
        world, claim, offer = self._world, self._claim, self._offer
        candidates = list(self._reclaim.candidates())
        mark = world.mark()
        for victim in candidates:
            world.evict(victim.claim, world.firm(victim.claim, victim.pods))
        found = world.placer.place(
            claim.tree, offer.demand, world.held(claim), later=True, within=offer.nodes
        )
        world.undo(mark)
        if not isinstance(found, Placement):
            return []
        nodes = {each.node for each in found.assignments}
        near = {
            victim.claim.name
            for victim in candidates
            if not nodes.isdisjoint(pod.node for pod in victim.pods)
        }
        # By gang, so that the surplus of each still goes before it is broken.
        candidates.sort(key=lambda victim: victim.claim.name not in near)
        return candidates

    def _allowed(self, victim: Victim) -> bool:
        allowed = self._reclaim.allowed(victim)
        if not allowed:
            self._spared.append(victim)
        return allowed

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
        if not world.ledgers.total.admits(self._claim.queue, self._offer.request):
            return False
        self.found_quota = True
        return self._room.suffices()
