"""Whose turn it is when idle capacity is shared: by weight, at every level of the quota tree.

At each node the child goes first for which others were told to end, so that no other takes the
room; then one that would stay within its quota, then the one of higher priority. Among equals the
emptiest goes first or, of those that borrow, the one whose excess is smallest for its weight; then
the one that has waited longest. A child's standing changes only with its own use, so after each
turn one path is put in order again. A contender is a queue's next request.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

import msgspec

from bough.core.quota.tree import QuotaTree
from bough.model.quota import Amounts, NodeKind, TreeNode

#: What is compared is counted in so many parts of a whole: integers, and fast.
PARTS = 10**12
#: The order among equals: priority (negated), standing, submit time, name.
Order = tuple[int, int, int, str]
#: How far from its turn: those first for which others were told to end, then those within quota,
#: then by priority (negated), then by excess, then by the order among equals.
Rank = tuple[bool, bool, int, bool, int, int, Order]


class Contender(msgspec.Struct, frozen=True, gc=False):
    """What a queue would start next."""

    order: Order
    request: Amounts
    #: Whether others were told to end for something in its line.
    nominated: bool = False


#: The rank of an only root: it is compared with none.
_ALONE: Rank = (False, False, 0, False, 0, 0, (0, 0, 0, ""))


class _Seat:
    """A node of the quota tree below which turns are given."""

    __slots__ = ("above", "accounts", "below", "contender", "node", "priority", "rank", "weight")

    def __init__(self, tree: QuotaTree, node: TreeNode, above: _Seat | None) -> None:
        self.node = node
        #: `None`: it is a root.
        self.above = above
        self.accounts = tree.accounts(node)
        self.priority = tree.priority(node)
        self.weight = tree.weight(node)
        #: What it would start next, and the rank that this has; `None`: nothing wants a turn.
        self.contender: Contender | None = None
        self.rank: Rank | None = None
        #: Children by rank. Entries that are out of date stay until met.
        self.below: list[tuple[Rank, TreeNode]] = []


class Contest:
    """Gives turns to queues. `head` names a queue's next request, or `None` if it has no more."""

    def __init__(
        self, tree: QuotaTree, queues: list[str], head: Callable[[str], Contender | None]
    ) -> None:
        self._tree = tree
        self._head = head
        self._seats: dict[TreeNode, _Seat] = {}
        self._queues: dict[str, _Seat] = {}
        self._only_root = len(tree.roots()) == 1
        #: Roots by rank.
        self._roots: list[tuple[Rank, TreeNode]] = []
        self._enter(queues)

    def next(self) -> str | None:
        """The queue whose turn it is; `None` when none wants one."""
        best = self._best(self._roots)
        while best is not None and best.node.kind is not NodeKind.QUEUE:
            best = self._best(best.below)
        return None if best is None else best.node.name

    def settle(self, queue: str) -> None:
        """Put a queue in order again after its use, or its head, has changed."""
        seat: _Seat | None = self._queues.get(queue) or self._seat(queue)
        contender = self._head(queue)
        while seat is not None:
            self._rank(seat, contender)
            # A node wants what the first of its children wants.
            seat = seat.above
            best = None if seat is None else self._best(seat.below)
            contender = None if best is None else best.contender

    def _enter(self, queues: list[str]) -> None:
        inner: dict[_Seat, None] = {}
        for queue in queues:
            seat = self._seat(queue)
            self._rank(seat, self._head(queue))
            # Deeper ones come first: a node is ranked when all below it are.
            while seat.above is not None:
                seat = seat.above
                inner.pop(seat, None)
                inner[seat] = None
        for seat in inner:
            best = self._best(seat.below)
            self._rank(seat, None if best is None else best.contender)

    def _seat(self, queue: str) -> _Seat:
        """The seat of a queue that has none yet, with those above it."""
        first, *others = reversed(self._tree.path(TreeNode(NodeKind.QUEUE, queue)))
        seat = self._seats.get(first) or self._sit(first, None)
        for node in others:
            seat = self._seats.get(node) or self._sit(node, seat)
        self._queues[queue] = seat
        return seat

    def _sit(self, node: TreeNode, above: _Seat | None) -> _Seat:
        seat = self._seats[node] = _Seat(self._tree, node, above)
        return seat

    def _rank(self, seat: _Seat, contender: Contender | None) -> None:
        before, seat.contender = seat.rank, contender
        if contender is None:
            seat.rank = None
            return
        above = seat.above
        seat.rank = _ALONE if above is None and self._only_root else _rank_of(seat, contender)
        if seat.rank != before:
            heappush(self._roots if above is None else above.below, (seat.rank, seat.node))

    def _best(self, ranked: list[tuple[Rank, TreeNode]]) -> _Seat | None:
        while ranked:
            rank, node = ranked[0]
            seat = self._seats[node]
            if seat.rank == rank:
                return seat
            heappop(ranked)
        return None


def _rank_of(seat: _Seat, contender: Contender) -> Rank:
    excess = filled = before = 0
    for what, amount in contender.request.items():
        account = seat.accounts.get(what)
        if account is None:
            continue
        quota, usage = account.subtree_quota, account.usage
        if usage + amount > quota:
            # Of what the parent has, so that one resource can be compared with another.
            whole = max(1, (account.parent or account).subtree_quota)
            excess = max(excess, PARTS * (usage + amount - quota) // whole + 1)
        elif amount > 0:
            filled = max(filled, PARTS * (usage + amount) // quota)
            before = max(before, PARTS * usage // quota)
    weight = seat.weight
    relative = filled
    if excess:
        relative = excess * weight.denominator // weight.numerator if weight else excess
    return (
        not contender.nominated,
        excess > 0,
        -seat.priority,
        excess > 0 and not weight,
        relative,
        before,
        contender.order,
    )
