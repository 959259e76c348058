"""Who may be evicted for whom, and in what order: the classical rules of a queue's preemption.

In its own queue a workload preempts by priority. From other queues it reclaims what they use
beyond their quota. It has the *advantage* over those that use quota of a subtree which it is in and
which could hold it; over the others it has none, and may take from them only while it does not
itself borrow, or where its queue lets it reclaim while borrowing. Must not know how a search goes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import NamedTuple

from bough.core.cycle.forest import Forest, Inner, Leaf, Ranked
from bough.core.cycle.holder import Holder
from bough.core.cycle.standing import Standing
from bough.core.quota.account import Account
from bough.model.admission import (
    BorrowWithinCohort,
    PreemptionWithinQueue,
    ReclaimWithinCohort,
)
from bough.model.plan import EvictionRule
from bough.model.quota import Amounts, FlavorResource


class Preemptor(NamedTuple):
    """Who looks for victims, and what for."""

    leaf: Leaf
    standing: Standing
    #: Everything that it asks for.
    amounts: Amounts
    #: Of these there is not enough; a victim must use one of them.
    scarce: tuple[FlavorResource, ...]
    #: Keys of those that somebody else has already taken.
    excluded: frozenset[str] = frozenset()


class Level(NamedTuple):
    """A cohort above the preemptor; candidates below it, but not below the level before it."""

    inner: Inner
    #: Whether the preemptor has the advantage over these candidates.
    advantage: bool
    #: Queues that are not of this level.
    skipped: frozenset[str]
    #: Sorted, those of skipped queues among them: who was told to end, and who was not.
    leaving: list[Ranked]
    running: list[Ranked]


class Candidate(NamedTuple):
    """Somebody who might be evicted."""

    holder: Holder
    #: `None`: it is in the preemptor's own queue.
    level: Level | None


class Candidates:
    """Everybody whom a preemptor may take, in order, as usage is when this is made."""

    def __init__(self, forest: Forest, preemptor: Preemptor) -> None:
        self._preemptor = preemptor
        self._rules = preemptor.leaf.queue.rules.preemption
        self._levels = list(_levels(forest, preemptor))

    @property
    def elsewhere(self) -> bool:
        """Whether there are any in other queues."""
        return self._has(advantage=True) or self._has(advantage=False)

    @property
    def with_advantage(self) -> bool:
        """Whether there are any in other queues over which the preemptor has the advantage."""
        return self._has(advantage=True)

    def in_order(self, *, borrowing: bool) -> Iterator[Candidate]:
        """All of them: first who was told to end already; each time the own queue last.

        While borrowing, those are left out that can only be taken without.
        """
        for leaving in (True, False):
            yield from self._elsewhere(leaving=leaving, advantage=True)
            if not borrowing or self.reclaims_while_borrowing:
                yield from self._elsewhere(leaving=leaving, advantage=False)
            yield from self._same_queue(leaving=leaving)

    def rule(self, candidate: Candidate) -> EvictionRule:
        """By which right the candidate would be evicted."""
        if candidate.level is None:
            return EvictionRule.PREEMPT
        if candidate.level.advantage or self.only_without_borrowing(candidate.holder):
            return EvictionRule.RECLAIM
        return EvictionRule.RECLAIM_WHILE_BORROWING

    @property
    def reclaims_while_borrowing(self) -> bool:
        """Whether the preemptor's queue may take from others while it borrows itself."""
        return self._rules.borrow_within_cohort is not BorrowWithinCohort.NEVER

    def only_without_borrowing(self, holder: Holder) -> bool:
        """Whether a holder without disadvantage can be taken only if nothing is borrowed then."""
        threshold = self._rules.borrow_priority_threshold
        return (
            not self.reclaims_while_borrowing
            or holder.priority >= self._preemptor.standing.priority
            or (threshold is not None and holder.priority > threshold)
        )

    def _has(self, *, advantage: bool) -> bool:
        return any(
            next(self._elsewhere(leaving=leaving, advantage=advantage), None) is not None
            for leaving in (True, False)
        )

    def _elsewhere(self, *, leaving: bool, advantage: bool) -> Iterator[Candidate]:
        streams = [
            self._at(level, leaving=leaving)
            for level in self._levels
            if level.advantage is advantage and (level.leaving if leaving else level.running)
        ]
        if not streams:
            return iter(())
        # Orders are never equal, so that levels are never compared.
        ranked = streams[0] if len(streams) == 1 else merge(*streams)
        return (Candidate(holder, level) for _, holder, level in ranked)

    def _at(self, level: Level, *, leaving: bool) -> Iterator[tuple[object, Holder, Level]]:
        """Who is left at a level after the queue's rule, sorted."""
        preemptor = self._preemptor
        ranked = level.leaving if leaving else level.running
        stop = len(ranked)
        if self._rules.reclaim_within_cohort is ReclaimWithinCohort.LOWER_PRIORITY:
            stop = _first_at(ranked, preemptor.standing.priority)
        skipped, excluded = level.skipped, preemptor.excluded
        for order, holder in islice(ranked, stop):
            if holder.queue not in skipped and holder.key not in excluded:
                yield order, holder, level

    def _same_queue(self, *, leaving: bool) -> Iterator[Candidate]:
        within = self._rules.within_queue
        if within is PreemptionWithinQueue.NEVER:
            return
        preemptor = self._preemptor
        leaf, priority = preemptor.leaf, preemptor.standing.priority
        newer_too = within is PreemptionWithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY
        ranked = leaf.leaving if leaving else leaf.running
        stop = _first_at(ranked, priority + 1 if newer_too else priority)
        for _, holder in islice(ranked, stop):
            if holder.priority == priority and holder.since <= preemptor.standing.since:
                continue
            if holder.key not in preemptor.excluded and _uses(holder, preemptor.scarce):
                yield Candidate(holder, None)


