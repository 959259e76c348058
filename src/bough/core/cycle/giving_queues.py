"""Which queue gives back next where shares decide, and whether it may be made to.

A contest at every level of the quota tree: the child with the largest share gives first. What a
gang asks for is counted on its side of the tree while shares are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol

from bough.core.cycle.contest import Contest, Next, Rank, Seat
from bough.core.cycle.reclaim_tiers import Preemptor
from bough.core.cycle.victim import Victim
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.quota.account import Charge, charge, charge_here, credit
from bough.core.quota.taken_share import ShareRank
from bough.errors import Broken
from bough.model.plan import EvictionRule
from bough.model.policy import ShareRule
from bough.model.quota import NodeKind, TreeNode


class Sides(NamedTuple):
    """For two queues, the two nodes just below the lowest node that is above both."""

    own: TreeNode
    other: TreeNode


class Giving(Protocol):
    """What a preemptor may take from other queues, and in which order."""

    def in_order(self, lines: dict[str, Iterator[Victim]]) -> Iterator[Victim]:
        """Which victim comes next, and from which queue; `lines`: what each queue would give."""
        ...

    def lets(self, victim: Victim, core: Sequence[Charge], surplus: Sequence[Charge], /) -> bool:
        """Whether a victim of another queue may be taken as usage is now.

        `core`: what its gang cannot do without counts; `surplus`: what else of it goes with that.
        """
        ...


class Givers:
    """What a preemptor may take, and in which order; nothing of it is counted between two calls."""

    def __init__(self, copy: WorkingCopy, preemptor: Preemptor) -> None:
        self._copy = copy
        self._shares = copy.shares
        self._preemptor = preemptor
        leaf = preemptor.leaf
        self._queue = leaf.queue.name
        self._path = copy.path(self._queue)
        self._charges = [(leaf.account(what), n) for what, n in preemptor.amounts.items()]
        rules = copy.policy.take_by_share
        self._rules = tuple(rule for rule in rules if rule is not ShareRule.WITHIN_QUOTA)
        charge(self._charges)
        within = ShareRule.WITHIN_QUOTA in rules and leaf.is_within_nominal(preemptor.scarce)
        credit(self._charges)
        #: Whether it takes from all that borrow, whatever their shares are.
        self._entitled = preemptor.guaranteed or within
        #: By queue, and the cohort below which it is taken from.
        self._known_sides: dict[tuple[str, TreeNode], Sides] = {}
        #: How nodes on its side rank, with what it asks for.
        self._own_ranks: dict[TreeNode, ShareRank] = {}
        #: The victim that was named last.
        self._named: Victim | None = None

    def in_order(self, lines: dict[str, Iterator[Victim]]) -> Iterator[Victim]:
        """From the queue with the largest share first; `lines`: what each queue would give."""
        # A queue that does not borrow now does not start to while others give back.
        rows = {queue: Row(line) for queue, line in lines.items() if self._may_give(queue)}
        # Victims that the first rule spares are tried by the second, in the same order: the first
        # of each queue.
        left: dict[str, Victim] = {}
        yield from self.in_turn(rows, lambda row: self._next_of(row, left))
        for rule in self._rules[1:]:
            yield from self._one_of_each(rule, left)

    def in_turn(
        self, rows: dict[str, Row[Victim]], choose: Callable[[Row[Victim]], Victim | None]
    ) -> Iterator[Victim]:
        """What is chosen of each row whose turn it is, as long as there is anything."""
        total = self._copy.ledgers.total
        self._own_ranks.clear()
        charge(self._charges)
        contest = Contest(total, sorted(rows), lambda queue: rows[queue].head, self._rank)
        try:
            while (queue := contest.next()) is not None:
                victim = choose(rows[queue])
                if victim is not None:
                    self._named = victim
                    credit(self._charges)
                    yield victim
                    self._own_ranks.clear()
                    charge(self._charges)
                contest.settle(queue)
        finally:
            contest.end()
        credit(self._charges)

    def lets(self, victim: Victim, *_parts: Sequence[Charge]) -> bool:
        """Whether it may be taken as usage is now, by any rule; whatever part of it is surplus."""
        if victim is self._named:
            return True
        self._own_ranks.clear()
        charge(self._charges)
        borrows = all(map(self._shares.is_borrowing, self._between(victim)))
        fair = borrows and (
            self._entitled or any(self._holds(rule, victim) for rule in self._rules)
        )
        credit(self._charges)
        return fair

    def _may_give(self, queue: str) -> bool:
        """Whether it may: one that takes what promises leave may exceed that and borrow nothing."""
        if queue == self._queue or self._copy.forest.leaves[queue].promises is None:
            return True
        return self._shares.is_borrowing(self._copy.path(queue)[0])

    def _one_of_each(self, rule: ShareRule, left: dict[str, Victim]) -> Iterator[Victim]:
        """By another rule, the first of every queue."""

        def choose(row: Row[Victim]) -> Victim | None:
            victim = row.pop()
            return victim if self._holds(rule, victim) else None

        if left:
            rows = {queue: Row(iter((victim,))) for queue, victim in left.items()}
            yield from self.in_turn(rows, choose)

    def _next_of(self, row: Row[Victim], left: dict[str, Victim]) -> Victim | None:
        """The first of a queue that may be taken; what may not is left for the next rule."""
        head = row.head
        if head is None:
            return None
        if head.own or self._entitled:
            if not head.own:
                head.rule = EvictionRule.RECLAIM
            return row.pop()
        sides = self._sides(head)
        own = self._own_rank(sides.own)
        if own > self._shares.rank(sides.other) or not self._rules:
            # A queue that already has less may not be made to give anything, by any rule; nor
            # later, where the preemptor's own queue is beside it and has given all it could by now.
            if sides.own != self._path[0]:
                left.setdefault(head.claim.queue, head)
            row.close()
            return None
        #: How much the victims count that may not be taken: others that count the same may not,
        #: either.
        refused: list[Sequence[Charge]] = []
        while (head := row.head) is not None:
            if head.charges not in refused:
                if self._gives(self._rules[0], own, sides.other, head):
                    return row.pop()
                refused.append(head.charges)
            left.setdefault(head.claim.queue, head)
            row.pop()
        return None

    def _holds(self, rule: ShareRule, victim: Victim) -> bool:
        """Whether a rule lets it be taken; what the preemptor asks for is counted."""
        sides = self._sides(victim)
        return self._gives(rule, self._own_rank(sides.own), sides.other, victim)

    def _own_rank(self, node: TreeNode) -> ShareRank:
        """How a node on the preemptor's side ranks; the same until something is taken."""
        found = self._own_ranks.get(node)
        if found is None:
            found = self._own_ranks[node] = self._shares.rank(node)
        return found

    def _gives(self, rule: ShareRule, own: ShareRank, other: TreeNode, victim: Victim) -> bool:
        """Whether the other side may be made to give a victim to one that has this share."""
        if rule is ShareRule.INITIAL_SHARE:
            return own < self._shares.rank(other)
        if other.kind is NodeKind.QUEUE:
            charge_here(victim.charges, -1)
            final = self._shares.rank(other)
            charge_here(victim.charges)
        else:
            credit(victim.charges)
            final = self._shares.rank(other)
            charge(victim.charges)
        return own <= final

    def _sides(self, victim: Victim) -> Sides:
        key = (victim.claim.queue, victim.level)
        sides = self._known_sides.get(key)
        if sides is None:
            path = self._copy.path(victim.claim.queue)
            own = self._path[self._path.index(victim.level) - 1]
            sides = self._known_sides[key] = Sides(own, path[path.index(victim.level) - 1])
        return sides

    def _between(self, victim: Victim) -> Sequence[TreeNode]:
        """The victim's queue, and the cohorts between it and the preemptor."""
        path = self._copy.path(victim.claim.queue)
        return path[: path.index(victim.level)]

    def _rank(self, seat: Seat[Victim], victim: Victim) -> Rank | None:
        """The largest share first, cohorts before queues; of queues, which has the first victim.

        What does not borrow gives nothing, unless the preemptor is below it.
        """
        node = seat.node
        weightless, share = self._shares.rank(node)
        if not share and node not in self._path and not self._shares.is_borrowing(node):
            return None
        if node.kind is NodeKind.COHORT:
            return not weightless, -share, False
        claim = victim.claim
        return not weightless, -share, True, not claim.evicted, victim.own, claim.victim_order


class Row(Generic[Next]):
    """What a queue would give, one after the other."""

    __slots__ = ("_line", "head")

    def __init__(self, line: Iterator[Next]) -> None:
        self._line = line
        self.head: Next | None = next(line, None)

    def pop(self) -> Next:
        """Remove and return the first; there must be one."""
        head = self.head
        if head is None:
            raise Broken("a queue has the turn to give and has nothing")
        self.head = next(self._line, None)
        return head

    def close(self) -> None:
        """Give nothing more."""
        self.head = None
