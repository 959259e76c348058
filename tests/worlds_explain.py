"""Small worlds that tests of certificates build: one resource, two queues below one cohort."""

from __future__ import annotations

import msgspec

from bough.core.gang.from_workload import gang_of_workload
from bough.model.admission_rules import AdmissionRules
from bough.model.cluster import Node, Resources, Topology, TopologyLevel
from bough.model.gang import Gang, Pod, PodState
from bough.model.quota import (
    Cohort,
    FlavorQuotas,
    FlavorResource,
    NodeKind,
    Queue,
    Quota,
    ResourceGroup,
    TreeNode,
)
from bough.model.snapshot import Snapshot
from bough.model.workload import (
    Admission,
    Assignment,
    Flavor,
    PodSet,
    PodTemplate,
    Workload,
    WorkloadCondition,
)

GPU = FlavorResource("any", "gpu")
TOPOLOGY = Topology("wires", (TopologyLevel("rack"),))
ROOT = TreeNode(NodeKind.COHORT, "root")
RED = TreeNode(NodeKind.QUEUE, "red")
BLUE = TreeNode(NodeKind.QUEUE, "blue")


def quota(nominal: int, limit: int | None = None, flavor: str = "any") -> tuple[ResourceGroup, ...]:
    flavors = (FlavorQuotas(flavor, {"gpu": Quota(nominal, limit)}),)
    return (ResourceGroup(("gpu",), flavors),)


def gang(
    name: str,
    pods: int,
    *,
    on: str = "",
    gpus: int = 1,
    minimum: int | None = None,
    **fields: object,
) -> Gang:
    """A gang of equal pods; `on` names a node for each, separated by blanks."""
    nodes = on.split()
    fields.setdefault("started_ms", 1 if nodes else None)
    return Gang(
        name,
        str(fields.pop("queue", "red")),
        tuple(
            Pod(
                f"{name}-{at}",
                requests=Resources(gpus=gpus, pods=1),
                state=PodState.RUNNING if at < len(nodes) else PodState.PENDING,
                node=nodes[at] if at < len(nodes) else None,
                node_selector=dict(fields.get("selector", {})),  # type: ignore[call-overload]
            )
            for at in range(pods)
        ),
        minimum=pods if minimum is None else minimum,
        **{key: value for key, value in fields.items() if key != "selector"},  # type: ignore[arg-type]
    )


def world(
    *gangs: Gang, gpus: tuple[int, ...] = (4, 4), red: int = 4, blue: int = 4, **fields: object
) -> Snapshot:
    """Nodes `n0`, `n1`, ... each in a rack of its own; the root has what the queues leave."""
    nodes = tuple(
        Node(f"n{at}", Resources(gpus=each, pods=100), {"rack": f"r{at}"})
        for at, each in enumerate(gpus)
    )
    limit = fields.pop("red_limit", None)
    snapshot = Snapshot(
        cohorts=(Cohort("root", None, quota(sum(gpus) - red - blue)),),
        queues=(
            Queue("red", "root", quota(red, limit)),  # type: ignore[arg-type]
            Queue("blue", "root", quota(blue)),
        ),
        nodes=nodes,
        topologies=(TOPOLOGY,),
        gangs={
            name: tuple(each for each in gangs if each.queue == name)
            for name in dict.fromkeys(each.queue for each in gangs)
        },
    )
    return msgspec.structs.replace(snapshot, **fields)


def workload(name: str, gpus: int, *, pods: int = 1, **fields: object) -> Workload:
    template = PodTemplate({"gpu": gpus}, dict(fields.pop("selector", {})))  # type: ignore[call-overload]
    fields.setdefault("uid", name)
    return Workload(name, "ns", (PodSet("main", pods, template),), **fields)  # type: ignore[arg-type]


def held(each: Workload, queue: str, since_ms: int = 0, flavor: str = "any") -> Workload:
    usage = {"gpu": each.pod_sets[0].template.requests["gpu"] * each.pod_sets[0].count}
    assignment = Assignment("main", {"gpu": flavor}, usage)
    since = WorkloadCondition("QuotaReserved", True, since_ms=since_ms)
    return msgspec.structs.replace(
        each, admission=Admission(queue, (assignment,)), conditions=(since,)
    )


def gangs_of(*tables: dict[str, tuple[Workload, ...]]) -> dict[str, tuple[Gang, ...]]:
    """Workloads by queue, as gangs."""
    found: dict[str, tuple[Gang, ...]] = {}
    for table in tables:
        for queue, row in table.items():
            gangs = tuple(gang_of_workload(each, queue) for each in row)
            found[queue] = (*found.get(queue, ()), *gangs)
    return found


def kueue_world(
    waiting: dict[str, tuple[Workload, ...]],
    admitted: dict[str, tuple[Workload, ...]] | None = None,
    rules: AdmissionRules | None = None,
    **fields: object,
) -> Snapshot:
    """Queues red and blue with 4 each below one cohort without quota of its own."""
    snapshot = Snapshot(
        cohorts=(Cohort("root"),),
        queues=(
            Queue("red", "root", quota(4, 2), rules=rules or AdmissionRules()),
            Queue("blue", "root", quota(4)),
        ),
        flavors=(Flavor("any"),),
        gangs=gangs_of(waiting, admitted or {}),
    )
    return msgspec.structs.replace(snapshot, **fields)
