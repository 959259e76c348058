"""The quota design taken literally and recomputed from the declarations each time."""

from __future__ import annotations

from collections.abc import Iterable

from bough.core.quota.tree import (
    Change,
    DeleteCohort,
    DeleteQueue,
    PutCohort,
    PutQueue,
    QuotaTree,
)
from bough.model.quota import (
    Cohort,
    FlavorResource,
    NodeKind,
    Queue,
    Quota,
    TreeNode,
    quotas_of,
)

Usage = dict[str, dict[FlavorResource, int]]


class Declarations:
    """What is declared and used, and nothing derived from it."""

    def __init__(self) -> None:
        self.cohorts: dict[str, Cohort] = {}
        self.queues: dict[str, Queue] = {}
        self.usage: Usage = {}

    def apply(self, change: Change) -> None:
        match change:
            case PutCohort(cohort):
                self.cohorts[cohort.name] = cohort
            case PutQueue(queue):
                self.queues[queue.name] = queue
            case DeleteCohort(name):
                self.cohorts.pop(name, None)
            case DeleteQueue(name):
                self.queues.pop(name, None)
                self.usage.pop(name, None)

    def add_usage(self, queue: str, amounts: dict[FlavorResource, int]) -> None:
        used = self.usage.setdefault(queue, {})
        for what, amount in amounts.items():
            used[what] = used.get(what, 0) + amount

    def tree(self) -> QuotaTree:
        """The engine's tree, built at one go."""
        tree = QuotaTree.of(self.cohorts.values(), self.queues.values())
        for queue, amounts in self.usage.items():
            tree.add_usage(queue, amounts)
        return tree

    def nodes(self) -> set[TreeNode]:
        named = {c.parent for c in self.cohorts.values()} | {q.cohort for q in self.queues.values()}
        cohorts = set(self.cohorts) | {name for name in named if name is not None}
        return {TreeNode(NodeKind.COHORT, name) for name in cohorts} | {
            TreeNode(NodeKind.QUEUE, name) for name in self.queues
        }

    def parent(self, node: TreeNode) -> TreeNode | None:
        if node.kind is NodeKind.QUEUE:
            above = self.queues[node.name].cohort
        else:
            above = self.cohorts[node.name].parent if node.name in self.cohorts else None
        return None if above is None else TreeNode(NodeKind.COHORT, above)

    def children(self, node: TreeNode) -> list[TreeNode]:
        return [each for each in self.nodes() if self.parent(each) == node]

    def is_tangled(self, node: TreeNode) -> bool:
        seen: list[TreeNode] = []
        current: TreeNode | None = node
        while current is not None:
            if current in seen:
                return True
            seen.append(current)
            current = self.parent(current)
        return False

    def quota(self, node: TreeNode, what: FlavorResource) -> Quota:
        declared = (self.cohorts if node.kind is NodeKind.COHORT else self.queues).get(node.name)
        return quotas_of(declared.resource_groups).get(what, Quota()) if declared else Quota()

    def balance(self, node: TreeNode, what: FlavorResource) -> int:
        """`T(x,r)` as the design writes it."""
        total = self.quota(node, what).nominal
        if node.kind is NodeKind.QUEUE:
            return total - self.usage.get(node.name, {}).get(what, 0)
        for child in self.children(node):
            limit = self.quota(child, what).lending_limit
            balance = self.balance(child, what)
            total += balance if limit is None else min(limit, balance)
        return total

    def subtree_quota(self, node: TreeNode, what: FlavorResource) -> int:
        total = self.quota(node, what).nominal
        for child in self.children(node):
            limit = self.quota(child, what).lending_limit
            quota = self.subtree_quota(child, what)
            total += quota if limit is None else min(limit, quota)
        return total

    def debt(self, node: TreeNode, what: FlavorResource) -> int:
        """By how much `T(x,r) >= -borrowingLimit(x,r)` is missed."""
        if self.is_tangled(node):
            return 0
        limit = self.quota(node, what).borrowing_limit if self.parent(node) is not None else 0
        debt = 0 if limit is None else max(0, -limit - self.balance(node, what))
        if node.kind is NodeKind.QUEUE and not self.lists(node.name, what):
            return max(debt, self.usage.get(node.name, {}).get(what, 0))
        return debt

    def lists(self, queue: str, what: FlavorResource) -> bool:
        return what in quotas_of(self.queues[queue].resource_groups)

    def is_legal(self, whats: Iterable[FlavorResource]) -> bool:
        return not any(self.debt(node, what) for what in whats for node in self.nodes())

    def admits(self, queue: str, what: FlavorResource, amount: int) -> bool:
        """Whether every inequality of the whole tree holds once the amount is added."""
        if not self.lists(queue, what) or self.is_tangled(TreeNode(NodeKind.QUEUE, queue)):
            return False
        self.add_usage(queue, {what: amount})
        legal = self.is_legal([what])
        self.add_usage(queue, {what: -amount})
        return legal
