"""What a gang of pod sets could get as things are: which flavors, for how many pods, whose quota.

Nothing is decided here: gangs that are judged together are judged against the same state.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from enum import StrEnum

import msgspec

from bough.core.cycle.claim import Claim, counts_of
from bough.core.cycle.flavors import FlavorAssignment, FlavorQuestion, Mode, assign_flavors
from bough.core.cycle.forest import Leaf, Slot, reach_of
from bough.core.cycle.partial_admission import can_shrink, largest_that_fits
from bough.core.cycle.preemption import PreemptionSearch
from bough.core.cycle.queue_order import Standing
from bough.core.cycle.reclaim_tiers import Preemptor
from bough.core.cycle.shape_needs import Known, Needs, needs_in
from bough.core.cycle.victim import Victim
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.quota.account import charge, credit, potential
from bough.model.admission_rules import PreemptionWithinQueue, ReclaimWithinCohort
from bough.model.quota import FlavorResource
from bough.model.workload import Assignment


class Outlook(StrEnum):
    """What a gang could get."""

    #: Not even by preemption.
    NOTHING = "nothing"
    #: Quota after the victims have ended, if there are any.
    AFTER_VICTIMS = "after_victims"
    #: Quota after the victims of others have ended.
    AFTER_OTHERS = "after_others"
    AT_ONCE = "at_once"


#: Assignments are shared and never changed.
_NOTHING_YET = FlavorAssignment()
_NONE: frozenset[str] = frozenset()


class Judgement(msgspec.Struct, gc=False, eq=False):
    """A gang with what it could get, and at whose expense."""

    leaf: Leaf
    claim: Claim
    #: Whether room is being freed for it since an earlier cycle.
    nominated: bool = False
    #: Gangs that may not be victims: something of them starts in this cycle.
    excluded: Container[str] = ()
    #: Neither may these: it gave way to them before.
    spared: frozenset[str] = _NONE
    assignment: FlavorAssignment = _NOTHING_YET
    victims: Sequence[Victim] = ()
    outlook: Outlook = Outlook.NOTHING

    @property
    def not_nominated(self) -> bool:
        """What gangs are sorted by: those first for which room is being freed."""
        return not self.nominated

    @property
    def lacks_quota(self) -> bool:
        """What gangs are sorted by: those first that hold quota and are looked at again."""
        gang = self.claim.gang
        return not gang.conditions or not gang.has("QuotaReserved")


def judge(
    copy: WorkingCopy,
    judgement: Judgement,
    *,
    tried: Mapping[str, Mapping[str, int]],
    pinned: Mapping[str, Mapping[str, str]] | None = None,
    promised: tuple[Assignment, ...] = (),
) -> None:
    """Find what a gang could get as things are, and at whose expense; perhaps for fewer pods.

    `promised`: what others were told to end for. It gets that and no more, if that can be had: what
    it might have besides could be taken from it again by those that ended.
    """
    needs = needs_in(judgement.leaf, judgement.claim)
    from_the_start = not tried and pinned is None
    given = needs.at_once(copy.flavors) if from_the_start and not promised else None
    kept = _as_promised(copy, judgement, needs, promised) if promised else None
    if given is not None:
        judgement.assignment, judgement.victims = given, ()
    elif kept is not None:
        judgement.assignment, judgement.victims = kept
    else:
        search = Search(copy, judgement, needs, tried, pinned)
        known = search.recall() if from_the_start else None
        judgement.assignment, judgement.victims = known or search.run()
        if from_the_start and known is None:
            search.remember(judgement.assignment)
    if judgement.assignment.mode is Mode.FIT:
        judgement.outlook = Outlook.AT_ONCE
    elif judgement.assignment.mode is Mode.NO_FIT:
        judgement.outlook = Outlook.NOTHING
    else:
        judgement.outlook = Outlook.AFTER_VICTIMS


def _as_promised(
    copy: WorkingCopy, judgement: Judgement, needs: Needs, promised: tuple[Assignment, ...]
) -> tuple[FlavorAssignment, list[Victim]] | None:
    """The very flavors and numbers of pods that were promised, if they can be had."""
    gang = judgement.claim.gang
    if [each.name for each in promised] != [each.name for each in gang.pod_sets]:
        return None
    search = Search(copy, judgement, needs, {}, {each.name: each.flavors for each in promised})
    wanted = zip(promised, counts_of(gang), strict=True)
    counts = tuple(n if each.count is None else min(n, each.count) for each, n in wanted)
    return search.resolve(search.assign(counts))


def never_fits(copy: WorkingCopy, claim: Claim) -> bool:
    """Whether one of its pod sets, at its smallest, has no flavor even if nothing ran."""
    groups = {} if claim.leaf is None else claim.leaf.groups
    partial = copy.policy.partial_admission
    for pod_set, count in zip(claim.gang.pod_sets, counts_of(claim.gang), strict=True):
        least = pod_set.min_count if partial and pod_set.min_count is not None else count
        for resource, each in pod_set.template.requests.items():
            group = groups.get(resource)
            flavors = () if group is None else group.flavors
            slots = (slots.get(resource) for _, slots in flavors)
            most = max((potential(slot.account) for slot in slots if slot is not None), default=0)
            if each * min(count, least) > most:
                return True
    return False


class Search:
    """The search for flavors and victims of one gang; remembers victims it has found already."""

    __slots__ = (
        "_asked",
        "_claim",
        "_copy",
        "_excluded",
        "_found",
        "_leaf",
        "_needs",
        "_pinned",
        "_tried",
    )

    def __init__(
        self,
        copy: WorkingCopy,
        judgement: Judgement,
        needs: Needs,
        tried: Mapping[str, Mapping[str, int]],
        pinned: Mapping[str, Mapping[str, str]] | None,
    ) -> None:
        self._copy = copy
        self._needs = needs
        self._leaf = judgement.leaf
        self._claim = judgement.claim
        self._excluded = judgement.excluded
        self._tried = tried
        self._pinned = pinned
        self._found: dict[tuple[FlavorResource, int], list[Victim]] = {}
        #: By what is scarce: whether there is anything that might be taken.
        self._asked: dict[tuple[FlavorResource, ...], bool] = {}

    def run(self) -> tuple[FlavorAssignment, list[Victim]]:
        """The best that can be had, with its victims."""
        pod_sets = self._claim.gang.pod_sets
        full = self.assign(None)
        found = self.resolve(full)
        if found is None and self._copy.policy.partial_admission and can_shrink(pod_sets):
            found = largest_that_fits(pod_sets, lambda counts: self.resolve(self.assign(counts)))
        return (full, []) if found is None else found

    def recall(self) -> tuple[FlavorAssignment, list[Victim]] | None:
        """What was found in the same state, if there are still no candidates."""
        known = self._needs.recall(self._copy.flavors)
        if known is None or any(map(self._has_candidates, known.scarce)):
            return None
        return known.assignment, []

    def remember(self, assignment: FlavorAssignment) -> None:
        """Keep what was found, unless that depends on candidates."""
        if not any(self._asked.values()):
            self._needs.remember(Known(assignment, tuple(self._asked)))

    def assign(self, counts: tuple[int, ...] | None) -> FlavorAssignment:
        """Choose flavors."""
        question = FlavorQuestion(
            self._leaf,
            self._claim.gang,
            self._copy.flavors,
            self._simulate,
            self._tried,
            self._pinned,
            self._needs.parts,
        )
        return assign_flavors(question, counts)

    def resolve(self, assignment: FlavorAssignment) -> tuple[FlavorAssignment, list[Victim]] | None:
        """The assignment with its victims; `None` if it cannot be had even with victims."""
        if assignment.mode is Mode.FIT:
            return assignment, []
        if assignment.mode is Mode.NO_FIT:
            return None
        victims = self._victims(assignment.usage, assignment.scarce)
        return (assignment, victims) if victims else None

    def _simulate(self, slot: Slot, amount: int) -> tuple[Mode, int]:
        """How one resource on one flavor could be had, and from how far up it would then borrow."""
        victims = self._victims({slot.what: amount}, (slot.what,))
        if not victims:
            return Mode.NO_CANDIDATES, reach_of(self._leaf, slot.account, amount).height
        for victim in victims:
            take(victim)
        height = reach_of(self._leaf, slot.account, amount).height
        for victim in victims:
            put_back(victim)
        own = any(victim.reach is None for victim in victims)
        return (Mode.PREEMPT if own else Mode.RECLAIM), height

    def _victims(
        self, amounts: Mapping[FlavorResource, int], scarce: tuple[FlavorResource, ...]
    ) -> list[Victim]:
        asked = self._asked.get(scarce)
        if asked is None:
            asked = self._asked[scarce] = self._has_candidates(scarce)
        if not asked:
            return []
        # With one flavor and resource, the search for flavors has already asked the same.
        single = next(iter(amounts.items())) if len(amounts) == 1 and len(scarce) == 1 else None
        if single is not None and single in self._found:
            return self._found[single]
        preemptor = Preemptor(
            self._leaf, self._claim.standing, amounts, scarce, excluded=self._excluded
        )
        victims = PreemptionSearch(self._copy, preemptor).victims()
        if single is not None:
            self._found[single] = victims
        return victims

    def _has_candidates(self, scarce: tuple[FlavorResource, ...]) -> bool:
        if self._claim.preemptible and not self._copy.rules.preemptible_takes_victims:
            return False
        return has_candidates(self._copy, self._leaf, self._claim.standing, scarce)


def has_candidates(
    copy: WorkingCopy, leaf: Leaf, standing: Standing, scarce: tuple[FlavorResource, ...]
) -> bool:
    """Whether a search for what is scarce would find any candidates; in doubt, it might.

    Most searches of gangs that only wait for quota would find none, and this costs little.
    """
    if copy.elastic:
        return True
    rules = leaf.preemption
    if copy.rules.preempt and rules.within_queue is not PreemptionWithinQueue.NEVER:
        newer_too = rules.within_queue is PreemptionWithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY
        limit = standing.priority + 1 if newer_too else standing.priority
        for ranked in (leaf.leaving, leaf.running):
            if ranked and ranked[0][0].priority < limit:
                return True
    if not copy.rules.reclaim or rules.reclaim_within_cohort is ReclaimWithinCohort.NEVER:
        return False
    inner = leaf.parent
    if copy.policy.take_by_share and inner is not None:
        while inner.parent is not None:
            inner = inner.parent
        return any(other is not leaf for other in copy.forest.borrowers(inner, scarce))
    while inner is not None:
        leaving, running = copy.forest.reclaimable(inner, scarce, only_users=True)
        if leaving or running:
            return True
        inner = inner.parent
    return False


def take(victim: Victim) -> None:
    """Count the quota of a victim as free, in the ledger of everything, until `put_back`."""
    credit(victim.charges)


def put_back(victim: Victim) -> None:
    """Undo `take`."""
    charge(victim.charges)
