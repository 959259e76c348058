"""KAI's clusters, queues and jobs, as the cases write them, in the model's types."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from bough.core.quota.fair_tree import capacity_of, fair_tree
from bough.model.cluster import Match, Node, Resources, Topology, TopologyLevel
from bough.model.fair_queue import FairAmount, FairQueue
from bough.model.gang import Gang, Pod, PodState, SubGroup, TopologyConstraint
from bough.model.quota import Cohort, Queue

#: The cases write memory of queues in units of so many bytes.
MEMORY_UNIT = 1_000_000
STATES = {
    "pending": PodState.PENDING,
    "gated": PodState.GATED,
    "releasing": PodState.RELEASING,
    "succeeded": PodState.SUCCEEDED,
    "failed": PodState.FAILED,
}


def nodes_of(case: dict[str, Any]) -> tuple[Node, ...]:
    """The nodes, all of one flavor."""
    return tuple(
        Node(
            node["name"],
            Resources(
                gpus=node["gpus"],
                cpu_milli=node["cpu_millis"],
                memory_bytes=node["memory_bytes"],
                pods=node["max_pods"],
            ),
            labels=node.get("labels") or {},
        )
        for node in case["nodes"]
    )


def topologies_of(case: dict[str, Any]) -> tuple[Topology, ...]:
    """The topologies, their levels by node label."""
    return tuple(
        Topology(each["name"], tuple(TopologyLevel(label) for label in each["levels"]))
        for each in case.get("topologies") or ()
    )


class QueueTree:
    """Queues with what they deserve and their limits, as one quota tree below the whole cluster."""

    def __init__(self, case: dict[str, Any]) -> None:
        queues = (_queue(each) for each in case["queues"])
        self._tree = fair_tree(queues, capacity_of(nodes_of(case)))

    def cohorts(self) -> tuple[Cohort, ...]:
        """Inner queues, below one node that stands for the cluster."""
        return self._tree.cohorts

    def queues(self) -> tuple[Queue, ...]:
        """Leaf queues."""
        return self._tree.queues


def gang_of(job: dict[str, Any], now_ms: int) -> Gang:
    """A job with its tree of subgroups."""
    root = job["pod_group"]
    plain = [child["name"] for child in root["children"]] == ["default"]
    subgroups = () if plain else tuple(_subgroups(root, None))
    minimum = max(1, root["children"][0]["min_member"]) if plain else root.get("min_sub_group")
    stale = job.get("stale_for_seconds")
    return Gang(
        name=job["name"],
        queue=job["queue"],
        pods=tuple(_pod(task, plain=plain) for task in sorted(job["tasks"], key=_name)),
        subgroups=subgroups,
        minimum=minimum,
        constraint=_constraint(root) or (_constraint(root["children"][0]) if plain else None),
        priority=job["priority"],
        preemptible=job["preemptible"],
        submitted_ms=job["created_order"],
        stale_since_ms=now_ms - (stale or 0) * 1000,
    )


def _queue(queue: dict[str, Any]) -> FairQueue:
    return FairQueue(
        queue["name"],
        queue["parent"],
        queue["priority"],
        gpus=_share(queue["gpu"], 1),
        cpu_milli=_share(queue["cpu_millis"], 1),
        memory_bytes=_share(queue["memory_mb"], MEMORY_UNIT),
        created_ms=queue["created_order"],
    )


def _share(amounts: dict[str, Any], unit: int) -> FairAmount:
    """What is negative has no bound."""
    deserved, limit = amounts["deserved"], amounts["limit"]
    return FairAmount(
        None if deserved < 0 else Fraction(str(deserved)) * unit,
        None if limit < 0 else Fraction(str(limit)) * unit,
        Fraction(str(max(0, amounts["over_quota_weight"]))),
    )


def _subgroups(group: dict[str, Any], parent: str | None) -> list[SubGroup]:
    found: list[SubGroup] = []
    for child in group["children"]:
        leaf = child["type"] == "pods"
        minimum = max(1, child["min_member"]) if leaf else child.get("min_sub_group")
        found.append(SubGroup(child["name"], parent, minimum, _constraint(child)))
        if not leaf:
            found += _subgroups(child, child["name"])
    return found


def _constraint(group: dict[str, Any]) -> TopologyConstraint | None:
    data = group.get("topology_constraint")
    if not data:
        return None
    return TopologyConstraint(
        data["topology"], data.get("required_level"), data.get("preferred_level")
    )


def _pod(task: dict[str, Any], *, plain: bool) -> Pod:
    allowed = task.get("allowed_nodes")
    return Pod(
        name=task["name"],
        subgroup=None if plain else task["subgroup"],
        requests=Resources(
            gpus=int(task["gpus"]),
            cpu_milli=task["cpu_millis"],
            memory_bytes=task["memory_bytes"],
            pods=1,
        ),
        state=STATES.get(task["state"], PodState.RUNNING),
        node=task.get("node"),
        affinity=_affinity(allowed) if allowed else (),
        rank=task.get("task_priority"),
    )


def _affinity(allowed: list[str]) -> tuple[tuple[Match, ...], ...]:
    """The cases name nodes, or what a label of theirs says."""
    names = tuple(allowed)
    return (Match("metadata.name", "In", names),), (Match("kai.scheduler/type", "In", names),)


def _name(task: dict[str, Any]) -> str:
    """The recorded scheduler breaks its last ties by name."""
    return task["name"]
