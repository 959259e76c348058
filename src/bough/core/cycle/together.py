"""Gangs that are judged together, against one state, then put in order and decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter, itemgetter

import msgspec

from bough.core.cycle.claim import Claim
from bough.core.cycle.contest import Contest, Rank, Seat
from bough.core.cycle.cycle import Cycle
from bough.core.cycle.decide_pod_gang import serve_pods
from bough.core.cycle.decide_pod_sets import charges_of, decide
from bough.core.cycle.flavors import FlavorAssignment
from bough.core.cycle.forest import Leaf, reach_of
from bough.core.cycle.gates import bar, hold_up, is_strict
from bough.core.cycle.judge import Judgement, judge
from bough.core.cycle.offers import wants_of
from bough.core.cycle.turns import heads
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.quota.account import charge, charge_here, credit
from bough.core.quota.taken_share import is_borrowing
from bough.model.policy import OrderKey, Policy
from bough.model.quota import NodeKind, TreeNode
from bough.model.reason import WaitReason


def line_up(cycle: Cycle) -> Iterable[Judgement]:
    """Every gang that the cycle looks at and that nothing bars, in the order of their decisions.

    Where they are compared level by level, what was decided before counts.
    """
    copy = cycle.copy
    judgements: list[Judgement] = []
    keeps_promises = copy.policy.nominated_first
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
            promised = progress.promised if keeps_promises else ()
            judge(copy, judgement, tried=progress.tried, promised=promised)
        else:
            judgement.assignment = _wanted(copy, claim.leaf, claim)
        judgements.append(judgement)
    if copy.policy.orders_by_level:
        return LevelOrder(cycle, judgements)
    judgements.sort(key=decision_order(copy.policy))
    return judgements


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


def decision_order(policy: Policy) -> Callable[[Judgement], tuple[object, ...]]:
    """What judgements are sorted by, apart from what depends on the level of the tree.

    What is equal stays in the order of queues and their lines.
    """
    paths = [_CRITERIA[key] for key in policy.order if key in _CRITERIA]
    # A getter of two attributes or more gives a tuple.
    return attrgetter(*paths, "claim.gang.uid") if paths else _uid_alone


def _uid_alone(judgement: Judgement) -> tuple[str]:
    return (judgement.claim.gang.uid,)


def _wanted(copy: WorkingCopy, leaf: Leaf, claim: Claim) -> FlavorAssignment:
    """What a gang of pods wants most, and from how far up the tree its queue would borrow that."""
    offers = wants_of(copy, claim).offers
    request = offers[0].request if offers else {}
    heights = (reach_of(leaf, leaf.account(what), n).height for what, n in request.items())
    wanted = FlavorAssignment(max(heights, default=0))
    wanted.usage = request
    return wanted


#: A judgement with what it is compared by at every level.
Entry = tuple[tuple[object, ...], Judgement]


class LevelOrder:
    """Judgements in an order that is decided at each level of the tree, one after the other.

    At each node, the child comes first whose next gang ranks first by the criteria of the policy;
    the child's share is compared with what that gang would get counted in it.
    """

    def __init__(self, cycle: Cycle, judgements: Iterable[Judgement]) -> None:
        self._cycle = cycle
        self._copy = cycle.copy
        order = self._copy.policy.order
        #: Those that depend on the level, each with its position.
        self._by_level = [(at, key) for at, key in enumerate(order) if key not in _CRITERIA]
        fix = decision_order(self._copy.policy)
        #: By queue, each in the order that does not depend on levels.
        #: The last one is next.
        self._lines: dict[str, list[Entry]] = {}
        for each in judgements:
            queue = each.claim.queue
            line = self._lines.get(queue)
            if line is None:
                self._lines[queue] = [(fix(each), each)]
            else:
                line.append((fix(each), each))
        for line in self._lines.values():
            if len(line) > 1:
                line.sort(key=itemgetter(0))
                line.reverse()
        #: The queue that was last decided about; `None`: none yet.
        self._decided: str | None = None

    def __iter__(self) -> Iterator[Judgement]:
        """The next one, after what was decided about those before it."""
        lines = self._lines
        contest = Contest(self._copy.ledgers.total, sorted(lines), self._head, self._rank)
        while (queue := contest.next()) is not None:
            yield lines[queue].pop()[1]
            self._decided = queue
            contest.settle(queue)

    def _head(self, queue: str) -> Entry | None:
        line = self._lines[queue]
        return line[-1] if line else None

    def _ending(self) -> list[Claim]:
        """What was told to end in this cycle, and counts until it has."""
        copy = self._copy
        if self._decided is None or not copy.policy.ending_counts:
            return []
        root = copy.path(self._decided)[-1]
        taken = self._cycle.outcome.taken.values()
        return [claim for claim in taken if claim.counted and copy.path(claim.queue)[-1] == root]

    def _rank(self, seat: Seat[Entry], entry: Entry) -> Rank:
        fixed, judgement = entry
        if seat.above is None:
            # A root borrows from none: its share is the same as that of any other.
            return fixed
        charges = charges_of(judgement)
        if seat.node.kind is NodeKind.QUEUE and not self._cycle.outcome.taken:
            charge_here(charges)
            rank = self._rank_as_is(seat.node, entry)
            charge_here(charges, -1)
            return rank
        ending = self._ending() if self._cycle.outcome.taken else ()
        for claim in ending:
            charge(claim.charges)
        charge(charges)
        rank = self._rank_as_is(seat.node, entry)
        credit(charges)
        for claim in ending:
            credit(claim.charges)
        return rank

    def _rank_as_is(self, node: TreeNode, entry: Entry) -> Rank:
        rank = list(entry[0])
        for at, key in self._by_level:
            if key is OrderKey.SHARE:
                rank.insert(at, self._copy.shares.rank(node))
            else:
                asked = [what for what, n in entry[1].assignment.usage.items() if n > 0]
                rank.insert(at, is_borrowing(self._copy.ledgers.total, node, asked))
        return tuple(rank)


#: What each criterion that does not depend on a level sorts by; the smaller goes first.
_CRITERIA: dict[OrderKey, str] = {
    OrderKey.HOLDS_QUOTA: "lacks_quota",
    OrderKey.NOMINATED: "not_nominated",
    OrderKey.BORROWING_HEIGHT: "assignment.height",
    OrderKey.PRIORITY: "claim.standing.negative_priority",
    OrderKey.TIMESTAMP: "claim.standing.since_ms",
}
