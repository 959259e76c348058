"""The quota tree: declared nodes, their accounts, admission, and changes while work is running.

Joins the edges to the accounts (the arithmetic) and keeps the accounts of a tangled tree, one with
a cycle, apart until the cycle is broken. A queue's usage is given to it as amounts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Self

import msgspec

from bough.core.quota import account as arithmetic
from bough.core.quota.account import Account
from bough.core.quota.tree_shape import Edges
from bough.core.undo import UndoLog
from bough.errors import Broken
from bough.model.quota import (
    DEFAULT_PRIORITY,
    Amounts,
    Cohort,
    FlavorResource,
    NodeKind,
    Queue,
    Quota,
    TreeNode,
    quotas_of,
)
from bough.model.reason import Condition, Event, Refusal, RefusalKind, cycle_text

NO_QUOTA = Quota()


class PutCohort(msgspec.Struct, frozen=True):
    """Declare a cohort, or replace its declaration."""

    cohort: Cohort


class PutQueue(msgspec.Struct, frozen=True):
    """Declare a queue, or replace its declaration; what runs in it keeps running."""

    queue: Queue


class DeleteCohort(msgspec.Struct, frozen=True):
    """Take a cohort's declaration back; while others name it, it stays without quota and parent."""

    name: str


class DeleteQueue(msgspec.Struct, frozen=True):
    """Remove a queue with all its usage."""

    name: str


Change = PutCohort | PutQueue | DeleteCohort | DeleteQueue


class Member:
    """A node of the tree with what was declared for it."""

    __slots__ = ("accounts", "declaration", "node", "quotas", "tangled")

    def __init__(self, node: TreeNode) -> None:
        self.node = node
        #: `None` for an implicit cohort.
        self.declaration: Cohort | Queue | None = None
        self.quotas: dict[FlavorResource, Quota] = {}
        #: One for everything that the node or something below it lists or uses.
        self.accounts: dict[FlavorResource, Account] = {}
        #: Whether it hangs on a cycle; its accounts then stand alone.
        self.tangled = False


