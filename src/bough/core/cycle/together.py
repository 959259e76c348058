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
from bough.model.quota import Amounts, NodeKind, TreeNode
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
        #: Those that depend on the level, each with its position.
        self._by_level = [(at, key) for at, key in enumerate(self._keys) if key in _AT_A_ROOT]
        #: What does not change from level to level.
        self._fixed: dict[Judgement, Rank] = {}
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
        fixed = self._fixed.get(judgement)
        if fixed is None:
            fixed = self._fixed[judgement] = self._fix(judgement)
        if seat.above is None:
            # A root borrows from none: its share is the same as that of any other.
            return fixed
        rank = list(fixed)
        if seat.node.kind is NodeKind.QUEUE:
            for at, key in self._by_level:
                rank[at] = self._criterion(key, seat.node, judgement.assignment.usage)
            return tuple(rank)
        charges = charges_of(judgement)
        charge(charges)
        for at, key in self._by_level:
            rank[at] = self._criterion(key, seat.node, judgement.assignment.usage, counted=True)
        credit(charges)
        return tuple(rank)

    def _fix(self, judgement: Judgement) -> Rank:
        """What a judgement is compared by at every level; what depends on that, as at a root."""
        found = (
            _CRITERIA[key](judgement) if key in _CRITERIA else _AT_A_ROOT[key] for key in self._keys
        )
        return (*found, judgement.claim.gang.uid)

    def _criterion(
        self, key: OrderKey, node: TreeNode, usage: Amounts, *, counted: bool = False
    ) -> object:
        """By what a node is compared with this use, which is `counted` already or not."""
        extra = _NOTHING if counted else usage
        if key is OrderKey.SHARE:
            return self._copy.shares.rank(node, extra)
        asked = [what for what, amount in usage.items() if amount > 0]
        return is_borrowing(self._copy.ledgers.total, node, asked, extra)


_NOTHING: Amounts = {}
#: What those that depend on the level are where nothing is borrowed.
_AT_A_ROOT: dict[OrderKey, object] = {OrderKey.SHARE: (False, 0), OrderKey.WITHIN_QUOTA: False}
#: What each criterion that does not depend on a level sorts by; the smaller goes first.
_CRITERIA: dict[OrderKey, Callable[[Judgement], object]] = {
    OrderKey.HOLDS_QUOTA: lambda each: not each.claim.gang.has("QuotaReserved"),
    OrderKey.NOMINATED: lambda each: not each.nominated,
    OrderKey.BORROWING_HEIGHT: lambda each: each.assignment.height,
    OrderKey.PRIORITY: lambda each: each.claim.standing.negative_priority,
    OrderKey.TIMESTAMP: lambda each: each.claim.standing.since_ms,
}
