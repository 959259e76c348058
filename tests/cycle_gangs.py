"""Small clusters with gangs, which several tests of the cycle build."""

from __future__ import annotations

from fractions import Fraction

from bough.model.cluster import Node, Resources, Topology, TopologyLevel
from bough.model.gang import Gang, Pod, PodState, SubGroup, TopologyConstraint
from bough.model.plan import Plan
from bough.model.quota import Cohort, FlavorQuotas, Queue, Quota, ResourceGroup
from bough.model.snapshot import Snapshot

LOW, NORMAL, HIGH = 50, 100, 125
TOPOLOGY = Topology("wires", (TopologyLevel("rack"),))
RACK = TopologyConstraint(required="rack")


def quota(
    gpus: int, borrowing: int | None = None, lending: int | None = None
) -> tuple[ResourceGroup, ...]:
    """GPUs of the only flavor."""
    quotas = FlavorQuotas("any", {"gpu": Quota(gpus, borrowing, lending)})
    return (ResourceGroup(("gpu",), (quotas,)),)


def queue(
    name: str,
    gpus: int,
    cohort: str | None = "root",
    *,
    borrowing: int | None = None,
    lending: int | None = None,
    weight: int = 1,
) -> Queue:
    return Queue(name, cohort, quota(gpus, borrowing, lending), Fraction(weight))


def cohort(
    name: str,
    parent: str | None = "root",
    gpus: int = 0,
    *,
    borrowing: int | None = None,
    lending: int | None = None,
) -> Cohort:
    return Cohort(name, parent, quota(gpus, borrowing, lending))


def node(name: str, gpus: int = 8, rack: str = "") -> Node:
    capacity = Resources(gpus, 1_000_000, 1 << 40, 1000)
    return Node(name, capacity, {"rack": rack} if rack else {})


def gang(
    name: str,
    queue_name: str,
    priority: int = NORMAL,
    *,
    pods: int = 1,
    gpus: int = 1,
    minimum: int | None = None,
    on: str | tuple[str, ...] = (),
    at: int = 0,
    constraint: TopologyConstraint | None = None,
    started: int | None = None,
) -> Gang:
    """A gang of equal pods. `on`: where its first pods run (one name: all of them). `at`: since."""
    places = (on,) * pods if isinstance(on, str) else on
    made = tuple(
        Pod(
            f"{name}-{number}",
            None,
            Resources(gpus=gpus, cpu_milli=1000, memory_bytes=1 << 30, pods=1),
            PodState.RUNNING if number < len(places) else PodState.PENDING,
            places[number] if number < len(places) else None,
        )
        for number in range(pods)
    )
    return Gang(
        name,
        queue_name,
        made,
        minimum=pods if minimum is None else minimum,
        constraint=constraint,
        priority=priority,
        preemptible=priority == LOW,
        submitted_ms=at,
        started_ms=started,
    )


def replicas(
    name: str,
    queue_name: str,
    sizes: dict[str, int],
    *,
    needed: int,
    priority: int = NORMAL,
    on: dict[str, str] | None = None,
    at: int = 0,
    constraint: TopologyConstraint | None = None,
) -> Gang:
    """A gang of replicas that each need all of their pods. `on`: the node of those that run."""
    nodes = on or {}
    pods = tuple(
        Pod(
            f"{replica}-{number}",
            replica,
            Resources(gpus=1, pods=1),
            PodState.RUNNING if replica in nodes else PodState.PENDING,
            nodes.get(replica),
        )
        for replica, size in sizes.items()
        for number in range(size)
    )
    return Gang(
        name,
        queue_name,
        pods,
        tuple(SubGroup(replica, minimum=size) for replica, size in sizes.items()),
        needed,
        constraint,
        priority=priority,
        preemptible=priority == LOW,
        submitted_ms=at,
    )


def cluster(
    nodes: list[Node],
    queues: list[Queue],
    gangs: list[Gang],
    cohorts: list[Cohort] | None = None,
    *,
    root: int | None = None,
    now_ms: int = 1_000_000,
) -> Snapshot:
    """Queues below a root that has what the quotas leave of the nodes, unless it is told."""
    inner = cohorts or []
    if root is None:
        sold = sum(_nominal(each) for each in (*queues, *inner))
        root = sum(each.capacity.gpus for each in nodes) - sold
    return Snapshot(
        now_ms=now_ms,
        cohorts=(cohort("root", None, root), *inner),
        queues=tuple(queues),
        nodes=tuple(nodes),
        topologies=(TOPOLOGY,),
        gangs={
            each.name: tuple(gang for gang in gangs if gang.queue == each.name) for each in queues
        },
    )


def evicted(decided: Plan) -> list[str]:
    """The gangs that lose pods, in the order of the plan."""
    return [each.workload for each in decided.evictions]


def nominated(decided: Plan) -> list[str]:
    return [each.workload for each in decided.nominations]


def reasons(decided: Plan) -> dict[str, str]:
    """Why each gang waits."""
    return {wait.workload: str(wait.reason) for wait in decided.waits}


def _nominal(declared: Cohort | Queue) -> int:
    return sum(
        each.nominal
        for group in declared.resource_groups
        for flavor in group.flavors
        for each in flavor.resources.values()
    )
