"""Which queue gives back next where fair shares decide, and whether it may be made to.

Queues give back in the opposite order to that in which they are served (`fair_order`); what each
would have given back by then counts as gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Protocol, TypeVar

from bough.core.cycle.claim import Claim
from bough.core.cycle.contest import Contest, Rank, Seat
from bough.core.cycle.giving_queues import Row
from bough.core.cycle.reclaim_tiers import Preemptor
from bough.core.cycle.victim import Victim
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.quota.account import Charge, charge, credit
from bough.core.quota.division import Amount
from bough.core.quota.fairness import Entitlements, frozen, rank
from bough.core.quota.reclaim import Reclaim
from bough.model.plan import EvictionRule
from bough.model.quota import FlavorResource, TreeNode

Given = dict[FlavorResource, Amount]


class Gift(Protocol):
    """What a queue would give back as one unit."""

    @property
    def claim(self) -> Claim:
        """The gang that it belongs to."""
        ...


AnyGift = TypeVar("AnyGift", bound=Gift)


def in_giving_order(copy: WorkingCopy, lines: Mapping[str, Iterator[AnyGift]]) -> Iterator[AnyGift]:
    """What queues would give, from the one that is furthest above its share first."""
    if len(lines) == 1:
        # There is no other queue to compare it with.
        for line in lines.values():
            yield from line
        return
    rows = {queue: Row(line) for queue, line in lines.items()}
    #: What nodes had before anything was taken, and what they would have given back since.
    before: dict[TreeNode, Entitlements] = {}
    given: dict[TreeNode, Given] = {}
    seen: set[Claim] = set()

    def ranked(seat: Seat[AnyGift], gift: AnyGift) -> Rank:
        node = seat.node
        if node not in before:
            before[node] = frozen(copy.fair.of(node))
        gone = dict(given.get(node, {}))
        if gift.claim not in seen:
            _add(gone, gift.claim)
        _, priority, _, created_ms = seat.declared
        found = rank(before[node], given=gone, priority=priority, created_ms=created_ms)
        return *found.backwards, gift.claim.victim_order

    contest = Contest(copy.ledgers.total, sorted(rows), lambda queue: rows[queue].head, ranked)
    while (queue := contest.next()) is not None:
        gift = rows[queue].pop()
        if gift.claim not in seen:
            seen.add(gift.claim)
            for node in copy.path(queue):
                _add(given.setdefault(node, {}), gift.claim)
        yield gift
        contest.settle(queue)


def _add(given: Given, claim: Claim) -> None:
    """Count a gang as gone, even where only a part of it would be given back."""
    for what, amount in claim.usage.items():
        given[what] = given.get(what, 0) + amount


class FairGivers:
    """What a preemptor may take from queues with more than their right, and in which order."""

    def __init__(self, copy: WorkingCopy, preemptor: Preemptor) -> None:
        self._copy = copy
        self._queue = preemptor.leaf.queue.name
        self._reclaim = Reclaim(
            copy.fair.of,
            copy.path(self._queue),
            preemptor.amounts,
            copy.policy.take_by_share,
            Fraction(copy.policy.saturation_percent, 100),
        )
        self._open = self._reclaim.is_within_share

    def in_order(self, lines: dict[str, Iterator[Victim]]) -> Iterator[Victim]:
        """From the queue that is furthest above its share first; the own queue last."""
        own = lines.get(self._queue)
        if self._open:
            others = {queue: line for queue, line in lines.items() if queue != self._queue}
            yield from in_giving_order(self._copy, others)
        if own is not None:
            yield from own

    def lets(self, victim: Victim, core: Sequence[Charge], surplus: Sequence[Charge], /) -> bool:
        """Whether a victim of another queue may be taken as usage is now: its core comes last."""
        if not self._open:
            return False
        path = self._copy.path(victim.claim.queue)
        credit(surplus)
        lets = self._reclaim.lets(path, core)
        charge(surplus)
        if not lets:
            return False
        within = self._reclaim.is_deserved(path)
        victim.rule = EvictionRule.RECLAIM if within else EvictionRule.FAIR_SHARE
        return True
