"""How much of the common pot a node takes: its dominant-resource share, weighted.

For each resource, what the node uses beyond its own quota, in thousandths of what its parent could
lend at most; the largest such figure counts. Exact fractions, so that equal shares are equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import msgspec

from bough.core.quota.tree import QuotaTree
from bough.model.quota import FlavorResource, TreeNode


class Share(msgspec.Struct, frozen=True):
    """The share of one node."""

    #: The resource that counts; empty where the share is 0.
    resource: str = ""
    #: Thousandths of what could be lent, before the weight.
    unweighted: Fraction = Fraction(0)
    weight: Fraction = Fraction(1)
    #: Whether anything at all is used beyond the node's own quota.
    borrowing: bool = False

    @property
    def weighted(self) -> Fraction | None:
        """The share for each unit of weight; `None` is beyond all numbers."""
        if not self.unweighted:
            return Fraction(0)
        return self.unweighted / self.weight if self.weight else None

    @property
    def rank(self) -> tuple[bool, Fraction]:
        """What shares are compared by: the larger, the more the node takes for its weight.

        Nodes without weight come last; among themselves their unweighted shares count.
        """
        weighted = self.weighted
        return (True, self.unweighted) if weighted is None else (False, weighted)


def share_of(tree: QuotaTree, node: TreeNode) -> Share:
    """The node's share of what its parent could lend. A root borrows from none: it has none."""
    parent = tree.parent(node)
    weight = tree.weight(node)
    if parent is None or tree.cycle(node):
        return Share(weight=weight)
    borrowed = _borrowed(tree, node)
    largest = Share(weight=weight, borrowing=bool(borrowed))
    for resource in sorted(borrowed):
        lendable = _lendable(tree, parent, resource)
        if lendable > 0:
            ratio = Fraction(borrowed[resource] * 1000, lendable)
            if ratio > largest.unweighted:
                largest = Share(resource, ratio, weight, borrowing=True)
    return largest


def is_borrowing(tree: QuotaTree, node: TreeNode, whats: Iterable[FlavorResource]) -> bool:
    """Whether the node uses more than its own quota of any of these. A root cannot."""
    return tree.parent(node) is not None and any(tree.balance(node, what) < 0 for what in whats)


def _borrowed(tree: QuotaTree, node: TreeNode) -> dict[str, int]:
    """For each resource, what is used beyond the node's quota, over all flavors."""
    borrowed: dict[str, int] = {}
    for what in tree.flavor_resources(node):
        excess = -tree.balance(node, what)
        if excess > 0:
            borrowed[what.resource] = borrowed.get(what.resource, 0) + excess
    return borrowed


def _lendable(tree: QuotaTree, parent: TreeNode, resource: str) -> int:
    """The most that anything below the parent could use of a resource, over all flavors.

    Flavors count that exist anywhere in the tree, though nothing below the parent lists them.
    """
    root = tree.path(parent)[-1]
    return sum(
        tree.potential(parent, what)
        for what in tree.flavor_resources(root)
        if what.resource == resource
    )
