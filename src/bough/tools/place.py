"""`bough place`: where the pods of gangs go on some nodes, or why they have no place.

Gangs are served in the order in which they are written; queues and quotas do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bough.api.file_answers import (
    PlacedGang,
    PlacementAnswer,
    PlaceNode,
    PlaceRefusal,
    PlaceTopology,
    PodOnNode,
    PodPlacement,
    TooFewPods,
    UnplacedPods,
    UnresolvedTopology,
)
from bough.api.why import (
    MissingChildren,
    NodeCauseCount,
    TogetherConstraint,
    TopologyDomainRoom,
)
from bough.core.gang.demand import needed
from bough.core.gang.sufficiency import shortages
from bough.core.gang.tree import GangTree
from bough.core.place.columns import GPUS
from bough.core.place.placer import Placer
from bough.core.place.reasons import explain
from bough.core.place.result import GangPlacement, NoPlace, Placement, Unresolved
from bough.errors import NotFound
from bough.formats.kubernetes.nodes import read_nodes
from bough.model.gang import PodState
from bough.model.place_policy import Packing, PlacePolicy
from bough.model.shortage import Explanation, Lack
from bough.model.words import suggest
from bough.tools.file_problems import problem_answers
from bough.tools.load_gangs import gather
from bough.tools.load_organisation import in_order, read_texts, refuse_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bough.model.cluster import Node, Topology
    from bough.model.gang import Gang
    from bough.model.problem import Problem


#: How pods that have a node already are called in an answer.
_PRESENT = {PodState.RUNNING: "runs", PodState.RELEASING: "ends"}


class _Input(NamedTuple):
    nodes: tuple[Node, ...]
    topologies: tuple[Topology, ...]
    gangs: tuple[Gang, ...]
    problems: list[Problem]


def place(
    node_paths: Iterable[str],
    paths: Iterable[str],
    *,
    lenient: bool = False,
    spread: bool = False,
    topology: str | None = None,
) -> PlacementAnswer:
    """Place every gang as far as there is room, in order.

    spread:    emptier nodes first, instead of fuller ones.
    topology:  which topology the nodes are listed by; the only one, or the first, where absent.
    """
    found = _read([*node_paths], [*paths], lenient=lenient)
    shown = _shown_topology(found.topologies, topology)
    packing = Packing.SPREAD if spread else Packing.BEST_FIT
    placer = Placer(found.nodes, found.topologies, PlacePolicy(packing=packing))
    placer.add(found.gangs)
    gangs = [_place(placer, gang) for gang in found.gangs]
    return PlacementAnswer(
        placed=all(gang.refusal is None for gang in gangs),
        gangs=gangs,
        topology=None if shown is None else _topology_answer(shown),
        nodes=_node_answers(placer, found, shown, gangs),
        problems=problem_answers(found.problems),
    )


def _read(node_paths: list[str], paths: list[str], *, lenient: bool) -> _Input:
    """Read all files as one: nodes and topologies can be in any of them."""
    texts = read_texts([*node_paths, *paths])
    nodes = read_nodes(texts.documents, lenient=lenient)
    gangs = gather(texts.documents, lenient=lenient)
    problems = in_order([*texts.problems, *nodes.problems, *gangs.problems], texts.files)
    refuse_errors(problems, lenient=lenient)
    if not nodes.nodes:
        raise NotFound(
            f"there is no Node in {', '.join(node_paths)}",
            hint="--nodes takes files with objects of kind Node, as `kubectl get nodes -o yaml`",
        )
    return _Input(nodes.nodes, gangs.objects.topologies, gangs.gangs, problems)


def _shown_topology(topologies: Sequence[Topology], name: str | None) -> Topology | None:
    if name is None:
        return topologies[0] if topologies else None
    for topology in topologies:
        if topology.name == name:
            return topology
    known = [topology.name for topology in topologies]
    raise NotFound(f"there is no topology called {name}{suggest(name, known)}")


def _place(placer: Placer, gang: Gang) -> PlacedGang:
    """Start one gang, and say where its pods went or what is in the way."""
    tree = GangTree.of(gang)
    subgroups = {pod.name: pod.subgroup for pod in gang.pods}
    found = GangPlacement(Placement(()))
    if any(tree.pending):
        found = placer.start(tree, tree.held, later=True)
    started = [
        PodPlacement(each.pod, subgroups[each.pod], each.node, each.waits, optional)
        for unit, optional in _units(found)
        for each in unit.assignments
    ]
    names = {each.pod for each in started}
    return PlacedGang(
        name=gang.name,
        queue=gang.queue,
        running=[pod.name for pod in gang.pods if pod.state is PodState.RUNNING],
        started=started,
        left=[
            pod.name for pod in gang.pods if pod.state is PodState.PENDING and pod.name not in names
        ],
        refusal=_refusal_answer(placer, tree, found) if isinstance(found, NoPlace) else None,
    )


def _units(found: GangPlacement | NoPlace) -> list[tuple[Placement, bool]]:
    """What was placed, and whether the gang could do without it."""
    if isinstance(found, NoPlace):
        return []
    return [(found.core, False), *((unit, True) for unit in found.growth)]


def _refusal_answer(placer: Placer, tree: GangTree, refusal: NoPlace) -> PlaceRefusal:
    """Why a gang has no place; exactly one of the lists says it."""
    demand = needed(tree, tree.held)
    why = Explanation()
    if demand is not None:
        why = explain(placer, tree, demand, tree.held, later=True)
    return PlaceRefusal(
        lacks_pods=[
            TooFewPods(each.node.name, each.available, each.needed)
            for each in (shortages(tree) if refusal.lacks_pods else ())
        ],
        unresolved=[_unresolved_answer(each) for each in refusal.unresolved],
        short=[
            MissingChildren(each.subgroup, each.needed, each.found, each.candidates)
            for each in why.short
        ],
        lacks=[_lack_answer(each) for each in why.lacks],
        gave_up=refusal.gave_up,
    )


def _unresolved_answer(unresolved: Unresolved) -> UnresolvedTopology:
    problem = unresolved.problem
    return UnresolvedTopology(
        subgroup=unresolved.subgroup,
        topology=problem.constraint.topology,
        unknown=problem.unknown,
        known=list(problem.known),
    )


def _lack_answer(lack: Lack) -> UnplacedPods:
    together = lack.together
    requests = lack.requests
    return UnplacedPods(
        subgroup=lack.subgroup,
        needed=lack.needed,
        found=lack.found,
        missing=lack.missing,
        requests={
            "gpus": requests.gpus,
            "cpu_milli": requests.cpu_milli,
            "memory_bytes": requests.memory_bytes,
            **dict(requests.other),
        },
        together=together
        and TogetherConstraint(
            topology=together.topology,
            level=together.level,
            needed=together.needed,
            best=[TopologyDomainRoom(each.domain, each.pods) for each in together.best],
            domains=together.domains,
            pinned=together.pinned,
        ),
        absent=list(lack.absent),
        unsupported=lack.unsupported or None,
        nodes=[NodeCauseCount(each.cause.value, each.nodes, each.resource) for each in lack.nodes],
    )


def _topology_answer(topology: Topology) -> PlaceTopology:
    return PlaceTopology(topology.name, [level.alias or level.label for level in topology.levels])


def _node_answers(
    placer: Placer, found: _Input, topology: Topology | None, gangs: Iterable[PlacedGang]
) -> list[PlaceNode]:
    """Every node, by domain and then by name, with the gangs that use its GPUs."""
    pods: dict[str, list[PodOnNode]] = {node.name: [] for node in found.nodes}
    for gang, answer in zip(found.gangs, gangs, strict=True):
        started = {each.pod: each for each in answer.started}
        for pod in gang.pods:
            new = started.get(pod.name)
            node = new.node if new else pod.node
            if node in pods and (new or pod.state in _PRESENT):
                state = _PRESENT.get(pod.state, "waits" if new and new.waits else "starts")
                pods[node].append(PodOnNode(gang.name, pod.name, pod.requests.gpus, state))
    answers = [
        PlaceNode(
            name=node.name,
            domain=_path(node, topology),
            gpus=node.capacity.gpus,
            free_gpus=max(0, later[GPUS]),
            cordoned=node.cordoned,
            pods=pods[node.name],
        )
        for node, later in zip(placer.index.nodes, placer.index.later, strict=True)
    ]
    return sorted(answers, key=lambda each: (not each.domain, each.domain))


def _path(node: Node, topology: Topology | None) -> list[str]:
    """The domains of a node, the widest first; none where it lacks any of the labels."""
    labels = [] if topology is None else [level.label for level in topology.levels]
    path = [node.labels[label] for label in labels if label in node.labels]
    return path if len(path) == len(labels) else []
