"""Clusters, pods and gangs that several tests of placement build."""

from __future__ import annotations

from bough.core.gang.tree import GangTree
from bough.core.place.placer import Placer
from bough.core.place.result import GangPlacement, NoPlace
from bough.model.cluster import Node, Resources, Topology, TopologyLevel
from bough.model.gang import Gang, Pod, PodState, SubGroup, TopologyConstraint
from bough.model.place_policy import PlacePolicy

TOPOLOGY = Topology("wires", (TopologyLevel("zone"), TopologyLevel("rack", "shelf")))
RACK = TopologyConstraint(required="rack")
ZONE = TopologyConstraint(required="zone")
NEAR = TopologyConstraint(preferred="rack")


def node(name: str, gpus: int = 8, **fields: object) -> Node:
    """A node with plenty of everything but GPUs; `rack="a.x"` gives it both labels."""
    rack = fields.pop("rack", None)
    labels = dict(zip(("zone", "rack"), str(rack).split("."), strict=True)) if rack else {}
    labels |= fields.pop("labels", {})  # type: ignore[arg-type]
    capacity = fields.pop("capacity", Resources(gpus, 64_000, 1 << 40, 110))
    return Node(name, capacity, labels, **fields)  # type: ignore[arg-type]


def pod(name: str, gpus: int = 1, subgroup: str | None = None, **fields: object) -> Pod:
    requests = fields.pop("requests", Resources(gpus=gpus, cpu_milli=1_000, memory_bytes=1 << 30))
    if "node" in fields:
        fields.setdefault("state", PodState.RUNNING)
    return Pod(name, subgroup, requests, **fields)  # type: ignore[arg-type]


def gang(*pods: Pod, minimum: int | None = None, name: str = "gang", **fields: object) -> Gang:
    """A gang that needs all of its pods, unless a minimum is given."""
    needs = len(pods) if minimum is None and "subgroups" not in fields else minimum
    return Gang(name, "q", pods, minimum=needs, **fields)  # type: ignore[arg-type]


def replicas(
    sizes: list[int],
    *,
    gpus: int = 1,
    minimum: int | None = None,
    constraint: TopologyConstraint | None = None,
    **fields: object,
) -> Gang:
    """Subgroups `r0`, `r1`, ... that each need all of their pods."""
    return gang(
        *(pod(f"r{at}-{i}", gpus, f"r{at}") for at, size in enumerate(sizes) for i in range(size)),
        subgroups=tuple(
            SubGroup(f"r{at}", minimum=size, constraint=constraint) for at, size in enumerate(sizes)
        ),
        minimum=minimum,
        **fields,
    )


def start(
    nodes: list[Node],
    wanted: Gang,
    *others: Gang,
    policy: PlacePolicy | None = None,
    later: bool = False,
) -> GangPlacement | NoPlace:
    placer = Placer(nodes, [TOPOLOGY], policy)
    placer.add([*others, wanted])
    tree = GangTree.of(wanted)
    return placer.start(tree, tree.held, later=later)


def places(nodes: list[Node], wanted: Gang, *others: Gang, **options: object) -> dict[str, str]:
    """Where each pod went; nothing where the gang was refused."""
    found = start(nodes, wanted, *others, **options)  # type: ignore[arg-type]
    if isinstance(found, NoPlace):
        return {}
    return {each.pod: each.node for each in found.assignments}
