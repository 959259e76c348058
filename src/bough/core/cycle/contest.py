"""Whose turn it is, at every level of the quota tree.

At each node, down to a queue, the child goes first whose next step ranks first. A child's rank
changes only with its own use, so after each turn one path is put in order again. The caller says
how nodes rank: `by_weight` here, by shares in `together` and `giving_queues`.

When idle capacity is shared by weight, a contender is a queue's next request. A child for which
others were told to end goes first, so that no other takes the room; then one that would stay within
its quota, then the one of higher priority. Among equals the emptiest goes first or, of those that
borrow, the one whose excess is smallest for its weight; then the one that has waited longest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from heapq import heappop, heappush
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from bough.core.quota.account import Account
from bough.core.quota.tree import QuotaTree
from bough.model.quota import Amounts, FlavorResource, NodeKind, TreeNode

#: Ratios are compared in this many parts of a whole: as integers, which is fast.
PARTS = 10**12
#: The order among equals: priority (negated), standing, submit time, name.
Order = tuple[int, int, int, str]
#: How far from its turn: those first for which others were told to end, then those within quota,
#: then by priority (negated), then by excess, then by the order among equals.
WeightRank = tuple[bool, bool, int, bool, int, int, Order]
#: Whatever ranks are made of; the smaller goes first.
Rank = tuple[object, ...]


class Contender(msgspec.Struct, frozen=True, gc=False):
    """What a queue would start next."""

    order: Order
    request: Amounts
    #: Whether others were told to end for something in its line.
    nominated: bool = False
    queue: str = ""


class Declared(NamedTuple):
    """What was declared for a node of the quota tree."""

    accounts: Mapping[FlavorResource, Account]
    priority: int
    #: Its part of what is left over.
    weight: Fraction
    #: Since when there is a node of this name.
    created_ms: int


Next = TypeVar("Next")
_CHILDLESS: list[Any] = []
#: The rank of the only root, which has no other to be compared with.
_ALONE: Rank = ()


class Seat(Generic[Next]):
    """A node of the quota tree below which turns are given."""

    __slots__ = ("_declared", "_tree", "above", "below", "contender", "node", "rank")

    def __init__(self, tree: QuotaTree, node: TreeNode, above: Seat[Next] | None) -> None:
        self.node = node
        #: `None`: it is a root.
        self.above = above
        self._tree = tree
        #: What was declared for it, once that was asked for.
        self._declared: Declared | None = None
        #: What it would start next, and the rank that this has; `None`: nothing wants a turn.
        self.contender: Next | None = None
        self.rank: Rank | None = None
        #: Children by rank. Entries that are out of date stay until met. A queue has none.
        self.below: list[Ranked[Next]] = [] if node.kind is NodeKind.COHORT else _CHILDLESS

    def __lt__(self, other: Seat[Next]) -> bool:
        """Of equal rank, cohorts before queues, by name."""
        return self.node < other.node

    @property
    def declared(self) -> Declared:
        """What was declared for the node, with its accounts."""
        if self._declared is None:
            tree, node = self._tree, self.node
            self._declared = Declared(
                tree.accounts(node), tree.priority(node), tree.weight(node), tree.created_ms(node)
            )
        return self._declared


#: A child with the rank that it had when it was put in order.
Ranked = tuple[Rank, Seat[Next]]


class Contest(Generic[Next]):
    """Gives turns to queues. `head` names what a queue would do next, or `None` if it has no more.

    `rank` says how a node ranks with that; `None`: it has no turn as things are.
    """

    def __init__(
        self,
        tree: QuotaTree,
        queues: list[str],
        head: Callable[[str], Next | None],
        rank: Callable[[Seat[Next], Next], Rank | None],
    ) -> None:
        self._tree = tree
        self._head = head
        self._rank_of = rank
        self._seats: dict[TreeNode, Seat[Next]] = {}
        self._queues: dict[str, Seat[Next]] = {}
        #: The roots that have a seat; a single one is not ranked.
        self._tops: list[Seat[Next]] = []
        #: Roots by rank.
        self._roots: list[Ranked[Next]] = []
        self._enter(queues)

    def next(self) -> str | None:
        """The queue whose turn it is; `None` when none wants one."""
        best = self._best(self._roots)
        while best is not None and best.node.kind is not NodeKind.QUEUE:
            best = self._best(best.below)
        return None if best is None else best.node.name

    def settle(self, queue: str) -> None:
        """Put a queue in order again after its use, or its head, has changed."""
        seat = self._queues.get(queue) or self._seat(queue)
        contender = self._head(queue)
        while True:
            self._rank(seat, contender)
            if seat.above is None:
                return
            # A node wants what the first of its children wants.
            seat = seat.above
            best = self._best(seat.below)
            contender = None if best is None else best.contender

    def end(self) -> None:
        """Give no more turns, and let go of the seats, so that no garbage collection is needed.

        Seats refer to those below and above them, and most searches end long before all queues have
        given.
        """
        for seat in self._seats.values():
            seat.above = None

    def _enter(self, queues: list[str]) -> None:
        inner: dict[Seat[Next], None] = {}
        for queue in queues:
            seat = self._seat(queue)
            self._rank(seat, self._head(queue))
            above = seat.above
            if above is not None and above.above is None and above in inner:
                continue
            # Deepest first: a node is ranked once all nodes below it are.
            while seat.above is not None:
                seat = seat.above
                inner.pop(seat, None)
                inner[seat] = None
        for seat in inner:
            best = self._best(seat.below)
            self._rank(seat, None if best is None else best.contender)

    def _seat(self, queue: str) -> Seat[Next]:
        """The seat of a queue that has none yet, with those above it."""
        node = self._tree.node_of(queue)
        parent = self._tree.parent(node)
        above = None if parent is None else self._seats.get(parent)
        if above is None and parent is not None:
            # From the root down; the first queue of a cohort makes its seat, the others find it.
            for each in reversed(self._tree.path(parent)):
                above = self._seats.get(each) or self._sit(each, above)
        found = self._queues[queue] = self._sit(node, above)
        return found

    def _sit(self, node: TreeNode, above: Seat[Next] | None) -> Seat[Next]:
        # Not `Seat[Next](...)`: that takes as long as all the rest.
        seat: Seat[Next] = Seat(self._tree, node, above)
        self._seats[node] = seat
        if above is None:
            self._tops.append(seat)
            first = self._tops[0]
            if len(self._tops) == 2 and first.contender is not None:
                self._rank(first, first.contender)
        return seat

    def _rank(self, seat: Seat[Next], contender: Next | None) -> None:
        before, seat.contender = seat.rank, contender
        if contender is None:
            seat.rank = None
            return
        above = seat.above
        alone = above is None and len(self._tops) == 1
        rank = seat.rank = _ALONE if alone else self._rank_of(seat, contender)
        if rank is not None and rank != before:
            heappush(self._roots if above is None else above.below, (rank, seat))

    def _best(self, ranked: list[Ranked[Next]]) -> Seat[Next] | None:
        while ranked:
            rank, seat = ranked[0]
            if seat.rank == rank:
                return seat
            heappop(ranked)
        return None


def by_weight(seat: Seat[Contender], contender: Contender) -> WeightRank:
    """How a node ranks where idle capacity is shared by weight."""
    excess = filled = before = 0
    accounts, priority, weight, _ = seat.declared
    for what, amount in contender.request.items():
        account = accounts.get(what)
        if account is None:
            continue
        quota, usage = account.subtree_quota, account.usage
        if usage + amount > quota:
            # As a part of what the parent has, so that one resource can be compared with another.
            whole = max(1, (account.parent or account).subtree_quota)
            excess = max(excess, PARTS * (usage + amount - quota) // whole + 1)
        elif amount > 0:
            filled = max(filled, PARTS * (usage + amount) // quota)
            before = max(before, PARTS * usage // quota)
    relative = filled
    if excess:
        relative = excess * weight.denominator // weight.numerator if weight else excess
    return (
        not contender.nominated,
        excess > 0,
        -priority,
        excess > 0 and not weight,
        relative,
        before,
        contender.order,
    )
