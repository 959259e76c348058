"""The one predicate over the tree: does a node have what it needs? Everything else asks here.

A leaf has it when it has `minimum` pods, an inner node when `minimum` of its children have it.
Takes counts for each leaf, so that a caller can ask about what is, what could be and what would be
left.
"""

from __future__ import annotations

import msgspec

from bough.core.gang.order import Precedence, precedence
from bough.core.gang.tree import Counts, GangNode, GangTree, counts_of


class TreeCounts(msgspec.Struct, frozen=True, gc=False):
    """How far every node of a tree is, for some counts."""

    tree: GangTree
    #: For each node: its pods, or those of its children that are satisfied.
    reached: list[int]
    #: For each node: the pods below it.
    pods: list[int]

    def satisfied(self, node: GangNode) -> bool:
        """Whether a node has what it needs."""
        return self.reached[node.position] >= node.minimum

    def ordered(self, node: GangNode) -> list[GangNode]:
        """The children of a node, in the order in which they are served."""
        return sorted(self.tree.siblings(node), key=self._precedence)

    def _precedence(self, child: GangNode) -> Precedence:
        return precedence(
            self.reached[child.position],
            child.minimum,
            started=self.pods[child.position] > 0,
            order=self.tree.order,
        )


class Shortage(msgspec.Struct, frozen=True, gc=False):
    """A node that cannot get what it needs from the pods that there are."""

    node: GangNode
    #: Pods, or children that can be satisfied.
    available: int
    needed: int


def stand(tree: GangTree, counts: Counts) -> TreeCounts:
    """Apply the predicate to every node, from the leaves up."""
    reached = [0] * len(tree.nodes)
    pods = [0] * len(tree.nodes)
    for node in reversed(tree.nodes):
        if node.is_leaf:
            reached[node.position] = pods[node.position] = counts[node.first_leaf]
        for child in node.children:
            pods[node.position] += pods[child.position]
            if reached[child.position] >= child.minimum:
                reached[node.position] += 1
    return TreeCounts(tree=tree, reached=reached, pods=pods)


def is_sufficient(tree: GangTree, counts: Counts) -> bool:
    """Whether so many pods in each leaf are enough for the gang to run."""
    if tree.root.is_leaf:
        return counts[0] >= tree.root.minimum
    return stand(tree, counts).satisfied(tree.root)


def is_complete(tree: GangTree) -> bool:
    """Whether the gang holds what it needs."""
    return is_sufficient(tree, counts_of(tree.held))


def is_stale(tree: GangTree) -> bool:
    """Whether the gang runs with less than it needs; not while it is ending well."""
    return any(tree.held) and not tree.succeeded and not is_complete(tree)


def can_start(tree: GangTree) -> bool:
    """Whether what the gang holds and the pods that wait are enough."""
    return is_sufficient(tree, obtainable(tree))


def obtainable(tree: GangTree) -> tuple[int, ...]:
    """The pods of each leaf that hold a place or wait for one."""
    return counts_of(tuple(held | wait for held, wait in zip(tree.held, tree.pending, strict=True)))


def minimum_pods(tree: GangTree) -> int:
    """How many pods the smallest sufficient set has: what is not preemptible of such a gang."""
    smallest = [0] * len(tree.nodes)
    for node in reversed(tree.nodes):
        below = sorted(smallest[child.position] for child in node.children)
        smallest[node.position] = node.minimum if node.is_leaf else sum(below[: node.minimum])
    return smallest[tree.root.position]


def shortages(tree: GangTree) -> tuple[Shortage, ...]:
    """Why the gang cannot start: every node on the way down that lacks pods or children."""
    standing = stand(tree, obtainable(tree))
    found: list[Shortage] = []
    open_nodes = [tree.root]
    while open_nodes:
        node = open_nodes.pop()
        if standing.satisfied(node):
            continue
        reached = standing.reached[node.position]
        found.append(Shortage(node=node, available=reached, needed=node.minimum))
        open_nodes.extend(reversed(node.children))
    return tuple(found)
