"""The quota tree as a cycle walks it: leaves with what they list and who holds it, inner nodes.

Built once from the declarations, then kept in step with who holds quota. The arithmetic is
core.quota's; this only keeps its accounts at hand. Must not know what is decided.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bough.core.cycle.holder import Holder, VictimOrder
from bough.core.quota.account import Account
from bough.core.quota.tree import QuotaTree
from bough.errors import Broken
from bough.model.policy import Policy
from bough.model.quota import Amounts, Cohort, FlavorResource, NodeKind, Queue, TreeNode
from bough.model.workload import Workload

#: A holder with what it is sorted by; orders are never equal, so holders are never compared.
Ranked = tuple[VictimOrder, Holder]


class Slot(NamedTuple):
    """One resource on one flavor, as a queue lists it."""

    what: FlavorResource
    account: Account


class Group(NamedTuple):
    """A resource group of a queue."""

    resources: tuple[str, ...]
    #: In the order in which flavors are tried: the flavor, and its resources.
    flavors: tuple[tuple[str, dict[str, Slot]], ...]


class Inner:
    """A cohort."""

    __slots__ = ("_accounts", "_tree", "height", "inners", "leaves", "names", "node", "parent")

    def __init__(self, tree: QuotaTree, node: TreeNode, parent: Inner | None) -> None:
        self.node = node
        self.parent = parent
        self.inners: list[Inner] = []
        self.leaves: list[Leaf] = []
        #: The distance to the furthest leaf.
        self.height = 0
        #: The queues below it, at any depth.
        self.names: frozenset[str] = frozenset()
        self._tree = tree
        self._accounts: dict[FlavorResource, Account] = {}

    def is_within_nominal(self, whats: Iterable[FlavorResource]) -> bool:
        """Whether the subtree uses no more than its own quota of any of these."""
        for what in whats:
            account = self._accounts.get(what) or self._tree.account(self.node, what)
            if account is not None:
                self._accounts[what] = account
                if account.usage > account.subtree_quota:
                    return False
        return True


class Leaf:
    """A queue with who holds its quota."""

    __slots__ = (
        "accounts",
        "cycle",
        "groups",
        "holders",
        "leaving",
        "node",
        "parent",
        "queue",
        "running",
        "tree",
    )

    def __init__(self, tree: QuotaTree, queue: Queue, parent: Inner | None) -> None:
        self.tree = tree
        self.queue = queue
        self.node = TreeNode(NodeKind.QUEUE, queue.name)
        self.parent = parent
        #: The cohorts of the cycle that it hangs on; it then takes nothing new.
        self.cycle = tree.cycle(self.node)
        self.accounts: dict[FlavorResource, Account] = {}
        #: By resource; a resource that is missing is not listed.
        self.groups = _groups(self)
        #: By the identity of the workload.
        self.holders: dict[int, Holder] = {}
        #: Sorted: who was not told to end, and who was.
        self.running: list[Ranked] = []
        self.leaving: list[Ranked] = []

    def account(self, what: FlavorResource) -> Account:
        """The account of a resource on a flavor, empty where the queue does not list it."""
        account = self.accounts.get(what)
        if account is None:
            self.tree.add_usage(self.queue.name, {what: 0})
            account = self.tree.account(self.node, what)
            if account is None:
                raise Broken(f"queue {self.queue.name} has no account of {what}")
            self.accounts[what] = account
        return account

    def is_within_nominal(self, whats: Iterable[FlavorResource]) -> bool:
        """Whether the queue uses no more than its own quota of any of these."""
        for what in whats:
            account = self.accounts.get(what) or self.tree.account(self.node, what)
            if account is not None and account.usage > account.subtree_quota:
                return False
        return True

    def add(self, holder: Holder) -> None:
        """Count a holder."""
        self.holders[id(holder.workload)] = holder
        insort(self.leaving if holder.evicted else self.running, (holder.order, holder))
        self.tree.add_usage(self.queue.name, holder.usage)

    def drop(self, holder: Holder) -> None:
        """Count a holder no more."""
        del self.holders[id(holder.workload)]
        ranked = self.leaving if holder.evicted else self.running
        del ranked[bisect_left(ranked, (holder.order,))]
        self.tree.remove_usage(self.queue.name, holder.usage)


class Forest:
    """All leaves and inner nodes, with who holds quota."""

    def __init__(self, cohorts: Sequence[Cohort], queues: Sequence[Queue], policy: Policy) -> None:
        self.tree = QuotaTree.of(cohorts, queues)
        self.leaves: dict[str, Leaf] = {}
        self._inners: dict[TreeNode, Inner] = {}
        self._policy = policy
        self._reclaimable: dict[
            tuple[TreeNode, tuple[FlavorResource, ...]], tuple[list[Ranked], list[Ranked]]
        ] = {}
        for node in self.tree:
            if node.kind is NodeKind.COHORT:
                self._inner(node)
        for queue in sorted(queues, key=lambda queue: queue.name):
            self._plant(queue)
        for inner in reversed(self._inners.values()):
            _measure(inner)

    def hold(self, queue: str, workloads: Sequence[Workload]) -> None:
        """Make the holders of a queue these; what is the same object as before stays."""
        leaf = self.leaves.get(queue)
        if leaf is None:
            return
        present = {id(workload): workload for workload in workloads}
        for holder in [each for name, each in leaf.holders.items() if name not in present]:
            leaf.drop(holder)
        for name, workload in present.items():
            if name not in leaf.holders:
                leaf.add(Holder(workload, queue, self._policy, leaf.account))
        self.changed()

    def changed(self) -> None:
        """Forget what depends on usage."""
        self._reclaimable.clear()

    def add_usage(self, leaf: Leaf, amounts: Amounts) -> None:
        """Count usage that belongs to no holder."""
        self.tree.add_usage(leaf.queue.name, amounts)
        self.changed()

    def remove(self, holder: Holder) -> None:
        """Count a holder's usage no more, until the tree's what-if is undone."""
        self.tree.remove_usage(holder.queue, holder.usage)
        self.changed()

    def reclaimable(
        self, inner: Inner, whats: tuple[FlavorResource, ...]
    ) -> tuple[list[Ranked], list[Ranked]]:
        """Who holds any of these below a cohort, in queues and cohorts that use more than theirs.

        Two sorted lists: who was told to end, and who was not.
        """
        key = (inner.node, whats)
        found = self._reclaimable.get(key)
        if found is None:
            leaving: list[Ranked] = []
            running: list[Ranked] = []
            for leaf in _borrowing_leaves(inner, whats):
                leaving += using(leaf.leaving, whats)
                running += using(leaf.running, whats)
            leaving.sort()
            running.sort()
            found = self._reclaimable[key] = (leaving, running)
        return found

    def _plant(self, queue: Queue) -> None:
        above = None if queue.cohort is None else TreeNode(NodeKind.COHORT, queue.cohort)
        parent = None if above is None else self._inner(above)
        leaf = self.leaves[queue.name] = Leaf(self.tree, queue, parent)
        if parent is not None:
            parent.leaves.append(leaf)

    def _inner(self, node: TreeNode) -> Inner | None:
        """The cohort, made after all those above it; `None` where they form a cycle."""
        if self.tree.cycle(node):
            return None
        parent = None
        for each in reversed(self.tree.path(node)):
            inner = self._inners.get(each)
            if inner is None:
                inner = self._inners[each] = Inner(self.tree, each, parent)
                if parent is not None:
                    parent.inners.append(inner)
            parent = inner
        return parent


def using(ranked: list[Ranked], whats: tuple[FlavorResource, ...]) -> list[Ranked]:
    """Those that were assigned any of these."""
    if len(whats) == 1:
        (what,) = whats
        return [each for each in ranked if what in each[1].usage]
    return [each for each in ranked if any(what in each[1].usage for what in whats)]


def _borrowing_leaves(inner: Inner, whats: tuple[FlavorResource, ...]) -> Iterator[Leaf]:
    """The queues that use more than theirs; a cohort that does not is passed by with all below."""
    waiting = [inner]
    while waiting:
        current = waiting.pop()
        waiting += (child for child in current.inners if not child.is_within_nominal(whats))
        for leaf in current.leaves:
            if not leaf.is_within_nominal(whats):
                yield leaf


def _groups(leaf: Leaf) -> dict[str, Group]:
    found: dict[str, Group] = {}
    for declared in leaf.queue.resource_groups:
        flavors = tuple(
            (
                flavor.name,
                {
                    resource: Slot(what, leaf.account(what))
                    for resource in flavor.resources
                    for what in (FlavorResource(flavor.name, resource),)
                },
            )
            for flavor in declared.flavors
        )
        group = Group(declared.covered_resources, flavors)
        for resource in declared.covered_resources:
            found.setdefault(resource, group)
    return found


def _measure(inner: Inner) -> None:
    """Fill in how high a cohort stands and which queues it has; those below it are done."""
    own = (leaf.queue.name for leaf in inner.leaves)
    inner.names = frozenset(own).union(*(child.names for child in inner.inners))
    inner.height = max((child.height + 1 for child in inner.inners), default=0)
    if inner.leaves:
        inner.height = max(inner.height, 1)
