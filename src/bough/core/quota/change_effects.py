"""What a change of the quota tree would do, before it is made: debts, tangles, losses.

The tree is changed, looked at, and changed back, in time that grows with its depth; it is left as
it was.
"""

from __future__ import annotations

import msgspec

from bough.core.quota.tree import (
    Change,
    DeleteCohort,
    DeleteQueue,
    PutCohort,
    PutQueue,
    QuotaTree,
)
from bough.model.quota import Cohort, FlavorResource, NodeKind, TreeNode


class Debt(msgspec.Struct, frozen=True):
    """A node that uses more than it may."""

    node: TreeNode
    flavor_resource: FlavorResource
    #: By how much, without the change and with it.
    before: int
    after: int


class Effects(msgspec.Struct, frozen=True):
    """What a change would do to the tree."""

    #: Nodes that come into debt, or deeper into it.
    debts: tuple[Debt, ...] = ()
    #: Nodes that get out of debt, at least in part.
    relieved: tuple[Debt, ...] = ()
    #: Nodes that would hang on a cycle and take nothing new.
    tangled: tuple[TreeNode, ...] = ()
    #: Nodes that would be free of a cycle.
    untangled: tuple[TreeNode, ...] = ()
    #: What the workloads of a deleted queue use, and would be counted nowhere.
    uncounted: dict[FlavorResource, int] = {}


def effects(tree: QuotaTree, change: Change) -> Effects:
    """What the change would do. The tree is the same afterwards."""
    node = _node(change)
    lost = _usage(tree, node) if isinstance(change, DeleteQueue) and node in tree else {}
    inverse = _inverse(tree, node)
    before = _debts(tree, node)
    tangled_before = _tangled(tree, node)

    tree.apply(change)
    touched = {**before, **_debts(tree, node)}
    after = {key: tree.debt(*key) if key[0] in tree else 0 for key in touched}
    tangled_after = _tangled(tree, node)

    tree.apply(inverse)
    if lost:
        tree.add_usage(node.name, lost)
    for key in touched:
        before.setdefault(key, tree.debt(*key) if key[0] in tree else 0)
    changed = [Debt(*key, before[key], after[key]) for key in sorted(touched)]
    return Effects(
        debts=tuple(debt for debt in changed if debt.after > debt.before),
        relieved=tuple(debt for debt in changed if debt.after < debt.before),
        tangled=tuple(sorted(tangled_after - tangled_before)),
        untangled=tuple(sorted(tangled_before - tangled_after)),
        uncounted=lost,
    )


def _node(change: Change) -> TreeNode:
    match change:
        case PutCohort(cohort):
            return TreeNode(NodeKind.COHORT, cohort.name)
        case PutQueue(queue):
            return TreeNode(NodeKind.QUEUE, queue.name)
        case DeleteCohort(name):
            return TreeNode(NodeKind.COHORT, name)
        case DeleteQueue(name):
            return TreeNode(NodeKind.QUEUE, name)


def _inverse(tree: QuotaTree, node: TreeNode) -> Change:
    """The change that brings the node back to what is declared for it now."""
    declaration = tree.declaration(node) if node in tree else None
    if isinstance(declaration, Cohort):
        return PutCohort(declaration)
    if declaration is not None:
        return PutQueue(declaration)
    return DeleteCohort(node.name) if node.kind is NodeKind.COHORT else DeleteQueue(node.name)


def _debts(tree: QuotaTree, node: TreeNode) -> dict[tuple[TreeNode, FlavorResource], int]:
    """The debts that a change of the node can touch.

    They are its own and its ancestors', and all those below it where a tangle comes or goes.
    """
    if node not in tree:
        return {}
    touched = tree.subtree(node) if tree.cycle(node) else tree.path(node)
    return {
        (each, what): tree.debt(each, what)
        for each in touched
        for what in tree.flavor_resources(each)
    }


def _tangled(tree: QuotaTree, node: TreeNode) -> set[TreeNode]:
    """Tangles come and go with a whole subtree."""
    if node not in tree or not tree.cycle(node):
        return set()
    return set(tree.subtree(node))


def _usage(tree: QuotaTree, queue: TreeNode) -> dict[FlavorResource, int]:
    usage = {what: tree.usage(queue, what) for what in tree.flavor_resources(queue)}
    return {what: amount for what, amount in usage.items() if amount}
