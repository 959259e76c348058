"""What a gang can do without, and in which order it is given back.

First one surplus pod at a time, then a surplus replica as a whole, then the gang as a whole: a gang
is never left with less than it needs. The pods that are kept to the last are its core; they are not
preemptible. Must not know who wants the room, nor where it is.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.core.gang.predicate import Standing, stand
from bough.core.gang.tree import Counts, GangNode, GangTree, Held, counts_of, pods_of
from bough.model.gang import Pod


class UnitKind(StrEnum):
    """What is given back at once."""

    POD = "pod"
    REPLICA = "replica"
    GANG = "gang"


class Unit(msgspec.Struct, frozen=True):
    """What is given back at once."""

    kind: UnitKind
    #: The leaf, the replica, or the gang itself.
    node: GangNode
    #: In the order in which they go: the last comes first.
    pods: tuple[Pod, ...]


def core_counts(tree: GangTree, counts: Counts) -> tuple[int, ...]:
    """For each leaf: how many of these pods are kept to the last.

    A satisfied node keeps the first `minimum` of its satisfied children; what else it has is
    surplus. In a node that is not satisfied every child may still count, and keeps its core.
    """
    standing = stand(tree, counts)
    kept = [0] * len(tree.leaves)
    open_nodes = [tree.root]
    while open_nodes:
        node = open_nodes.pop()
        if node.is_leaf:
            kept[node.first_leaf] = min(counts[node.first_leaf], node.minimum)
        elif standing.satisfied(node):
            whole = [child for child in tree.siblings(node) if standing.satisfied(child)]
            open_nodes.extend(whole[: node.minimum])
        else:
            open_nodes.extend(node.children)
    return tuple(kept)


def surplus_counts(tree: GangTree, counts: Counts) -> tuple[int, ...]:
    """For each leaf: how many of these pods are given back before the gang is broken."""
    kept = core_counts(tree, counts)
    return tuple(count - keep for count, keep in zip(counts, kept, strict=True))


def core_pods(tree: GangTree, held: Held) -> tuple[Pod, ...]:
    """The pods that are not preemptible: of each leaf the first in pod order."""
    kept = core_counts(tree, counts_of(held))
    return tuple(
        pod
        for leaf, bits, keep in zip(tree.leaves, held, kept, strict=True)
        for pod in pods_of(leaf, bits)[:keep]
    )


def surplus_pods(tree: GangTree, held: Held) -> tuple[Pod, ...]:
    """The pods that are given back before the gang is broken."""
    kept = core_counts(tree, counts_of(held))
    return tuple(
        pod
        for leaf, bits, keep in zip(tree.leaves, held, kept, strict=True)
        for pod in pods_of(leaf, bits)[keep:]
    )


def next_unit(tree: GangTree, held: Held) -> Unit | None:
    """What goes next when room is wanted; `None` where nothing is held."""
    standing = stand(tree, counts_of(held))
    if not standing.pods[tree.root.position]:
        return None
    leaf = _surplus_leaf(standing, tree.root)
    if leaf is not None:
        last = leaf.pods[held[leaf.first_leaf].bit_length() - 1]
        return Unit(kind=UnitKind.POD, node=leaf, pods=(last,))
    replica = _surplus_replica(standing, tree.root)
    if replica is not None:
        return Unit(kind=UnitKind.REPLICA, node=replica, pods=_pods_below(tree, replica, held))
    return Unit(kind=UnitKind.GANG, node=tree.root, pods=_pods_below(tree, tree.root, held))


def _surplus_leaf(standing: Standing, node: GangNode) -> GangNode | None:
    """A leaf with more pods than it needs: the last in order."""
    if node.is_leaf:
        return node if standing.reached[node.position] > node.minimum else None
    for child in reversed(standing.ordered(node)):
        found = _surplus_leaf(standing, child)
        if found is not None:
            return found
    return None


def _surplus_replica(standing: Standing, node: GangNode) -> GangNode | None:
    """A child that its satisfied parent does not need: the deepest, there the last in order."""
    if node.is_leaf:
        return None
    children = standing.ordered(node)
    for child in reversed(children):
        found = _surplus_replica(standing, child)
        if found is not None:
            return found
    if not standing.satisfied(node):
        return None
    # A replica that is in pieces is of no use: it goes before one that runs.
    for child in reversed(children):
        if standing.pods[child.position] and not standing.satisfied(child):
            return child
    if standing.reached[node.position] > node.minimum:
        return children[-1]
    return None


def _pods_below(tree: GangTree, node: GangNode, held: Held) -> tuple[Pod, ...]:
    leaves = tree.leaves[node.first_leaf : node.end_leaf]
    pods = [pod for leaf in leaves for pod in pods_of(leaf, held[leaf.first_leaf])]
    return tuple(reversed(pods))
