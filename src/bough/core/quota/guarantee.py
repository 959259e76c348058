"""Guaranteed use: a quota tree in which nothing is borrowed, and promises are kept.

A cohort of quota P may have promised parts of it to some of its queues. With `used` the guaranteed
use, what it has promised twice is

    S = max(0, sum of max(quota, used) of the queues to which it promised
               + sum of used of its other queues - P)

What starts in a queue that takes the rest must leave S at 0; what starts within a promised quota
never changes S. So such a cohort has a second balance: the same arithmetic, in which a queue with a
promise lends nothing. That balance is P less the two sums, so S is 0 while it is not negative.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self, TypeVar

from msgspec.structs import replace

from bough.core.quota import account as arithmetic
from bough.core.quota.account import Account
from bough.core.quota.tree import QuotaTree, over_quota
from bough.core.undo import UndoLog
from bough.model.quota import (
    Amounts,
    Cohort,
    FlavorResource,
    NodeKind,
    Promise,
    Queue,
    Quota,
    TreeNode,
    quotas_of,
)
from bough.model.reason import Refusal, RefusalKind

Declared = TypeVar("Declared", Cohort, Queue)


class GuaranteedTree(QuotaTree):
    """A quota tree in which queues that take the rest are also held to the promises beside them."""

    def __init__(self, log: UndoLog | None = None) -> None:
        super().__init__(log)
        #: By queue, for the queues of a cohort that has promised something and has a rest.
        self._promises: dict[str, dict[FlavorResource, Account]] = {}
        #: Those of them that take the rest.
        self._rest: set[str] = set()

    @classmethod
    def of(
        cls, cohorts: Iterable[Cohort], queues: Iterable[Queue], log: UndoLog | None = None
    ) -> Self:
        """Build the tree from declarations, whatever they say of borrowing and lending."""
        return cls.like(QuotaTree.of(cohorts, queues, log))

    @classmethod
    def like(cls, other: QuotaTree) -> Self:
        """A tree of the same nodes in which nothing is used yet, and nothing is borrowed."""
        tree = super().like(other)
        accounts = [each for member in tree._members.values() for each in member.accounts.values()]
        for member in tree._members.values():
            member.quotas = {what: Quota(quota.nominal, 0) for what, quota in member.quotas.items()}
            for what in member.quotas:
                member.accounts[what].borrowing_limit = 0
        arithmetic.share_everything(accounts)
        declared = (member.declaration for member in tree._members.values())
        tree._promise([each for each in declared if isinstance(each, Queue)])
        return tree

    def admits(self, queue: str, request: Amounts) -> bool:
        """Whether the queue can take the request now: `refusal` without the reason."""
        if not super().admits(queue, request):
            return False
        if queue not in self._rest:
            return True
        accounts = self._promises[queue]
        return all(
            amount <= 0 or amount <= arithmetic.available(accounts[what])[0]
            for what, amount in request.items()
        )

    def refusal(self, queue: str, request: Amounts) -> Refusal | None:
        """Why the queue cannot take the request now: of two reasons, the one that lacks more."""
        found = super().refusal(queue, request)
        if queue not in self._rest or (found and found.kind is not RefusalKind.OVER_QUOTA):
            return found
        for what in sorted(request):
            broken = self._broken_promise(queue, what, request[what])
            if broken and (found is None or broken.deficit > found.deficit):
                found = broken
        return found

    def available(self, node: TreeNode, what: FlavorResource) -> int:
        """How much more the node may use; negative where an ancestor is in debt."""
        found = super().available(node, what)
        if node.kind is NodeKind.QUEUE and node.name in self._rest:
            account = self._promises[node.name].get(what)
            if account is not None:
                found = min(found, arithmetic.available(account)[0])
        return found

    def add_usage(self, queue: str, amounts: Amounts) -> None:
        """Count what a workload takes, at the queue and as far up as it shows."""
        super().add_usage(queue, amounts)
        if queue in self._promises:
            self._count(queue, amounts, 1)

    def remove_usage(self, queue: str, amounts: Amounts) -> None:
        """Count what a workload gives back."""
        super().remove_usage(queue, amounts)
        if queue in self._promises:
            self._count(queue, amounts, -1)

    def withdrawn(self, node: TreeNode, what: FlavorResource) -> int:
        """By how much less than its quota a queue that takes the rest may use.

        It is what others beside it use above their promised quotas; 0 for all other nodes.
        """
        if node.kind is not NodeKind.QUEUE or node.name not in self._rest:
            return 0
        account = self._promises[node.name].get(what)
        if account is None:
            return 0
        left = arithmetic.available(account)[0] + account.usage
        return max(0, account.nominal - left)

    def _count(self, queue: str, amounts: Amounts, sign: int) -> None:
        accounts = self._promises[queue]
        for what, amount in amounts.items():
            if what in accounts:
                arithmetic.change_usage(accounts[what], sign * amount, self.log)

    def _broken_promise(self, queue: str, what: FlavorResource, amount: int) -> Refusal | None:
        account = self._promises[queue].get(what)
        over = None if account is None else over_quota(queue, what, amount, account)
        if over is None or over.node is None:
            return None
        return replace(over, promised=max(0, self.balance(over.node, what) - over.balance))

    def _promise(self, queues: Iterable[Queue]) -> None:
        below: dict[str, list[Queue]] = {}
        for queue in queues:
            if queue.cohort is not None:
                below.setdefault(queue.cohort, []).append(queue)
        for cohort, members in below.items():
            rest = {each.name for each in members if each.promise is Promise.REST}
            if rest and any(each.promise is Promise.KEPT for each in members):
                self._rest |= rest
                self._link_promises(TreeNode(NodeKind.COHORT, cohort), members)

    def _link_promises(self, cohort: TreeNode, members: Iterable[Queue]) -> None:
        """A tree of its own for each cohort: what stands above it promises nothing."""
        roots: dict[FlavorResource, Account] = {}
        for queue in members:
            accounts = self._promises[queue.name] = {}
            for what, quota in quotas_of(queue.resource_groups).items():
                root = roots.get(what)
                if root is None:
                    root = roots[what] = Account(cohort)
                    arithmetic.declare(root, self.quota(cohort, what) or Quota())
                account = accounts[what] = Account(TreeNode(NodeKind.QUEUE, queue.name))
                kept = 0 if queue.promise is Promise.KEPT else None
                arithmetic.declare(account, Quota(quota.nominal, lending_limit=kept))
                arithmetic.link(account, root)
