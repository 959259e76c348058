"""The search for the victims of one gang: enough quota, and enough room, none of them superfluous.

Feeds the search loop with candidates and says what must hold at its end. The working copy is as
before when it returns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from bough.core.cycle.best_victims import MOST_TO_EXCHANGE, MOST_UNITS, Actions, improve
from bough.core.cycle.candidates import Candidates
from bough.core.cycle.claim import Claim
from bough.core.cycle.offers import Offer
from bough.core.cycle.reclaim_tiers import Preemptor
from bough.core.cycle.room import room_for
from bough.core.cycle.victim import Victim
from bough.core.cycle.victims import search
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.gang.release import can_spare
from bough.core.gang.tree import Held
from bough.core.place.result import Placement
from bough.core.quota.account import Charge, available, charge, credit
from bough.model.gang import Pod
from bough.model.gang_rules import VictimSearch
from bough.model.quota import TreeNode

#: How many orders of each kind are tried after the first two, which are nearly always enough.
MOST_ORDERS = 8


class Portion(NamedTuple):
    """The part of a victim that is taken."""

    pods: tuple[Pod, ...]
    #: How much it counts in the ledger `total`.
    charges: Sequence[Charge]


class Seeker:
    """A gang with pods that looks for victims, and what it would place where they were."""

    __slots__ = ("claim", "copy", "offer", "room")

    def __init__(self, copy: WorkingCopy, claim: Claim, offer: Offer) -> None:
        self.copy = copy
        self.claim = claim
        self.offer = offer
        self.room = room_for(copy, claim, offer.demand, offer.nodes)

    def nodes(self) -> set[str]:
        """The nodes that the gang would go to now; none where it has no place."""
        claim, offer, copy = self.claim, self.offer, self.copy
        mark = copy.mark()
        found = copy.placer.place(
            claim.tree, offer.demand, copy.held(claim), later=True, within=offer.nodes
        )
        copy.undo(mark)
        return {each.node for each in found.assignments} if isinstance(found, Placement) else set()


class PreemptionSearch:
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
        self._portions: dict[Victim, Portion] = {}
        #: Pods of elastic gangs that are taken, by gang and name: their victims may overlap.
        self._ended: set[tuple[str, str]] = set()
        #: Of elastic gangs, by name: what is left; what is taken that contains other victims; and
        #: such victims that are not taken.
        self._left: dict[str, Held] = {}
        self._containers: dict[str, list[Victim]] = {}
        self._missing: list[Victim] = []
        #: The lowest cohorts above what is taken and the preemptor, with how many are taken there;
        #: counted where the preemptor must be within its quota below each of them.
        self._cohorts: Counter[TreeNode] = Counter()
        self._asks_cohorts = preemptor.within_quota
        self._chooses = copy.rules.victim_search is VictimSearch.FEWEST
        #: What was spared because its queue, or a node above, is within its quota.
        self._spared: list[Victim] = []
        #: Whether there is quota once some, or all, of the candidates are evicted.
        self.found_quota = False

    def victims(self) -> list[Victim]:
        """What to evict so that the request fits; empty where no end of others would help."""
        leaf = self._preemptor.leaf
        whats = self._preemptor.amounts if self._seeker is not None else ()
        if any(leaf.tree.quota(leaf.node, what) is None for what in whats):
            return []
        if self._needs_none():
            return []
        for borrowing in self._attempts():
            self._borrowing = borrowing
            found = self._search_in_order(borrowing=borrowing)
            if self._copy.policy.divides:
                found = self._agreed(found) or self._search_again(borrowing=borrowing)
            if self._seeker is not None and (found is None or self._chooses):
                found_quota = self.found_quota
                found = self._improve(self._seeker, found)
                self.found_quota = found_quota or found is not None
            if found is not None:
                for victim in reversed(found):
                    self._put_back(victim)
                return found
        return []

    def _needs_none(self) -> bool:
        """Whether it would fit as it is, where idle room is not given away."""
        if self._seeker is None or self._copy.rules.allocate:
            return False
        return self._fits_on_nodes(self._seeker)()

    def _attempts(self) -> tuple[bool, ...]:
        """Whether to let the queue borrow afterwards, in the order in which it is tried.

        Without borrowing there are more candidates, with it less is asked of them.
        """
        candidates = self._candidates
        preemptor = self._preemptor
        if preemptor.guaranteed or preemptor.within_quota or not candidates.elsewhere:
            return (True,)
        if self._copy.policy.take_by_share:
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

    def _search(
        self, candidates: Iterable[Victim], fits: Callable[[], bool] | None = None
    ) -> list[Victim] | None:
        self._spared.clear()
        if fits is None:
            fits = self._fits if self._seeker is None else self._fits_on_nodes(self._seeker)
        return search(
            candidates,
            allowed=self._allowed,
            take=self._take,
            put_back=self._put_back,
            fits=fits,
        )

    def _search_in_order(self, *, borrowing: bool) -> list[Victim] | None:
        """The search, its own queue last.

        Where that queue must not borrow, its gangs have to give back what it uses beyond its quota,
        whatever others do. So these are found first, and others are taken only until there is room:
        taking all others before, and putting most of them back after, would come to the same.
        """
        candidates = self._candidates
        plain = self._seeker is None and not self._asks_cohorts and candidates.are_plain
        if not borrowing and plain and not self._is_within_quota():
            own = self._search(candidates.own(), self._is_within_quota)
            if own is None or self._fits():
                return own
            others = self._search(candidates.others())
            if others is not None:
                return [*others, *own]
            self._release(own)
        return self._search(candidates.in_order(borrowing=borrowing))

    def _search_again(self, *, borrowing: bool) -> list[Victim] | None:
        """Search again, with what was spared coming last.

        What a sibling of the preemptor's queue gives back lowers the share of their side, so that
        queues which were spared may have to give after all.
        """
        spared = {(victim.gang, victim.parts) for victim in self._spared}
        order = list(self._candidates.in_order(borrowing=borrowing)) if spared else []
        if len(order) <= len(spared):
            return None
        order.sort(key=lambda each: (each.gang, each.parts) in spared)
        return self._agreed(self._search(order))

    def _agreed(self, found: list[Victim] | None) -> list[Victim] | None:
        """Those found, if each may be taken after those before it without what was put back."""
        self._release(found)
        for at, victim in enumerate(found or ()):
            if not self._allowed(victim):
                self._release((found or [])[:at])
                return None
            self._take(victim)
        return found

    def _improve(self, seeker: Seeker, found: list[Victim] | None) -> list[Victim] | None:
        """Better victims than were found in order; of many, only others where the gang would go."""
        elastic = self._copy.elastic > 0
        if found is None and not self._spared and not elastic:
            return None
        if found is not None and len(found) > MOST_UNITS:
            return found
        fits = self._fits_on_nodes(seeker)
        actions = Actions(self._is_free, self._take, self._put_back, fits)
        self._release(found)
        units = list(islice(self._units(), MOST_TO_EXCHANGE + 1))
        if len(units) <= MOST_TO_EXCHANGE:
            better = improve(found, units, actions)
            if better is not None or len(units) <= MOST_UNITS:
                return better
        if found is None:
            found = self._search_otherwise(seeker)
            self._release(found)
        if found is None:
            return None
        if not elastic or not any(victim.whole for victim in found):
            for victim in found:
                self._take(victim)
            return found
        nodes = self._goes_to(seeker, found)
        kept = {(victim.gang, victim.parts) for victim in found}
        near = (
            victim
            for victim in self._units()
            if _is_on(victim, nodes) or (victim.gang, victim.parts) in kept
        )
        return improve(found, near, actions)

    def _units(self) -> Iterator[Victim]:
        return self._candidates.units(borrowing=self._borrowing)

    def _release(self, found: list[Victim] | None) -> None:
        for victim in reversed(found or ()):
            self._put_back(victim)

    def _search_otherwise(self, seeker: Seeker) -> list[Victim] | None:
        """Search with the candidates in other orders.

        A queue is spared as soon as it is down to its quota, and a gang has only so much surplus:
        useful victims must come before that. So first come those on the nodes where the gang would
        go; then, for each gang that was spared all the same, that gang; then each of the others is
        put last in turn, as it may be in the way.
        """
        order = self._nearest_first(seeker)
        victims = self._search(order)
        spared = dict.fromkeys(victim.claim for victim in self._spared)
        for claim in islice(spared, MOST_ORDERS):
            if victims is None:
                victims = self._search(sorted(order, key=lambda each: each.claim is not claim))
        others = dict.fromkeys(victim.claim for victim in order if victim.claim not in spared)
        for claim in islice(others, MOST_ORDERS) if spared else ():
            if victims is None:
                victims = self._search(sorted(order, key=lambda each: each.claim is claim))
        return victims

    def _nearest_first(self, seeker: Seeker) -> list[Victim]:
        """All that may be taken; first what is where the gang would go if all of it went."""
        units = list(self._units())
        nodes = self._goes_to(seeker, units)
        return sorted(units, key=lambda victim: not _is_on(victim, nodes)) if nodes else []

    def _goes_to(self, seeker: Seeker, victims: Iterable[Victim]) -> set[str]:
        """Where the gang would go if all of these had ended; none of them is taken."""
        copy = self._copy
        mark = copy.mark()
        for victim in victims:
            copy.evict(victim.claim, copy.firm(victim.claim, victim.pods))
        nodes = seeker.nodes()
        copy.undo(mark)
        return nodes

    def _allowed(self, victim: Victim) -> bool:
        """Whether it may be taken now; whether its queue forbids it is remembered."""
        allowed = self._is_in_reach(victim)
        if not allowed:
            self._spared.append(victim)
        return allowed and (victim.unit is None or self._is_surplus(victim))

    def _is_free(self, victim: Victim) -> bool:
        if victim.unit is not None and not self._is_surplus(victim):
            return False
        return self._is_in_reach(victim)

    def _is_in_reach(self, victim: Victim) -> bool:
        surplus = self._untaken(victim.claim, victim.surplus) if victim.surplus else ()
        return self._candidates.allowed(victim, surplus, borrowing=self._borrowing)

    def _is_surplus(self, victim: Victim) -> bool:
        """Whether its gang can do without it, after what else of it was taken."""
        left = self._left.get(victim.gang)
        if left is None or victim.unit is None:
            return True
        return can_spare(victim.claim.tree, left, victim.unit)

    def _take(self, victim: Victim) -> None:
        claim = victim.claim
        if self._asks_cohorts and victim.reach is not None:
            self._cohorts[victim.reach.inner.node] += 1
        if claim.counted:
            credit(claim.charges)
            return
        pods, charges = self._portion(victim)
        credit(charges)
        if self._seeker is not None and pods:
            self._seeker.room.release(claim, pods)
        if claim.elastic:
            self._ended.update((claim.name, pod.name) for pod in pods)
            left = self._left.get(claim.name) or self._copy.held(claim)
            self._left[claim.name] = claim.tree.without_pods(left, (pod.name for pod in pods))
            if len(victim.pods) > 1:
                self._containers.setdefault(claim.name, []).append(victim)
            if self._missing:
                self._missing = [each for each in self._missing if each is not victim]

    def _put_back(self, victim: Victim) -> None:
        claim = victim.claim
        if self._asks_cohorts and victim.reach is not None:
            self._drop_cohort(victim.reach.inner.node)
        if claim.counted:
            charge(claim.charges)
            return
        pods, charges = self._portions[victim]
        charge(charges)
        if self._seeker is not None and pods:
            self._seeker.room.keep(claim, pods)
        if claim.elastic:
            self._ended.difference_update((claim.name, pod.name) for pod in pods)
            left = self._left[claim.name]
            self._left[claim.name] = claim.tree.with_pods(left, (pod.name for pod in pods))
            containers = self._containers.get(claim.name, [])
            if victim in containers:
                containers.remove(victim)
            # What ends as a whole keeps nothing: a part of it cannot stay behind.
            self._missing = [each for each in (*self._missing, victim) if self._is_torn(each)]

    def _drop_cohort(self, cohort: TreeNode) -> None:
        self._cohorts[cohort] -= 1
        if not self._cohorts[cohort]:
            del self._cohorts[cohort]

    def _portion(self, victim: Victim) -> Portion:
        """What a victim has that is not taken already; only those of elastic gangs overlap."""
        portion = self._portions.get(victim)
        if portion is None or victim.claim.elastic:
            portion = self._portions[victim] = self._work_out(victim)
        return portion

    def _work_out(self, victim: Victim) -> Portion:
        claim = victim.claim
        pods = self._untaken(claim, victim.pods)
        if len(pods) == len(victim.pods):
            return Portion(pods, victim.charges)
        return Portion(pods, self._candidates.charges(claim, pods))

    def _untaken(self, claim: Claim, pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
        """Those of these pods that would not end yet."""
        pods = self._copy.firm(claim, pods)
        if not self._ended or not claim.elastic:
            return pods
        return tuple(pod for pod in pods if (claim.name, pod.name) not in self._ended)

    def _is_torn(self, victim: Victim) -> bool:
        """Whether something is taken of which it is part."""
        containers = self._containers.get(victim.gang)
        return bool(containers) and any(victim.parts < other.parts for other in containers)

    def _fits(self) -> bool:
        if self._missing:
            return False
        if self._asks_cohorts and not self._candidates.is_entitled(self._cohorts):
            return False
        borrowing = self._borrowing
        for account, amount in self._charges:
            if not borrowing and account.usage + amount > account.subtree_quota:
                return False
            if amount > max(0, available(account)[0]):
                return False
        return True

    def _is_within_quota(self) -> bool:
        return all(each.usage + amount <= each.subtree_quota for each, amount in self._charges)

    def _fits_on_nodes(self, seeker: Seeker) -> Callable[[], bool]:
        def fits() -> bool:
            if not self._fits():
                return False
            self.found_quota = True
            return seeker.room.suffices()

        return fits


def _is_on(victim: Victim, nodes: set[str]) -> bool:
    return any(pod.node in nodes for pod in victim.pods)
