"""The search for the victims of one gang: enough quota, and enough room, none of them superfluous.

Feeds the search loop with candidates and says what must hold at its end. The working copy is as
before when it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from bough.core.cycle.candidates import Candidates, Preemptor, Victim
from bough.core.cycle.claim import Claim
from bough.core.cycle.offers import Offer
from bough.core.cycle.room import Room
from bough.core.cycle.victims import search
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.place.result import Placement
from bough.core.quota.account import available, change_usage
from bough.model.gang import Pod

#: How many orders of each kind are tried after the first two; what is needed at all is rare.
MOST_ORDERS = 8


class Seeker:
    """A gang with pods that looks for victims, and what it would place where they were."""

    __slots__ = ("claim", "copy", "offer", "room")

    def __init__(self, copy: WorkingCopy, claim: Claim, offer: Offer) -> None:
        self.copy = copy
        self.claim = claim
        self.offer = offer
        self.room = Room(copy, claim, offer.demand, offer.nodes)


class Preemption:
    """The search for victims of one preemptor; `seeker`: where it needs room on nodes as well."""

    def __init__(
        self, copy: WorkingCopy, preemptor: Preemptor, seeker: Seeker | None = None
    ) -> None:
        self._copy = copy
        self._preemptor = preemptor
        self._seeker = seeker
        self._candidates = Candidates(copy, preemptor)
        leaf = preemptor.leaf
        self._charges = [(leaf.account(what), n) for what, n in preemptor.amounts.items()]
        self._borrowing = True
        #: What each victim took that was not taken before it.
        self._pods: dict[Victim, tuple[Pod, ...]] = {}
        #: Gangs that are taken whole, and surplus of theirs that was put back all the same.
        self._whole: dict[str, Victim] = {}
        self._missing: set[Victim] = set()
        #: What was spared because its queue, or a node above, is within its quota.
        self._spared: list[Victim] = []
        #: Whether there is quota once some, or all, that may be evicted are.
        self.found_quota = False

    def victims(self) -> list[Victim]:
        """What to evict so that the request fits; empty where no end of others would help."""
        leaf = self._preemptor.leaf
        whats = self._preemptor.amounts if self._seeker is not None else ()
        if any(leaf.tree.quota(leaf.node, what) is None for what in whats):
            return []
        for borrowing in self._attempts():
            self._borrowing = borrowing
            found = self._search(self._candidates.in_order(borrowing=borrowing))
            if found is None and self._seeker is not None and self._spared:
                found = self._search_otherwise(self._seeker)
            if found is not None:
                for victim in reversed(found):
                    self._put_back(victim)
                return found
        return []

    def _attempts(self) -> tuple[bool, ...]:
        """Whether to let the queue borrow afterwards, in the order in which it is tried.

        Without borrowing there are more candidates, with it less is asked of them.
        """
        candidates = self._candidates
        if self._preemptor.guaranteed or not candidates.elsewhere:
            return (True,)
        if candidates.reclaims_while_borrowing:
            return (True, False)
        if not self._is_below_nominal():
            return (True,)
        return (True, False) if candidates.with_advantage else (False, True)

    def _is_below_nominal(self) -> bool:
        """Whether the queue has some quota of its own left of everything that is scarce."""
        leaf = self._preemptor.leaf
        accounts = (leaf.account(what) for what in self._preemptor.scarce)
        return all(account.usage < account.nominal for account in accounts)

    def _search(self, candidates: Iterable[Victim]) -> list[Victim] | None:
        self._pods.clear()
        self._whole.clear()
        self._missing.clear()
        self._spared.clear()
        return search(
            candidates,
            allowed=self._allowed,
            take=self._take,
            put_back=self._put_back,
            fits=self._fits if self._seeker is None else self._fits_on_nodes(self._seeker),
        )

    def _search_otherwise(self, seeker: Seeker) -> list[Victim] | None:
        """Take them in other orders.

        A queue is spared as soon as it is down to its quota: those that are of use must come
        before that. So those come first that are where the gang would go; then, for each that was
        spared all the same, that one; then each of the others comes last, as it may be in the way.
        """
        order = self._nearest_first(seeker)
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

    def _nearest_first(self, seeker: Seeker) -> list[Victim]:
        """All candidates; first those that are where the gang would go if all of them went."""
        copy, claim, offer = seeker.copy, seeker.claim, seeker.offer
        candidates = list(self._candidates.in_order(borrowing=self._borrowing))
        mark = copy.mark()
        for victim in candidates:
            copy.evict(victim.claim, copy.firm(victim.claim, victim.pods))
        found = copy.placer.place(
            claim.tree, offer.demand, copy.held(claim), later=True, within=offer.nodes
        )
        copy.undo(mark)
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
        allowed = self._candidates.allowed(victim, borrowing=self._borrowing)
        if not allowed:
            self._spared.append(victim)
        return allowed

    def _take(self, victim: Victim) -> None:
        claim = victim.claim
        if claim.counted:
            for account, amount in claim.charges:
                change_usage(account, -amount, None)
            return
        pods = self._pods.get(victim)
        if pods is None:
            pods = self._pods[victim] = self._copy.firm(claim, victim.pods)
        if self._seeker is None:
            self._copy.evict(claim, pods)
        else:
            self._seeker.room.watch(claim, pods)
            self._copy.evict(claim, pods)
            self._seeker.room.recount(claim, pods)
        self._missing.discard(victim)
        if victim.whole:
            self._whole[claim.name] = victim

    def _put_back(self, victim: Victim) -> None:
        claim = victim.claim
        if claim.counted:
            for account, amount in claim.charges:
                change_usage(account, amount, None)
            return
        pods = self._pods[victim]
        self._copy.spare(claim, pods)
        if self._seeker is not None:
            self._seeker.room.recount(claim, pods)
        if victim.whole:
            del self._whole[claim.name]
            self._missing = {each for each in self._missing if each.claim is not claim}
        elif claim.name in self._whole:
            # A gang that is broken keeps nothing: its surplus cannot stay behind.
            self._missing.add(victim)

    def _fits(self) -> bool:
        if self._missing:
            return False
        borrowing = self._borrowing
        for account, amount in self._charges:
            if not borrowing and account.usage + amount > account.subtree_quota:
                return False
            if amount > max(0, available(account)[0]):
                return False
        return True

    def _fits_on_nodes(self, seeker: Seeker) -> Callable[[], bool]:
        def fits() -> bool:
            if not self._fits():
                return False
            self.found_quota = True
            return seeker.room.suffices()

        return fits
