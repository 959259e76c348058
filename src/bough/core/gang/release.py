"""What a gang can do without, and in which order it is given back.

Any pod beyond what its subgroup needs, and any replica beyond what the gang needs: a gang is never
left with less than it needs. Where it does not matter which, it is first one surplus pod at a time,
then a surplus replica as a whole, then the gang as a whole; the pods that are then kept to the last
are its core.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from bough.core.gang.sufficiency import TreeCounts, stand
from bough.core.gang.tree import Counts, GangNode, GangTree, Held, counts_of, pods_of
from bough.model.gang import Pod


class UnitKind(StrEnum):
    """The kinds of units: one pod, a whole replica, or the whole gang."""

    POD = "pod"
    REPLICA = "replica"
    GANG = "gang"


class Unit(msgspec.Struct, frozen=True, gc=False):
    """What is given back as one: all of it, or nothing."""

    kind: UnitKind
    #: The leaf, the replica, or the gang itself.
    node: GangNode
    #: In the order in which they go: the last comes first.
    pods: tuple[Pod, ...]
    #: Of a replica: what it is a child of.
    parent: GangNode | None = None


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
    """What goes next when any room is wanted; `None` where nothing is held."""
    if not any(held):
        return None
    unit = next(surplus_units(tree, held), None)
    if unit is not None:
        return unit
    return Unit(kind=UnitKind.GANG, node=tree.root, pods=_pods_below(tree, tree.root, held))


def surplus_units(tree: GangTree, held: Held) -> Iterator[Unit]:
    """All that a gang could give back and still run, in order of preference.

    Each on its own, beside what is given back already: any pod of a leaf that has more than it
    needs, then any replica that its parent does not need. To know what may follow one of them, ask
    again, or ask `can_spare`: nothing becomes surplus by giving something else back.
    """
    standing = stand(tree, counts_of(held))
    yield from _surplus_of_leaves(standing, tree.root, held)
    yield from _surplus_replicas(standing, tree.root, held)


def surplus_in_turn(tree: GangTree, held: Held) -> tuple[list[Unit], list[Unit]]:
    """All surplus units: those that go if it does not matter which, in turn; and the others.

    A replica has all of its pods, though some of them may have gone before it.
    """
    others = {_key(unit): unit for unit in surplus_units(tree, held)}
    turns: list[Unit] = []
    left = held if others else ()
    while (unit := next_unit(tree, left)) is not None and unit.kind is not UnitKind.GANG:
        turns.append(others.pop(_key(unit)))
        left = tree.without_pods(left, (pod.name for pod in unit.pods))
    return turns, list(others.values())


def _key(unit: Unit) -> tuple[int, str | None]:
    return unit.node.position, unit.pods[0].name if unit.parent is None else None


def can_spare(tree: GangTree, held: Held, unit: Unit) -> bool:
    """Whether a gang that holds this can do without a pod or replica that was surplus before."""
    standing = stand(tree, counts_of(held))
    if unit.parent is None:
        leaf, bit = tree.places[unit.pods[0].name]
        return _has_surplus(standing, unit.node) and bool(held[leaf] >> bit & 1)
    return _is_spare(standing, unit.parent, unit.node)


def _surplus_of_leaves(standing: TreeCounts, node: GangNode, held: Held) -> Iterator[Unit]:
    """Pods of leaves with more than they need: of the last leaf in order the last pod first."""
    if node.is_leaf:
        if _has_surplus(standing, node):
            for pod in reversed(pods_of(node, held[node.first_leaf])):
                yield Unit(kind=UnitKind.POD, node=node, pods=(pod,))
        return
    for child in reversed(standing.ordered(node)):
        yield from _surplus_of_leaves(standing, child, held)


def _surplus_replicas(standing: TreeCounts, node: GangNode, held: Held) -> Iterator[Unit]:
    """Children that their satisfied parents do not need: deepest first, there the last in order.

    A replica that is in pieces is of no use: it goes before one that runs.
    """
    if node.is_leaf:
        return
    children = list(reversed(standing.ordered(node)))
    for child in children:
        yield from _surplus_replicas(standing, child, held)
    for child in sorted(children, key=standing.satisfied):
        if _is_spare(standing, node, child):
            pods = _pods_below(standing.tree, child, held)
            yield Unit(kind=UnitKind.REPLICA, node=child, pods=pods, parent=node)


def _has_surplus(standing: TreeCounts, leaf: GangNode) -> bool:
    return standing.reached[leaf.position] > leaf.minimum


def _is_spare(standing: TreeCounts, parent: GangNode, child: GangNode) -> bool:
    if not standing.pods[child.position] or not standing.satisfied(parent):
        return False
    return not standing.satisfied(child) or standing.reached[parent.position] > parent.minimum


def _pods_below(tree: GangTree, node: GangNode, held: Held) -> tuple[Pod, ...]:
    leaves = tree.leaves[node.first_leaf : node.end_leaf]
    pods = [pod for leaf in leaves for pod in pods_of(leaf, held[leaf.first_leaf])]
    return tuple(reversed(pods))
