"""Whether a gang can start at all, found by trying everything. Slow, plain, and independent.

Written from the words of the designs: no masks, no memory, no order of choice, no undo.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, product

from bough.model.cluster import Node, Resources, TaintEffect, Topology
from bough.model.gang import Gang, Pod, PodState, SubGroup, TopologyConstraint


def can_start(gang: Gang, others: list[Gang], nodes: list[Node], topology: Topology) -> bool:
    """Whether some sufficient choice of waiting pods fits, beside all pods that are there."""
    free = {node.name: _Free(node.capacity) for node in nodes}
    for pod in (pod for each in (gang, *others) for pod in each.pods):
        if pod.node in free and pod.state in {PodState.RUNNING, PodState.RELEASING}:
            free[pod.node].take(pod.requests)
    world = _World(nodes, free, topology, gang)
    return any(world.fits(list(pods), {}) for pods in _choices(gang, None))


def domain_of(node: Node, topology: Topology, level: str) -> tuple[str, ...] | None:
    """The label values down to a level, if the node has all labels of the topology."""
    labels = [each.label for each in topology.levels]
    if any(label not in node.labels for label in labels):
        return None
    depth = next(i for i, each in enumerate(topology.levels) if level in {each.label, each.alias})
    return tuple(node.labels[label] for label in labels[: depth + 1])


def allows(node: Node, pod: Pod) -> bool:
    """Whether a pod may use a node: the selector, taints and cordons only."""
    if node.cordoned or any(node.labels.get(k) != v for k, v in pod.node_selector.items()):
        return False
    return all(
        taint.effect is TaintEffect.PREFER_NO_SCHEDULE
        or any(tol.key == taint.key and tol.operator == "Exists" for tol in pod.tolerations)
        for taint in node.taints
    )


def confined(gang: Gang) -> list[tuple[TopologyConstraint, list[Pod]]]:
    """Each constraint, with the pods for which it holds."""
    found = [(gang.constraint, list(gang.pods))] if gang.constraint else []
    for subgroup in gang.subgroups:
        if subgroup.constraint:
            leaves = _leaves_below(gang, subgroup.name)
            found.append((subgroup.constraint, [p for p in gang.pods if p.subgroup in leaves]))
    for group in gang.sets:
        leaves = {leaf for member in group.members for leaf in _leaves_below(gang, member)}
        found.append((group.constraint, [pod for pod in gang.pods if pod.subgroup in leaves]))
    return found


@dataclass
class _Free:
    left: Resources
    taken: list[Resources] = field(default_factory=list)

    def fits(self, wanted: Resources) -> bool:
        return all(
            getattr(self.left, name) >= (1 if name == "pods" else getattr(wanted, name))
            for name in ("gpus", "cpu_milli", "memory_bytes", "pods")
            if name == "pods" or getattr(wanted, name)
        )

    def take(self, wanted: Resources, sign: int = 1) -> None:
        self.left = Resources(
            self.left.gpus - sign * wanted.gpus,
            self.left.cpu_milli - sign * wanted.cpu_milli,
            self.left.memory_bytes - sign * wanted.memory_bytes,
            self.left.pods - sign,
        )


@dataclass
class _World:
    nodes: list[Node]
    free: dict[str, _Free]
    topology: Topology
    gang: Gang

    def fits(self, pods: list[Pod], placed: dict[str, Node]) -> bool:
        if len(placed) == len(pods):
            return True
        pod = pods[len(placed)]
        for node in self.nodes:
            free = self.free[node.name]
            if not (allows(node, pod) and free.fits(pod.requests)):
                continue
            placed[pod.name] = node
            free.take(pod.requests)
            if self._together(placed) and self.fits(pods, placed):
                return True
            free.take(pod.requests, -1)
            del placed[pod.name]
        return False

    def _together(self, placed: dict[str, Node]) -> bool:
        by_name = {node.name: node for node in self.nodes}
        for constraint, pods in confined(self.gang):
            if constraint.required is None:
                continue
            level = constraint.required
            domains = {
                domain_of(placed[pod.name], self.topology, level)
                for pod in pods
                if pod.name in placed
            }
            running = {
                domain_of(by_name[pod.node], self.topology, level)
                for pod in pods
                if pod.state is PodState.RUNNING and pod.node in by_name
            } - {None}
            if len(domains) > 1 or None in domains or (running and domains - running):
                return False
        return True


def _choices(gang: Gang, name: str | None) -> Iterator[tuple[Pod, ...]]:
    """Every smallest set of waiting pods that gives a node what it still needs."""
    children = [group for group in gang.subgroups if group.parent == name]
    if not children:
        pods = [pod for pod in gang.pods if pod.subgroup == name]
        running = sum(pod.state is PodState.RUNNING for pod in pods)
        waiting = [pod for pod in pods if pod.state is PodState.PENDING]
        yield from combinations(waiting, max(_minimum(gang, name, len(pods)) - running, 0))
        return
    options = [list(_choices(gang, child.name)) for child in children]
    for chosen in combinations(options, _minimum(gang, name, len(children))):
        for pods in product(*chosen):
            yield tuple(pod for group in pods for pod in group)


def _minimum(gang: Gang, name: str | None, everything: int) -> int:
    source: Gang | SubGroup = gang
    if name is not None:
        source = next(group for group in gang.subgroups if group.name == name)
    return everything if source.minimum is None else source.minimum


def _leaves_below(gang: Gang, name: str) -> set[str]:
    below = {name}
    for _ in gang.subgroups:
        below |= {group.name for group in gang.subgroups if group.parent in below}
    return below - {group.parent for group in gang.subgroups}
