"""KAI's recorded answers about topologies: which sets of nodes are tried for some pods, in order.

Translates the inputs to the core's types and back; every rule is the core's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bough.core.gang.demand import Demand, needed
from bough.core.gang.order import NAME_ORDER
from bough.core.gang.tree import GangTree
from bough.core.place.demand_parts import Zone
from bough.core.place.domain_options import Spread, options, roomiest_first, spread_of
from bough.core.place.domains import UnknownTopology
from bough.core.place.node_bits import positions
from bough.core.place.placer import Placer
from bough.core.place.reasons import explain
from bough.core.place.result import NoPlace
from bough.model.cluster import Node, Resources
from bough.model.gang import Gang, Pod, PodState, TopologyConstraint
from bough.model.policy import KAI_FAIR
from conformance.kai_objects import topologies_of

Case = dict[str, Any]

#: The recorded scheduler tells so many ranks of domains apart, and gives so many points for each.
_RANKS, _POINTS = 10, 10_000


def subset_nodes(case: Case) -> Case:
    """The sets of nodes in the order in which they are tried; or why there is none."""
    given = case["in"]
    gang = _gang(given)
    tree = GangTree.of(gang, NAME_ORDER)
    demand = needed(tree, tree.held)
    if demand is None:
        return {"unsupported": "a gang that lacks nothing"}
    placer = _placer(given, gang)
    everything = placer.index.everything
    part = placer.compile(tree, demand, tree.held)
    if isinstance(part, NoPlace):
        return _unresolved(part.unresolved[0].problem)
    if part.zone is None:
        return _out({"node_sets": [_names(placer, everything)], "fit_errors": []})
    sets = [option.nodes for option in options(placer.index, part.zone, everything)]
    out: Case = {"node_sets": [_names(placer, nodes) for nodes in sets], "fit_errors": []}
    preferred = part.zone.scope.domains.number(given["constraint"]["preferred_level"])
    if not sets:
        out["fit_errors"] = _errors(placer, tree, demand, part.zone, preferred)
    if preferred is not None:
        out["node_scores"] = _scores(placer, spread_of(part.zone, preferred))
    return _out(out)


ANSWERS: dict[str, Callable[[Case], Case]] = {"unit_topology_subset_nodes": subset_nodes}


def _out(value: Case) -> Case:
    return {"actual": {"out": value}}


def _gang(given: Case) -> Gang:
    """The pods that must be together, those that wait and those that run."""
    waiting = [Pod(task["name"], requests=_resources(task)) for task in given["tasks"]]
    running = [
        Pod(f"{pod['name']} runs", state=PodState.RUNNING, node=pod["node"])
        for pod in given["active_pods"]
    ]
    wish = given.get("constraint")
    constraint = wish and TopologyConstraint(
        wish["topology"], wish["required_level"] or None, wish["preferred_level"] or None
    )
    job = given["tasks"][0]["name"].rpartition("-")[0] if waiting else ""
    pods = (*waiting, *running)
    return Gang(job, "queue", pods, minimum=len(pods), constraint=constraint or None)


def _placer(given: Case, gang: Gang) -> Placer:
    """The nodes, with what is free on them now and what will be."""
    nodes: list[Node] = []
    for node in given["nodes"]:
        idle, ending = node["idle"], node["releasing"]
        free = {name: max(0, idle[name]) + ending.get(name, 0) for name in idle}
        nodes.append(Node(node["name"], _resources(free), labels=node.get("labels") or {}))
    placer = Placer(nodes, topologies_of(given), KAI_FAIR.gangs.placement)
    placer.add([gang])
    for node in given["nodes"]:
        name = node["name"]
        overdrawn = {key: max(0, -amount) for key, amount in node["idle"].items()}
        placer.take("others", Pod(f"{name} too much", requests=_resources(overdrawn)), name)
        placer.take("others", Pod(f"{name} ends", requests=_resources(node["releasing"])), name)
        placer.release("others", f"{name} ends")
    return placer


def _resources(given: Case) -> Resources:
    return Resources(
        gpus=int(given["gpu"]),
        cpu_milli=int(given["cpu_millis"]),
        memory_bytes=int(given["memory_bytes"]),
        pods=int(given.get("pods", 0)),
    )


def _names(placer: Placer, nodes: int) -> list[str]:
    return sorted(placer.index.nodes[at].name for at in positions(nodes))


def _scores(placer: Placer, spread: Spread) -> dict[str, int]:
    """The nodes of the domain that is filled first are worth most."""
    masks = spread.domains.levels[spread.level].masks
    filled = list(roomiest_first(spread))
    return {
        name: (len(filled) - turn) * _RANKS // len(filled) * _POINTS
        for turn, domain in enumerate(filled)
        for name in _names(placer, masks[domain])
    }


def _unresolved(problem: UnknownTopology) -> Case:
    """A constraint that names what there is not, in the recorded words."""
    constraint = problem.constraint
    if problem.unknown == constraint.topology:
        error = f"Requested topology {problem.unknown} does not exist"
        return _out({"node_sets": [], "fit_errors": [error]})
    kind = "required" if problem.unknown == constraint.required else "preferred"
    error = (
        f"topology constraint error: sub-group  specified '{problem.unknown}' as the {kind} "
        f"topology constraint level, but the topology tree '{constraint.topology}' does not "
        "contain a level with this name"
    )
    return _out({"node_sets": [], "fit_errors": [], "error": error})


def _errors(
    placer: Placer, tree: GangTree, demand: Demand, zone: Zone, preferred: int | None
) -> list[str]:
    """Why no set of nodes is tried, in the recorded words."""
    domains, required, _ = zone.scope
    level = "" if required is None else domains.levels[required].label
    error = (
        f"topology {domains.name}, requirement {level} couldn't be satisfied "
        f"for job </{tree.root.name}>"
    )
    shape = zone.least.shape
    if shape and placer.index.count(shape, domains.inside, later=True) < zone.least.pods:
        finest = len(domains.levels) - 1 if preferred is None else preferred
        around = domains.around(placer.index.everything, finest)
        where = "the cluster" if around is None else domains.levels[around[0]].ids[around[1]]
        return [f"{error}: not enough resources in {where} to allocate the job"]
    lacks = explain(placer, tree, demand, tree.held, later=True).lacks
    rooms = [
        f"<{room.domain}>: node-group {room.domain} can allocate only {room.pods} of "
        f"{lack.together.needed} required pods"
        for lack in lacks
        if lack.together
        for room in lack.together.best
    ]
    return [*rooms, error]