def is_out_of_reach(candidate: Candidate, leaf: Leaf, scarce: tuple[FlavorResource, ...]) -> bool:
    """Whether the candidate's queue, or a cohort between it and the preemptor, borrows no more."""
    level = candidate.level
    if level is None:
        return False
    if leaf.is_within_nominal(scarce):
        return True
    inner = leaf.parent
    while inner is not None and inner is not level.inner:
        if inner.is_within_nominal(scarce):
            return True
        inner = inner.parent
    return False


def _levels(forest: Forest, preemptor: Preemptor) -> Iterator[Level]:
    """The cohorts from which the preemptor may reclaim, from its own up to the root."""
    leaf = preemptor.leaf
    rule = leaf.queue.rules.preemption.reclaim_within_cohort
    inner = leaf.parent
    if inner is None or rule is ReclaimWithinCohort.NEVER:
        return
    rest: list[tuple[Account | None, int]] = [
        (leaf.account(what), amount) for what, amount in preemptor.amounts.items()
    ]
    advantage = _holds_all(rest)
    skipped = frozenset((leaf.queue.name,))
    while inner is not None:
        yield Level(inner, advantage, skipped, *forest.reclaimable(inner, preemptor.scarce))
        rest = [_passed_on(account, amount) for account, amount in rest]
        advantage = advantage or _holds_all(rest)
        skipped = inner.names
        inner = inner.parent


def _holds_all(requests: list[tuple[Account | None, int]]) -> bool:
    """Whether a node's own quota could hold all of this on top of what it uses."""
    return all(
        account is not None and account.usage + amount <= account.subtree_quota
        for account, amount in requests
    )


def _passed_on(account: Account | None, amount: int) -> tuple[Account | None, int]:
    """What a node leaves of a request to the node above it."""
    if account is None:
        return None, amount
    kept = max(0, account.local_quota - account.usage)
    return account.parent, max(0, amount - kept)


def _first_at(ranked: list[Ranked], priority: int) -> int:
    """Where those with at least this priority begin."""
    return bisect_left(ranked, ((priority,),))


def _uses(holder: Holder, whats: tuple[FlavorResource, ...]) -> bool:
    return any(what in holder.usage for what in whats)
