"""Whose turn it is when idle capacity is shared: by weight, at every level of the quota tree.

At each node the child goes first for which others were told to end, so that no other takes the
room; then one that would stay within its quota, then the one of higher priority. Among equals the
emptiest goes first or, of those that borrow, the one whose excess is smallest for its weight; then
the one that has waited longest. A child's standing changes only with its own use, so after each
turn one path is put in order again. A contender is a queue's next request.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from bough.core.quota.tree import QuotaTree
from bough.model.quota import Amounts, NodeKind, TreeNode

#: What is compared is counted in so many parts of a whole: integers, and fast.
PARTS = 10**12
#: The order among equals: priority (negated), standing, submit time, name.
Order = tuple[int, int, int, str]
#: How far from its turn: those first for which others were told to end, then those within quota,
#: then by priority (negated), then by excess, then by the order among equals.
Rank = tuple[bool, bool, int, bool, int, int, Order]


class Contender(NamedTuple):
    """What a queue would start next."""

    order: Order
    request: Amounts
    #: Whether others were told to end for something in its line.
    nominated: bool = False


class Contest:
    """Gives turns to queues. `head` names a queue's next request, or `None` if it has no more."""

    def __init__(
        self, tree: QuotaTree, queues: list[str], head: Callable[[str], Contender | None]
    ) -> None:
        self._tree = tree
        self._head = head
        #: For each inner node: its children by rank. Entries that are out of date stay until met.
        self._heaps: dict[TreeNode | None, list[tuple[Rank, TreeNode]]] = {}
        #: What counts for each node now; `None`: nothing below it wants a turn.
        self._ranks: dict[TreeNode, Rank | None] = {}
        self._enter(queues)

    def next(self) -> str | None:
        """The queue whose turn it is; `None` when none wants one."""
        node: TreeNode | None = None
        while True:
            best = self._best(node)
            if best is None:
                return None
            if best[1].kind is NodeKind.QUEUE:
                return best[1].name
            node = best[1]

    def settle(self, queue: str) -> None:
        """Put a queue in order again after its use, or its head, has changed."""
        child = TreeNode(NodeKind.QUEUE, queue)
        contender = self._head(queue)
        self._rank(child, contender)
        for node in self._tree.path(child)[1:]:
            best = self._best(node)
            contender = None if best is None else self._contender_of(best[1])
            self._rank(node, contender)

    def _enter(self, queues: list[str]) -> None:
        inner: dict[TreeNode, None] = {}
        for name in queues:
            path = self._tree.path(TreeNode(NodeKind.QUEUE, name))
            self._rank(path[0], self._head(name))
            # Deeper nodes come first: a node is ranked when all below it are.
            for node in path[1:]:
                inner.pop(node, None)
                inner[node] = None
        for heap in self._heaps.values():
            heapify(heap)
        for node in inner:
            best = self._best(node)
            self._rank(node, None if best is None else self._contender_of(best[1]))

    def _contender_of(self, node: TreeNode) -> Contender | None:
        while node.kind is not NodeKind.QUEUE:
            best = self._best(node)
            if best is None:
                return None
            node = best[1]
        return self._head(node.name)

    def _rank(self, node: TreeNode, contender: Contender | None) -> None:
        if contender is None:
            self._ranks[node] = None
            return
        excess = filled = before = 0
        for what, amount in contender.request.items():
            account = self._tree.account(node, what)
            if account is None:
                continue
            if amount > account.balance:
                # Of what the parent has, so that one resource can be compared with another.
                whole = max(1, (account.parent or account).subtree_quota)
                excess = max(excess, PARTS * (amount - account.balance) // whole + 1)
            elif amount > 0:
                quota = account.subtree_quota
                filled = max(filled, PARTS * (account.usage + amount) // quota)
                before = max(before, PARTS * account.usage // quota)
        weight = self._tree.weight(node)
        relative = filled
        if excess:
            relative = excess * weight.denominator // weight.numerator if weight else excess
        borrows = excess > 0
        rank: Rank = (
            not contender.nominated,
            borrows,
            -self._tree.priority(node),
            borrows and not weight,
            relative,
            before,
            contender.order,
        )
        if self._ranks.get(node) != rank:
            self._ranks[node] = rank
            heappush(self._heaps.setdefault(self._tree.parent(node), []), (rank, node))

    def _best(self, node: TreeNode | None) -> tuple[Rank, TreeNode] | None:
        heap = self._heaps.get(node, [])
        while heap:
            rank, child = heap[0]
            if self._ranks.get(child) == rank:
                return heap[0]
            heappop(heap)
        return None
