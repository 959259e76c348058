"""Small random worlds of gangs, for certificates and remedies."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from bough.model.cluster import Node, Resources, Topology, TopologyLevel
from bough.model.gang import Gang, Pod, PodState, SubGroup, TopologyConstraint
from bough.model.gang_rules import GangRules
from bough.model.policy import OSMO, Policy
from bough.model.quota import Cohort, FlavorQuotas, Queue, Quota, ResourceGroup
from bough.model.snapshot import Snapshot

TOPOLOGY = Topology("wires", (TopologyLevel("rack"),))
QUEUES = ("a", "b", "c")


def group(nominal: int, limit: int | None = None, flavor: str = "any") -> tuple[ResourceGroup, ...]:
    """A quota of GPUs."""
    quotas = {"gpu": Quota(nominal, limit)}
    return (ResourceGroup(("gpu",), (FlavorQuotas(flavor, quotas),)),)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """A few nodes in two racks, a tree of two levels, gangs that run and gangs that wait."""
    nodes = tuple(
        Node(
            f"n{number}",
            Resources(gpus=draw(st.integers(1, 4)), cpu_milli=64_000, memory_bytes=1 << 40, pods=9),
            {"rack": f"r{number % 2}"},
            cordoned=draw(st.integers(0, 9)) == 0,
        )
        for number in range(draw(st.integers(1, 3)))
    )
    queues = tuple(
        Queue(
            name,
            draw(st.sampled_from(("team", "root"))),
            group(draw(st.integers(0, 4)), draw(st.sampled_from((None, None, 0, 2)))),
        )
        for name in QUEUES
    )
    capacity = sum(node.capacity.gpus for node in nodes)
    rest = capacity - sum(
        queue.resource_groups[0].flavors[0].resources["gpu"].nominal for queue in queues
    )
    parent = draw(st.sampled_from(("root", "root", "root", "root", "team")))
    cohorts = (Cohort("root", None, group(rest)), Cohort("team", parent, group(0)))
    gangs = _run(nodes, [draw(gangs_of(number)) for number in range(draw(st.integers(1, 7)))])
    return Snapshot(
        now_ms=100_000,
        cohorts=cohorts,
        queues=queues,
        nodes=nodes,
        topologies=(TOPOLOGY,),
        gangs={
            name: tuple(gang for gang in gangs if gang.queue == name)
            for name in (*QUEUES, "nowhere")
        },
    )


@st.composite
def gangs_of(draw: st.DrawFn, number: int) -> Gang:
    """A gang; perhaps elastic, in subgroups, in one rack, choosy, or short of pods."""
    subgroups: tuple[SubGroup, ...] = ()
    count = draw(st.integers(1, 4))
    minimum: int | None = draw(st.integers(1, count + 1))
    if draw(st.integers(0, 3)) == 0:
        subgroups = tuple(SubGroup(name, minimum=draw(st.integers(1, 2))) for name in ("x", "y"))
        minimum = draw(st.sampled_from((None, 1, 2)))
    gpus = draw(st.integers(1, 3))
    choosy = draw(st.integers(0, 5)) == 0
    return Gang(
        f"g{number}",
        draw(st.sampled_from((*QUEUES, *QUEUES, *QUEUES, "nowhere"))),
        tuple(
            Pod(
                f"p{at}",
                ("x", "y")[at % 2] if subgroups else None,
                Resources(gpus=gpus, pods=1),
                node_selector={"rack": "r0"} if choosy else {},
            )
            for at in range(count)
        ),
        subgroups,
        minimum,
        TopologyConstraint(required="rack") if draw(st.integers(0, 4)) == 0 else None,
        priority=draw(st.integers(0, 2)),
        preemptible=draw(st.booleans()),
        submitted_ms=draw(st.integers(0, 3)),
        owner=f"person-{number % 3}",
    )


def policies() -> st.SearchStrategy[Policy]:
    """The osmo preset, with some choices made otherwise."""
    rules = st.builds(
        GangRules,
        reclaim=st.sampled_from((True, True, False)),
        strict_within_rank=st.booleans(),
        eviction_limit=st.sampled_from((None, None, 1)),
        reservations=st.sampled_from((0, 4)),
    )
    return st.builds(lambda gangs: msgspec.structs.replace(OSMO, gangs=gangs), rules)


def _run(nodes: tuple[Node, ...], gangs: list[Gang]) -> list[Gang]:
    """Let the first gangs run wherever their pods fit, whatever their quota."""
    free = {node.name: node.capacity.gpus for node in nodes}
    placed: list[Gang] = []
    for number, gang in enumerate(gangs):
        pods: list[Pod] = []
        for pod in gang.pods:
            at = next((name for name, left in free.items() if left >= pod.requests.gpus), None)
            if number % 2 == 0 and at is not None and gang.queue != "nowhere":
                free[at] -= pod.requests.gpus
                pod = Pod(  # noqa: PLW2901
                    pod.name, pod.subgroup, pod.requests, PodState.RUNNING, at, pod.node_selector
                )
            pods.append(pod)
        placed.append(
            Gang(
                gang.name,
                gang.queue,
                tuple(pods),
                gang.subgroups,
                gang.minimum,
                gang.constraint,
                priority=gang.priority,
                preemptible=gang.preemptible,
                submitted_ms=gang.submitted_ms,
                started_ms=number if any(pod.node for pod in pods) else None,
                owner=gang.owner,
            )
        )
    return placed
