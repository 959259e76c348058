"""The entries of a cycle: what each head would need, found against the same state, and their order.

Must not know what an entry gets in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from bough.core.cycle.applicant import Applicant
from bough.core.cycle.candidates import Preemptor
from bough.core.cycle.flavors import (
    FlavorAssignment,
    FlavorQuestion,
    Mode,
    assign_flavors,
)
from bough.core.cycle.forest import Leaf, Slot
from bough.core.cycle.heads import Head, bar, heads
from bough.core.cycle.heights import reach_of
from bough.core.cycle.partial import can_shrink, largest_that_fits
from bough.core.cycle.preemption import Victim, find_victims
from bough.core.cycle.work import Work
from bough.model.policy import OrderKey, Policy
from bough.model.quota import FlavorResource


class Outcome(StrEnum):
    """What a workload could get."""

    #: Not even by preemption.
    NOTHING = "nothing"
    #: Quota after the victims have ended, if there are any.
    AFTER_VICTIMS = "after_victims"
    #: Quota after the victims of others have ended.
    AFTER_OTHERS = "after_others"
    AT_ONCE = "at_once"


class Entry:
    """A head with what it would get."""

    __slots__ = ("applicant", "assignment", "leaf", "nominated", "outcome", "victims")

    def __init__(self, head: Head, *, nominated: bool) -> None:
        self.leaf: Leaf = head.leaf
        self.applicant: Applicant = head.applicant
        #: Whether room is being freed for it since an earlier cycle.
        self.nominated = nominated
        self.assignment = FlavorAssignment()
        self.victims: list[Victim] = []
        self.outcome = Outcome.NOTHING


def line_up(work: Work) -> list[Entry]:
    """Everyone whom the cycle looks at and nothing bars, in the order in which they are decided."""
    entries: list[Entry] = []
    for head in heads(work):
        barred = bar(work, head)
        if barred is not None:
            work.waits.append(barred)
            continue
        progress = work.progress(head.applicant.key)
        entry = Entry(head, nominated=progress.nominated)
        evaluate(work, entry, tried=progress.tried)
        entries.append(entry)
    entries.sort(key=lambda entry: entry_order(entry, work.policy))
    return entries


def evaluate(
    work: Work,
    entry: Entry,
    *,
    tried: Mapping[str, Mapping[str, int]],
    pinned: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Find what an entry could get as things are, and at whose expense; perhaps for fewer pods."""
    search = _Evaluation(work, entry, tried, pinned)
    pod_sets = entry.applicant.workload.pod_sets
    full = search.assign(None)
    found = search.resolve(full)
    if found is None and work.policy.partial_admission and can_shrink(pod_sets):
        found = largest_that_fits(pod_sets, lambda counts: search.resolve(search.assign(counts)))
    entry.assignment, entry.victims = (full, []) if found is None else found
    if entry.assignment.mode is Mode.FIT:
        entry.outcome = Outcome.AT_ONCE
    elif entry.assignment.mode is Mode.NO_FIT:
        entry.outcome = Outcome.NOTHING
    else:
        entry.outcome = Outcome.AFTER_VICTIMS


class _Evaluation:
    """The search for flavors and victims of one entry; remembers victims it has found already."""

    __slots__ = ("_applicant", "_excluded", "_found", "_leaf", "_pinned", "_tried", "_work")

    def __init__(
        self,
        work: Work,
        entry: Entry,
        tried: Mapping[str, Mapping[str, int]],
        pinned: Mapping[str, Mapping[str, str]] | None,
    ) -> None:
        self._work = work
        self._leaf = entry.leaf
        self._applicant = entry.applicant
        self._tried = tried
        self._pinned = pinned
        self._excluded = work.taken
        self._found: dict[tuple[FlavorResource, int], list[Victim]] = {}

    def assign(self, counts: tuple[int, ...] | None) -> FlavorAssignment:
        """Choose flavors."""
        question = FlavorQuestion(
            self._leaf,
            self._applicant,
            self._work.memo.flavors,
            self._simulate,
            self._tried,
            self._pinned,
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
            victim.holder.take()
        height = reach_of(self._leaf, slot.account, amount).height
        for victim in victims:
            victim.holder.put_back()
        own = any(victim.holder.queue == self._leaf.queue.name for victim in victims)
        return (Mode.PREEMPT if own else Mode.RECLAIM), height

    def _victims(
        self, amounts: Mapping[FlavorResource, int], scarce: tuple[FlavorResource, ...]
    ) -> list[Victim]:
        # With one flavor and resource, the search for flavors has already asked the same.
        single = next(iter(amounts.items())) if len(amounts) == 1 and len(scarce) == 1 else None
        if single is not None and single in self._found:
            return self._found[single]
        standing = self._applicant.standing
        preemptor = Preemptor(self._leaf, standing, amounts, scarce, self._excluded)
        victims = find_victims(self._work.forest, preemptor)
        if single is not None:
            self._found[single] = victims
        return victims


def entry_order(entry: Entry, policy: Policy) -> tuple[object, ...]:
    """What entries are sorted by; what is equal stays in the order of queues and their lines."""
    return (*[_CRITERIA[key](entry) for key in policy.order], entry.applicant.standing.uid)


#: What each criterion sorts by; the smaller goes first.
_CRITERIA: dict[OrderKey, Callable[[Entry], object]] = {
    OrderKey.HOLDS_QUOTA: lambda entry: not entry.applicant.workload.has("QuotaReserved"),
    OrderKey.NOMINATED: lambda entry: not entry.nominated,
    OrderKey.BORROWING_HEIGHT: lambda entry: entry.assignment.height,
    OrderKey.PRIORITY: lambda entry: entry.applicant.standing.negative_priority,
    OrderKey.TIMESTAMP: lambda entry: entry.applicant.standing.since,
}