class QuotaTree:
    """A forest of cohorts and queues. Same declarations and usage, same answers, in any order."""

    def __init__(self, log: UndoLog | None = None) -> None:
        """`log`: where old usage is noted, so that a what-if can be undone."""
        self._edges = Edges()
        self._members: dict[TreeNode, Member] = {}
        self._queues: dict[str, Member] = {}
        self.log = UndoLog() if log is None else log

    @classmethod
    def of(
        cls, cohorts: Iterable[Cohort], queues: Iterable[Queue], log: UndoLog | None = None
    ) -> Self:
        """Build a tree from declarations."""
        tree = cls(log)
        for cohort in cohorts:
            tree._put(TreeNode(NodeKind.COHORT, cohort.name), cohort, cohort.parent)
        for queue in queues:
            tree._put(TreeNode(NodeKind.QUEUE, queue.name), queue, queue.cohort)
        return tree

    @classmethod
    def like(cls, other: QuotaTree) -> Self:
        """A tree of the same declarations and with the same log, in which nothing is used yet."""
        tree = cls(other.log)
        tree._edges = other._edges.copy()
        twins: dict[Account, Account] = {}
        for node, member in other._members.items():
            own = tree._member(node)
            own.declaration, own.quotas = member.declaration, member.quotas
            own.tangled = member.tangled
            for what, account in member.accounts.items():
                own.accounts[what] = twins[account] = arithmetic.twin_of(account)
        for account, twin in twins.items():
            if account.parent is not None:
                twin.parent = twins[account.parent]
        return tree

    # Structure

    def __contains__(self, node: TreeNode) -> bool:
        return node in self._members

    def __iter__(self) -> Iterator[TreeNode]:
        """Every node, cohorts before queues, by name."""
        return iter(sorted(self._members))

    def roots(self) -> list[TreeNode]:
        """The nodes without a parent, cohorts before queues, by name."""
        return self._edges.roots()

    def parent(self, node: TreeNode) -> TreeNode | None:
        """The node above; `None` for a root."""
        return self._edges.parent(node)

    def node_of(self, queue: str) -> TreeNode:
        """The node of a queue."""
        return self._queues[queue].node

    def children(self, node: TreeNode) -> list[TreeNode]:
        """The nodes directly below, cohorts before queues, by name."""
        return self._edges.children(node)

    def path(self, node: TreeNode) -> list[TreeNode]:
        """The node and its ancestors up to the root."""
        return self._edges.path(node)

    def subtree(self, node: TreeNode) -> list[TreeNode]:
        """The node and everything below it, cohorts before queues, by name."""
        return sorted(self._edges.subtree(node))

    def is_implicit(self, node: TreeNode) -> bool:
        """Whether the cohort exists only because others name it."""
        return self._edges.is_implicit(node)

    def declaration(self, node: TreeNode) -> Cohort | Queue | None:
        """What was declared for the node; `None` for an implicit cohort."""
        return self._members[node].declaration

    def weight(self, node: TreeNode) -> Fraction:
        """The node's part of idle capacity among its siblings."""
        declaration = self._members[node].declaration
        return Fraction(1) if declaration is None else declaration.weight

    def priority(self, node: TreeNode) -> int:
        """The node's priority among siblings; the higher goes first."""
        declaration = self._members[node].declaration
        return DEFAULT_PRIORITY if declaration is None else declaration.priority

    def created_ms(self, node: TreeNode) -> int:
        """When it was created; among equals the older goes first."""
        declaration = self._members[node].declaration
        return 0 if declaration is None else declaration.created_ms

    def cycle(self, node: TreeNode) -> tuple[str, ...]:
        """The cohorts of the cycle the node hangs on, each the child of the next; else empty."""
        return self._edges.cycle(node) if self._members[node].tangled else ()

    def conditions(self, node: TreeNode) -> tuple[Condition, ...]:
        """Whether the node takes new admissions, in the words of Kubernetes conditions."""
        cycle = self.cycle(node)
        if cycle:
            return (Condition("Active", False, "CohortCycle", _tangled_text(cycle)),)
        return (Condition("Active", True, "Ready", "new admissions are possible"),)

    def apply(self, change: Change) -> tuple[Event, ...]:
        """Change the tree. Running work goes on, whatever the events say has happened."""
        if not self.log.is_empty:
            raise Broken("the tree was changed within a what-if")
        match change:
            case PutCohort(cohort):
                node = TreeNode(NodeKind.COHORT, cohort.name)
                return self._put(node, cohort, cohort.parent)
            case PutQueue(queue):
                node = TreeNode(NodeKind.QUEUE, queue.name)
                return self._put(node, queue, queue.cohort)
            case DeleteCohort(name):
                return self._delete(TreeNode(NodeKind.COHORT, name))
            case DeleteQueue(name):
                return self._delete(TreeNode(NodeKind.QUEUE, name))

    # Amounts

    def flavor_resources(self, node: TreeNode) -> list[FlavorResource]:
        """Everything that the node, or something below it, lists or uses, in order."""
        return sorted(self._members[node].accounts)

    def account(self, node: TreeNode, what: FlavorResource) -> Account | None:
        """The account itself, for frequent questions; `None` where nothing is listed or used."""
        return self._members[node].accounts.get(what)

    def accounts(self, node: TreeNode) -> Mapping[FlavorResource, Account]:
        """All accounts of a node, including those that are made later."""
        return self._members[node].accounts

    def quota(self, node: TreeNode, what: FlavorResource) -> Quota | None:
        """What was declared for the node; `None` where it does not list this."""
        return self._members[node].quotas.get(what)

    def subtree_quota(self, node: TreeNode, what: FlavorResource) -> int:
        """Own quota plus what the children put at the disposal of the tree."""
        account = self._members[node].accounts.get(what)
        return 0 if account is None else account.subtree_quota

    def usage(self, node: TreeNode, what: FlavorResource) -> int:
        """What a queue uses; for a cohort, what its children use beyond their local quota."""
        account = self._members[node].accounts.get(what)
        return 0 if account is None else account.usage

    def balance(self, node: TreeNode, what: FlavorResource) -> int:
        """`T(x,r)`: what the subtree has left over, negative where it borrows."""
        account = self._members[node].accounts.get(what)
        return 0 if account is None else account.balance

    def debt(self, node: TreeNode, what: FlavorResource) -> int:
        """How much more than it may the node uses; a queue may use nothing it does not list.

        A tangled tree has no balances, and so no debts.
        """
        member = self._members[node]
        account = member.accounts.get(what)
        if account is None or member.tangled:
            return 0
        if node.kind is NodeKind.QUEUE and what not in member.quotas:
            return max(account.usage, account.debt)
        return account.debt

    def available(self, node: TreeNode, what: FlavorResource) -> int:
        """How much more the node may use; negative where an ancestor is in debt."""
        account = self._nearest(node, what)
        return 0 if account is None else arithmetic.available(account)[0]

    def potential(self, node: TreeNode, what: FlavorResource) -> int:
        """How much the node could use if nothing ran."""
        account = self._nearest(node, what)
        return 0 if account is None else arithmetic.potential(account)

    def admits(self, queue: str, request: Amounts) -> bool:
        """Whether the queue can take the request now: `refusal` without the reason."""
        member = self._queues[queue]
        if member.tangled:
            return False
        for what, amount in request.items():
            if what not in member.quotas:
                return False
            if amount > 0 and amount > arithmetic.available(member.accounts[what])[0]:
                return False
        return True

    def refusal(self, queue: str, request: Amounts) -> Refusal | None:
        """Why the queue cannot take the request now; `None` if it can.

        The first of the request's amounts, in order, that does not fit is named.
        """
        member = self._queues[queue]
        if member.tangled:
            return Refusal(RefusalKind.TANGLED, queue, cycle=self._edges.cycle(member.node))
        for what in sorted(request) if len(request) > 1 else request:
            amount = request[what]
            if what not in member.quotas:
                return Refusal(RefusalKind.NOT_LISTED, queue, what, amount)
            over = over_quota(queue, what, amount, member.accounts[what])
            if over is not None:
                return over
        return None

    def add_usage(self, queue: str, amounts: Amounts) -> None:
        """Count what a workload takes, at the queue and as far up as it shows."""
        member = self._queues[queue]
        for what, amount in amounts.items():
            account = member.accounts.get(what) or self._account(member, what)
            arithmetic.change_usage(account, amount, self.log)

    def remove_usage(self, queue: str, amounts: Amounts) -> None:
        """Count what a workload gives back."""
        member = self._queues[queue]
        for what, amount in amounts.items():
            account = member.accounts.get(what)
            if account is None or account.usage < amount:
                raise Broken(f"queue {queue} gives back more {what} than it uses")
            arithmetic.change_usage(account, -amount, self.log)

    # How a change is made

    def _put(
        self, node: TreeNode, declaration: Cohort | Queue, parent: str | None
    ) -> tuple[Event, ...]:
        above = None if parent is None else TreeNode(NodeKind.COHORT, parent)
        member = self._member(node)
        member.declaration = declaration
        events = self._move(member, above)
        self._declare(member, quotas_of(declaration.resource_groups))
        return events

    def _delete(self, node: TreeNode) -> tuple[Event, ...]:
        member = self._members.get(node)
        if member is None or member.declaration is None:
            return ()
        member.declaration = None
        self._declare(member, {})
        events = self._move(member, None, deleted=True)
        if node not in self._edges:
            self._drop(node)
        return tuple(event for event in events if event.node in self._edges)

    def _move(
        self, member: Member, parent: TreeNode | None, *, deleted: bool = False
    ) -> tuple[Event, ...]:
        """Hang a node elsewhere. Its tangle can only change together with all that is below it."""
        node = member.node
        known = node in self._edges
        before = self._edges.parent(node) if known else None
        cycle_before = self._edges.cycle(node) if member.tangled else ()
        if known and before == parent and not deleted:
            self._edges.put(node, parent)
            return ()
        for account in member.accounts.values():
            arithmetic.unlink(account)
        if deleted:
            self._edges.delete(node)
        else:
            self._edges.put(node, parent)
        if before is not None and before not in self._edges:
            self._drop(before)
        if parent is not None:
            self._member(parent)
        cycle = self._edges.cycle(node) if node in self._edges else ()
        if cycle:
            return self._tangle(node, cycle) if cycle != cycle_before else ()
        if cycle_before:
            return self._untangle(node, cycle_before)
        self._link(member)
        return ()

    def _tangle(self, node: TreeNode, cycle: tuple[str, ...]) -> tuple[Event, ...]:
        below = sorted(self._edges.subtree(node))
        for each in below:
            member = self._members[each]
            member.tangled = True
            for account in member.accounts.values():
                arithmetic.unlink(account)
        return tuple(Event(each, "CohortCycle", _tangled_text(cycle)) for each in below)

    def _untangle(self, node: TreeNode, cycle: tuple[str, ...]) -> tuple[Event, ...]:
        below = sorted(self._edges.subtree(node)) if node in self._edges else []
        for each in below:
            self._members[each].tangled = False
        for each in below:
            self._link(self._members[each])
        text = (
            f"free of the cycle {' → '.join((*cycle, cycle[0]))}: new admissions are possible again"
        )
        return tuple(Event(each, "CohortCycleBroken", text) for each in below)

    def _declare(self, member: Member, quotas: dict[FlavorResource, Quota]) -> None:
        before, member.quotas = member.quotas, quotas
        for what in before:
            if what not in quotas:
                arithmetic.declare(member.accounts[what], NO_QUOTA)
        for what, quota in quotas.items():
            account = self._account(member, what)
            if before.get(what) != quota:
                arithmetic.declare(account, quota)

    def _link(self, member: Member) -> None:
        parent = self._edges.parent(member.node) if member.node in self._edges else None
        if parent is not None:
            above = self._members[parent]
            for what, account in member.accounts.items():
                arithmetic.link(account, self._account(above, what))

    def _account(self, member: Member, what: FlavorResource) -> Account:
        """The member's account, made on first use together with those above it."""
        account = member.accounts.get(what)
        if account is None:
            account = member.accounts[what] = Account(member.node)
            parent = self._edges.parent(member.node)
            if parent is not None and not member.tangled:
                arithmetic.link(account, self._account(self._members[parent], what))
        return account

    def _nearest(self, node: TreeNode, what: FlavorResource) -> Account | None:
        """The node's account, or the next above: a node without one has no limit of its own."""
        account = self._members[node].accounts.get(what)
        if account is None and not self._members[node].tangled:
            parent = self._edges.parent(node)
            return None if parent is None else self._nearest(parent, what)
        return account

    def _member(self, node: TreeNode) -> Member:
        member = self._members.get(node)
        if member is None:
            member = self._members[node] = Member(node)
            if node.kind is NodeKind.QUEUE:
                self._queues[node.name] = member
        return member

    def _drop(self, node: TreeNode) -> None:
        """Forget a node that the edges no longer have; a cohort may have been its own parent."""
        self._members.pop(node, None)
        if node.kind is NodeKind.QUEUE:
            self._queues.pop(node.name, None)


def over_quota(queue: str, what: FlavorResource, amount: int, account: Account) -> Refusal | None:
    """Why an account of a queue does not allow an amount more; `None` if it does."""
    allowed, limiting, kept = arithmetic.available(account)
    if amount <= 0 or amount <= allowed:
        return None
    return Refusal(
        RefusalKind.OVER_QUOTA,
        queue,
        what,
        amount,
        available=max(0, allowed),
        potential=arithmetic.potential(account),
        node=limiting.node,
        balance=limiting.balance,
        passed=amount - kept,
        borrowing_limit=-(limiting.floor or 0),
    )


def _tangled_text(cycle: tuple[str, ...]) -> str:
    return f"{cycle_text(cycle)}; new admissions are stopped, running work goes on"
