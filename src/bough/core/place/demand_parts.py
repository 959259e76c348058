"""A demand of a gang, prepared for the search: pods by shape, constraints found, sizes summed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from bough.core.gang.demand import Demand
from bough.core.gang.tree import GangNode, GangTree, Held
from bough.core.place.columns import CPU, GPUS
from bough.core.place.domains import ResolvedConstraint, Topologies, UnknownTopology
from bough.core.place.pod_shapes import Shape, Shapes, is_alike
from bough.model.gang import Pod, TopologyConstraint
from bough.model.place_policy import PlacePolicy


class Run(msgspec.Struct, frozen=True, gc=False):
    """Candidates of one shape in a leaf, in pod order."""

    shape: Shape
    pods: tuple[Pod, ...]


class Least(NamedTuple):
    """What must be found at the very least."""

    pods: int
    gpus: int
    cpu_milli: int
    #: The shape of every candidate; `None` where there are several.
    shape: Shape | None


class Zone(NamedTuple):
    """A constraint on some pods of a gang."""

    scope: ResolvedConstraint
    #: Nodes of the required domains that hold such pods already; `None`: none does, all are open.
    pin: int | None
    #: Nodes that hold such pods already.
    near: int
    least: Least


class ZonedLeaves(NamedTuple):
    """A constraint on some of the leaves below a part."""

    zone: Zone
    #: Places in `GangTree.leaves`.
    leaves: frozenset[int]


class Part:
    """One node of the demand: `count` of its candidates are wanted."""

    __slots__ = (
        "_least",
        "_signature",
        "children",
        "count",
        "node",
        "open",
        "run_of_pod",
        "runs",
        "sets",
        "zone",
    )

    def __init__(self, demand: Demand, runs: tuple[Run, ...], children: tuple[Part, ...]) -> None:
        self.node = demand.node
        self.count = demand.count
        self.runs = runs
        #: For each pod, in pod order: its run. Empty where there is but one.
        self.run_of_pod: tuple[int, ...] = ()
        #: In the order in which they are tried.
        self.children = children
        self.zone: Zone | None = None
        self.sets: tuple[ZonedLeaves, ...] = ()
        #: Nothing in it or below it has a constraint.
        self.open = not children or all(child.open for child in children)
        # Most parts are placed without either.
        self._least: Least | None = None
        self._signature: Hashable | None = None

    @property
    def least(self) -> Least:
        """What must be found for it at the very least."""
        if self._least is None:
            self._least = _least(self.count, self.runs, self.children)
        return self._least

    @property
    def signature(self) -> Hashable:
        """Equal for parts that can be placed in the same ways."""
        if self._signature is None:
            self._signature = _signature(self)
        return self._signature

    @property
    def uniform(self) -> bool:
        """Whether all children can be placed in the same ways."""
        return len({child.signature for child in self.children}) <= 1


class Compiler:
    """Prepares the demands of one gang, for what it holds now."""

    def __init__(
        self,
        tree: GangTree,
        held: Held,
        where: Callable[[Pod], int | None],
        shapes: Shapes,
        topologies: Topologies,
        *,
        policy: PlacePolicy,
    ) -> None:
        self._tree = tree
        self._held = held
        self._where = where
        self._shapes = shapes
        self._topologies = topologies
        self._policy = policy
        #: Constraints that cannot be looked up, with the node that has them.
        self.unknown: list[tuple[GangNode, UnknownTopology]] = []

    def part(self, demand: Demand) -> Part:
        """Prepare a demand and all that is below it."""
        if not demand.children:
            part = leaf_part(demand, self._shapes)
        else:
            children = tuple(self.part(child) for child in demand.children)
            if self._policy.hardest_first and demand.count == len(children):
                children = _arranged(children)
            part = Part(demand, (), children)
        node = demand.node
        if node.constraint is not None:
            leaves = range(node.first_leaf, node.end_leaf)
            part.zone = self._zone(node, node.constraint, leaves, part.least)
        sets: list[ZonedLeaves] = []
        for group in node.sets:
            zone = self._zone(node, group.constraint, group.leaves, _least_of(part, group.leaves))
            if zone is not None:
                sets.append(ZonedLeaves(zone, frozenset(group.leaves)))
        part.sets = tuple(sets)
        part.open = part.open and part.zone is None and not sets
        return part

    def _zone(
        self, node: GangNode, constraint: TopologyConstraint, leaves: Iterable[int], least: Least
    ) -> Zone | None:
        scope = self._topologies.scope(constraint)
        if isinstance(scope, UnknownTopology):
            self.unknown.append((node, scope))
            return None
        if scope is None:
            return None
        near = self._nodes_of(leaves)
        pin = None
        binding = near & scope.domains.inside if self._policy.outside else near
        if scope.required is not None and binding:
            pin = scope.domains.levels[scope.required].holding(near)
        return Zone(scope, pin, near, least)

    def _nodes_of(self, leaves: Iterable[int]) -> int:
        """The nodes on which pods of some leaves are."""
        mask = 0
        for leaf in leaves:
            bits = self._held[leaf]
            if not bits:
                continue
            for bit, pod in enumerate(self._tree.leaves[leaf].pods):
                if bits >> bit & 1:
                    at = self._where(pod)
                    mask |= 0 if at is None else 1 << at
        return mask


def leaf_part(demand: Demand, shapes: Shapes) -> Part:
    """Prepare the demand of a leaf, without its constraints."""
    pods = demand.pods
    runs = _runs(pods, shapes)
    part = Part(demand, runs, ())
    if len(runs) > 1:
        number = {run.shape: at for at, run in enumerate(runs)}
        part.run_of_pod = tuple(number[shapes.of(pod)] for pod in pods)
    return part


def _runs(pods: tuple[Pod, ...], shapes: Shapes) -> tuple[Run, ...]:
    if not pods:
        return ()
    before = pods[0]
    shape = shapes.of(before)
    if len(pods) == 1:
        return (Run(shape, pods),)
    alike: dict[Shape, list[Pod]] = {}
    for pod in pods:
        # Most pods are like the one before, and comparing is cheaper than looking up.
        if not is_alike(pod, before):
            before = pod
            shape = shapes.of(pod)
        alike.setdefault(shape, []).append(pod)
    return tuple(Run(shape, tuple(members)) for shape, members in alike.items())


def _arranged(children: tuple[Part, ...]) -> tuple[Part, ...]:
    """All are needed: those that are hardest to place come first, whatever their order."""
    if all(child.open for child in children):
        return children
    return tuple(sorted(children, key=lambda child: (child.open, -_hardness(child))))


def _hardness(part: Part) -> int:
    return 0 if part.open else part.least.gpus


def _least(count: int, runs: tuple[Run, ...], children: tuple[Part, ...]) -> Least:
    """The smallest choice of `count` candidates, resource by resource."""
    if len(runs) == 1:
        shape = runs[0].shape
        return Least(count, count * shape.gpus, count * shape.request[CPU], shape)
    if runs:
        pods = [run.shape.request for run in runs for _ in run.pods]
        gpus = sum(sorted(row[GPUS] for row in pods)[:count])
        cpu = sum(sorted(row[CPU] for row in pods)[:count])
        return Least(count, gpus, cpu, None)
    leasts = [child.least for child in children]
    shapes = {least.shape for least in leasts}
    return Least(
        sum(sorted(least.pods for least in leasts)[:count]),
        sum(sorted(least.gpus for least in leasts)[:count]),
        sum(sorted(least.cpu_milli for least in leasts)[:count]),
        shapes.pop() if len(shapes) == 1 else None,
    )


def _least_of(part: Part, leaves: tuple[int, ...]) -> Least:
    """What must be found for some leaves below a part: only what every choice takes is certain."""
    certain: list[Least] = []
    open_parts = [part]
    while open_parts:
        at = open_parts.pop()
        if at.runs:
            if at.node.first_leaf in leaves:
                certain.append(at.least)
        elif at.count == len(at.children):
            open_parts.extend(at.children)
    return Least(
        sum(least.pods for least in certain),
        sum(least.gpus for least in certain),
        sum(least.cpu_milli for least in certain),
        None,
    )


def _signature(part: Part) -> Hashable:
    inside: Hashable
    if part.children:
        inside = tuple(child.signature for child in part.children)
    else:
        inside = tuple((run.shape, len(run.pods)) for run in part.runs)
    if part.open:
        return (part.count, inside)
    zone = _zone_signature(part.zone)
    if not part.sets:
        return (part.count, inside, zone)
    # Sets name leaves by their places in the gang: parts are alike only where these are the same.
    sets = tuple((_zone_signature(group.zone), group.leaves) for group in part.sets)
    return (part.count, inside, zone, sets, tuple(_leaves(part)))


def _leaves(part: Part) -> Iterator[int]:
    if part.children:
        for child in part.children:
            yield from _leaves(child)
    else:
        yield part.node.first_leaf


def _zone_signature(zone: Zone | None) -> Hashable:
    if zone is None:
        return None
    scope = zone.scope
    return (scope.domains.name, scope.required, scope.preferred, zone.pin, zone.near)
