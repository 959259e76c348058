"""Gangs that are judged together, against one state, then put in order and decided."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import msgspec

from bough.core.cycle.claim import Claim
from bough.core.cycle.contest import Contest, Rank, Seat
from bough.core.cycle.cycle import Cycle
from bough.core.cycle.decide import charges_of, decide
from bough.core.cycle.flavors import FlavorAssignment
from bough.core.cycle.forest import Leaf, reach_of
from bough.core.cycle.gates import bar, hold_up, is_strict
from bough.core.cycle.judge import Judgement, judge
from bough.core.cycle.offers import wants_of
from bough.core.cycle.start import serve_pods
from bough.core.cycle.turns import heads
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.quota.account import charge, credit
from bough.core.quota.share import is_borrowing
from bough.model.policy import OrderKey, Policy
from bough.model.quota import TreeNode
from bough.model.reason import WaitReason


def line_up(cycle: Cycle) -> Iterable[Judgement]:
    """Every gang that the cycle looks at and nothing bars, in the order of their decisions.

    Where they are compared level by level, what was decided before counts.
    """
    copy = cycle.copy
    judgements: list[Judgement] = []
    for claim in heads(copy):
        barred = bar(copy, claim)
        if barred is not None or claim.leaf is None:
            if barred is not None:
                cycle.outcome.wait(barred)
                hold_up(cycle, claim)
            continue
        progress = copy.progress(claim.name)
        judgement = Judgement(claim.leaf, claim, nominated=progress.nominated)
        judgement.excluded = judgement.spared = copy.spared_by(claim.name)
        if claim.counted:
            promised = progress.promised if copy.policy.nominated_first else ()
            judge(copy, judgement, tried=progress.tried, promised=promised)
        else:
            judgement.assignment = _wanted(copy, claim.leaf, claim)
        judgements.append(judgement)
    judgements.sort(key=decision_order(copy.policy))
    return LevelOrder(cycle, judgements) if copy.policy.orders_by_level else judgements


def serve_judged(cycle: Cycle, judgement: Judgement) -> None:
    """Decide about a gang in its turn. Places are looked for only now: they are not shared out."""
    claim = judgement.claim
    if claim.counted:
        served = decide(cycle, judgement)
    else:
        served = serve_pods(cycle, claim)
        if not served:
            wait = cycle.outcome.waits[claim.name]
            parked = wait.reason == WaitReason.PODS or not is_strict(judgement.leaf)
            cycle.outcome.wait(msgspec.structs.replace(wait, parked=parked))
    if not served:
        hold_up(cycle, claim)


def decision_order(policy: Policy) -> Callable[[Judgement], list[object]]:
    """What judgements are sorted by; what is equal stays in the order of queues and their lines."""
    criteria = [*(_CRITERIA[key] for key in policy.order if key in _CRITERIA), _uid]
    return lambda judgement: [criterion(judgement) for criterion in criteria]


def _uid(judgement: Judgement) -> object:
    return judgement.claim.gang.uid


def _wanted(copy: WorkingCopy, leaf: Leaf, claim: Claim) -> FlavorAssignment:
    """What a gang of pods wants most, and from how far up the tree its queue would borrow that."""
    offers = wants_of(copy, claim).offers
    request = offers[0].request if offers else {}
    heights = (reach_of(leaf, leaf.account(what), n).height for what, n in request.items())
    wanted = FlavorAssignment(max(heights, default=0))
    wanted.usage = request
    return wanted


class LevelOrder:
    """Judgements in an order that is decided at each level of the tree, one after the other.

    At each node the child comes first whose next gang does by the criteria of the policy: with what
    that gang would get, the share of the child may be smaller.
    """

    def __init__(self, cycle: Cycle, judgements: Iterable[Judgement]) -> None:
        self._cycle = cycle
        self._copy = cycle.copy
        self._keys = self._copy.policy.order
        #: By queue, each in the order that does not depend on levels.
        self._lines: dict[str, deque[Judgement]] = {}
        for judgement in judgements:
            self._lines.setdefault(judgement.claim.queue, deque()).append(judgement)

    def __iter__(self) -> Iterator[Judgement]:
        """The next one, after what was decided about those before it."""
        lines = self._lines
        contest = Contest(self._copy.ledgers.total, sorted(lines), self._head, self._rank)
        while (queue := contest.next()) is not None:
            yield lines[queue].popleft()
            ending = self._ending(queue)
            for claim in ending:
                charge(claim.charges)
            contest.settle(queue)
            for claim in ending:
                credit(claim.charges)

    def _head(self, queue: str) -> Judgement | None:
        line = self._lines[queue]
        return line[0] if line else None

    def _ending(self, queue: str) -> list[Claim]:
        """What was told to end in this cycle, and counts until it has."""
        copy = self._copy
        if not self._cycle.outcome.taken or not copy.policy.ending_counts:
            return []
        root = copy.path(queue)[-1]
        taken = self._cycle.outcome.taken.values()
        return [claim for claim in taken if claim.counted and copy.path(claim.queue)[-1] == root]

    def _rank(self, seat: Seat[Judgement], judgement: Judgement) -> Rank:
        charges = charges_of(judgement)
        charge(charges)
        rank = tuple([self._criterion(key, seat.node, judgement) for key in self._keys])
        credit(charges)
        return (*rank, judgement.claim.gang.uid)

    def _criterion(self, key: OrderKey, node: TreeNode, judgement: Judgement) -> object:
        if key is OrderKey.SHARE:
            return self._copy.shares.rank(node)
        if key is OrderKey.WITHIN_QUOTA:
            usage = judgement.assignment.usage.items()
            asked = (what for what, amount in usage if amount > 0)
            return is_borrowing(self._copy.ledgers.total, node, asked)
        return _CRITERIA[key](judgement)


#: What each criterion that does not depend on a level sorts by; the smaller goes first.
_CRITERIA: dict[OrderKey, Callable[[Judgement], object]] = {
    OrderKey.HOLDS_QUOTA: lambda each: not each.claim.gang.has("QuotaReserved"),
    OrderKey.NOMINATED: lambda each: not each.nominated,
    OrderKey.BORROWING_HEIGHT: lambda each: each.assignment.height,
    OrderKey.PRIORITY: lambda each: each.claim.standing.negative_priority,
    OrderKey.TIMESTAMP: lambda each: each.claim.standing.since_ms,
}
