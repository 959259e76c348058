"""A gang laid out for counting: its subgroups as a tree, its pods in the leaves, in order.

The leaves stand in one row, and those below any node are a contiguous part of it. So the state of a
gang is one number for each leaf: a count where it is enough to count, a bit set of its pods (bit
`i` is the leaf's `pods[i]`) where they must be told apart. Both are cheap to copy and to change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import Self

import msgspec

from bough.core.gang.order import SPEC_ORDER, Order, sort_pods
from bough.errors import Broken
from bough.model.gang import Gang, Pod, PodState, SubGroup, SubGroupSet, TopologyConstraint

#: How deep subgroups may be nested. Validation refuses more, so that recursion is safe everywhere.
MAX_DEPTH = 64

#: For each leaf, in the order of `GangTree.leaves`: how many pods.
Counts = Sequence[int]
#: For each leaf, in the order of `GangTree.leaves`: which pods, as a bit set over its `pods`.
Held = tuple[int, ...]


class LeafSet(msgspec.Struct, frozen=True, gc=False):
    """Leaves below one node whose pods are together."""

    constraint: TopologyConstraint
    #: Positions in `GangTree.leaves`, ascending.
    leaves: tuple[int, ...]


class GangNode(msgspec.Struct, frozen=True, gc=False):
    """A subgroup, or the gang itself."""

    #: The gang's own name at the root.
    name: str
    #: Its own place in `GangTree.nodes`; tells nodes apart, as a subgroup may have the gang's name.
    position: int
    #: Pods (leaf) or children (inner node) that it needs.
    minimum: int
    #: In the order of the spec.
    children: tuple[GangNode, ...]
    #: In pod order; inner nodes have none.
    pods: tuple[Pod, ...]
    #: Its leaves are `GangTree.leaves[first_leaf:end_leaf]`.
    first_leaf: int
    end_leaf: int
    #: Holds for all pods below.
    constraint: TopologyConstraint | None = None
    #: Each holds for the pods of some of the leaves below, at whatever depth they are.
    sets: tuple[LeafSet, ...] = ()

    @property
    def is_leaf(self) -> bool:
        """Whether pods, and not subgroups, are below it."""
        return not self.children


class GangTree(msgspec.Struct, frozen=True, gc=False):
    """A gang as a tree of subgroups over pods."""

    root: GangNode
    #: Every node before its children, siblings in the order of the spec.
    nodes: tuple[GangNode, ...]
    leaves: tuple[GangNode, ...]
    order: Order
    #: Where each pod is: the leaf's place in `leaves` and the bit within it.
    places: dict[str, tuple[int, int]]
    #: The pods that hold a place, as the gang's pods say.
    held: Held
    #: The pods that may be given one.
    pending: Held
    #: Whether some pod has ended well: what is left of such a gang is not stale.
    succeeded: bool
    #: Pods that belong to no leaf; they are never placed.
    strays: tuple[Pod, ...]

    @classmethod
    def of(cls, gang: Gang, order: Order = SPEC_ORDER) -> Self:
        """Lay out a gang that obeys the rules of core.gang.validation."""
        if not gang.subgroups and not gang.sets:
            return cls._of_one_leaf(gang, order)
        pods, strays = _pods_of_leaves(gang)
        layout = _Layout(gang, pods)
        root = layout.node(None, 0)
        if len(layout.nodes) != len(gang.subgroups) + 1:
            message = f"gang {gang.name!r}: subgroups with a parent that is unknown or below them"
            raise Broken(message)
        nodes = tuple(layout.nodes[position] for position in range(len(layout.nodes)))
        leaves = tuple(node for node in nodes if node.is_leaf)
        return cls(
            root=root,
            nodes=nodes,
            leaves=leaves,
            order=order,
            places={
                pod.name: (leaf.first_leaf, bit)
                for leaf in leaves
                for bit, pod in enumerate(leaf.pods)
            },
            held=tuple(_bits(leaf, PodState.RUNNING) for leaf in leaves),
            pending=tuple(_bits(leaf, PodState.PENDING) for leaf in leaves),
            succeeded=any(pod.state is PodState.SUCCEEDED for pod in gang.pods),
            strays=strays,
        )

    @classmethod
    def _of_one_leaf(cls, gang: Gang, order: Order) -> Self:
        """The same for a gang that is its only leaf, as most are; this is done very often."""
        pods = sort_pods([pod for pod in gang.pods if pod.subgroup is None])
        minimum = max(len(pods), 1) if gang.minimum is None else gang.minimum
        if minimum < 1:
            raise Broken(f"gang {gang.name!r}: {gang.name!r} needs {minimum}, less than 1")
        root = GangNode(gang.name, 0, minimum, (), pods, 0, 1, gang.constraint)
        held = pending = 0
        succeeded = False
        places: dict[str, tuple[int, int]] = {}
        for bit, pod in enumerate(pods):
            places[pod.name] = (0, bit)
            if pod.state is PodState.PENDING:
                pending |= 1 << bit
            elif pod.state is PodState.RUNNING:
                held |= 1 << bit
            elif pod.state is PodState.SUCCEEDED:
                succeeded = True
        strays = ()
        if len(pods) < len(gang.pods):
            strays = tuple(pod for pod in gang.pods if pod.subgroup is not None)
            succeeded = succeeded or any(pod.state is PodState.SUCCEEDED for pod in strays)
        return cls(root, (root,), (root,), order, places, (held,), (pending,), succeeded, strays)

    def siblings(self, node: GangNode) -> Sequence[GangNode]:
        """The children of a node in the order that breaks ties."""
        if self.order.by_name:
            return sorted(node.children, key=lambda child: child.name)
        return node.children

    def named(self, names: Iterable[str]) -> Iterator[Pod]:
        """The pods of these names."""
        for name in names:
            leaf, bit = self.places[name]
            yield self.leaves[leaf].pods[bit]

    def with_pods(self, held: Held, names: Iterable[str]) -> Held:
        """What is held once these pods have a place, too."""
        bits = list(held)
        for name in names:
            leaf, bit = self.places[name]
            bits[leaf] |= 1 << bit
        return tuple(bits)

    def without_pods(self, held: Held, names: Iterable[str]) -> Held:
        """What is held once these pods are gone."""
        bits = list(held)
        for name in names:
            leaf, bit = self.places[name]
            bits[leaf] &= ~(1 << bit)
        return tuple(bits)

    def waiting(self, held: Held) -> Held:
        """The pods that may still be given a place."""
        return tuple(pending & ~taken for pending, taken in zip(self.pending, held, strict=True))


def counts_of(held: Held) -> tuple[int, ...]:
    """Count the pods of each leaf."""
    return tuple(bits.bit_count() for bits in held)


def pods_of(leaf: GangNode, bits: int) -> tuple[Pod, ...]:
    """Name the pods of one leaf, in pod order."""
    digits = f"{bits:b}"
    if digits.count("1") == len(leaf.pods):
        return leaf.pods
    return tuple(compress(leaf.pods, map("1".__eq__, reversed(digits))))


class _Layout:
    """Builds the nodes depth first, so that leaves take their places in the row in turn."""

    def __init__(self, gang: Gang, pods: dict[str | None, list[Pod]]) -> None:
        self.gang = gang
        self.pods = pods
        self.children = children_of(gang.subgroups)
        self.sets = _sets_by_node(gang)
        #: In the order of their places; a place is taken before the node can be made.
        self.nodes: dict[int, GangNode] = {}
        self.next_position = 0
        self.next_leaf = 0
        #: The leaves below each subgroup that is laid out.
        self.rows: dict[str | None, range] = {}

    def node(self, subgroup: SubGroup | None, depth: int) -> GangNode:
        """Make a node and all that is below it; `None` is the gang itself."""
        if depth > MAX_DEPTH:
            raise Broken(f"gang {self.gang.name!r} is nested deeper than {MAX_DEPTH}")
        name = subgroup.name if subgroup else None
        position = self.next_position
        self.next_position += 1
        first = self.next_leaf
        below = self.children.get(name, [])
        children = tuple(self.node(child, depth + 1) for child in below)
        if not children:
            self.next_leaf += 1
        self.rows[name] = range(first, self.next_leaf)
        made = self._make(subgroup or self.gang, position, children, self.rows[name])
        self.nodes[position] = made
        return made

    def _make(
        self, source: SubGroup | Gang, position: int, children: tuple[GangNode, ...], row: range
    ) -> GangNode:
        name = source.name if isinstance(source, SubGroup) else None
        pods = () if children else sort_pods(self.pods.get(name, []))
        everything = len(children) if children else max(len(pods), 1)
        minimum = everything if source.minimum is None else source.minimum
        if minimum < 1:
            raise Broken(f"gang {self.gang.name!r}: {source.name!r} needs {minimum}, less than 1")
        return GangNode(
            name=source.name,
            position=position,
            minimum=minimum,
            children=children,
            pods=pods,
            first_leaf=row.start,
            end_leaf=row.stop,
            constraint=source.constraint,
            sets=tuple(self._leaf_set(group) for group in self.sets.get(name, [])),
        )

    def _leaf_set(self, group: SubGroupSet) -> LeafSet:
        leaves = {leaf for member in group.members for leaf in self.rows[member]}
        return LeafSet(constraint=group.constraint, leaves=tuple(sorted(leaves)))


def children_of(subgroups: Sequence[SubGroup]) -> dict[str | None, list[SubGroup]]:
    """The subgroups directly below each, and below the gang itself (`None`), in spec order."""
    children: dict[str | None, list[SubGroup]] = {}
    for subgroup in subgroups:
        children.setdefault(subgroup.parent, []).append(subgroup)
    return children


def _pods_of_leaves(gang: Gang) -> tuple[dict[str | None, list[Pod]], tuple[Pod, ...]]:
    """Put each pod into its leaf; where there are no subgroups the gang itself is the leaf."""
    inner = {subgroup.parent for subgroup in gang.subgroups}
    leaves: set[str | None] = {group.name for group in gang.subgroups if group.name not in inner}
    pods: dict[str | None, list[Pod]] = {leaf: [] for leaf in leaves or {None}}
    strays: list[Pod] = []
    for pod in gang.pods:
        pods.get(pod.subgroup, strays).append(pod)
    return pods, tuple(strays)


def _sets_by_node(gang: Gang) -> dict[str | None, list[SubGroupSet]]:
    """Attach each set to the deepest node that has all of its members below it."""
    parents = {subgroup.name: subgroup.parent for subgroup in gang.subgroups}
    attached: dict[str | None, list[SubGroupSet]] = {}
    for group in gang.sets:
        lines = [_line(member, parents) for member in group.members]
        shared = [steps[0] for steps in zip(*lines, strict=False) if len({*steps}) == 1]
        attached.setdefault(shared[-1], []).append(group)
    return attached


def _line(name: str | None, parents: dict[str, str | None]) -> list[str | None]:
    """From the gang itself (`None`) down to a subgroup."""
    line: list[str | None] = [name]
    while name is not None and len(line) <= len(parents):
        name = parents[name]
        line.append(name)
    return line[::-1]


def _bits(leaf: GangNode, state: PodState) -> int:
    return sum(1 << bit for bit, pod in enumerate(leaf.pods) if pod.state is state)
