"""KAI's clusters, queues and jobs, as the cases write them, in the model's types."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from bough.model.cluster import Match, Node, Resources, Topology, TopologyLevel
from bough.model.gang import Gang, Pod, PodState, SubGroup, TopologyConstraint
from bough.model.quota import Cohort, FlavorQuotas, Queue, Quota, ResourceGroup

#: All nodes are of one kind: the cases count resources over the whole cluster.
FLAVOR = "any"
ROOT = "(cluster)"
#: From our names to the cases', and the unit of the cases in ours.
RESOURCES = (("gpu", "gpu", 1), ("cpu", "cpu_millis", 1), ("memory", "memory_mb", 1_000_000))
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
        self._queues = {queue["name"]: queue for queue in case["queues"]}
        self._capacity = {
            "gpu": sum(node["gpus"] for node in case["nodes"]),
            "cpu": sum(node["cpu_millis"] for node in case["nodes"]),
            "memory": sum(node["memory_bytes"] for node in case["nodes"]),
        }

    def cohorts(self) -> tuple[Cohort, ...]:
        """Inner queues, below one node that stands for the cluster."""
        tops = [name for name, queue in self._queues.items() if queue["parent"] is None]
        rest = {
            name: Quota(capacity - sum(self._deserved(top, name) for top in tops))
            for name, capacity in self._capacity.items()
        }
        inner = [name for name in self._queues if self._below(name)]
        return (
            Cohort(ROOT, None, _group(rest)),
            *(
                Cohort(name, self._parent(name), self._quotas(name), self._weight(name))
                for name in inner
            ),
        )

    def queues(self) -> tuple[Queue, ...]:
        """Leaf queues."""
        leaves = [name for name in self._queues if not self._below(name)]
        return tuple(
            Queue(name, self._parent(name), self._quotas(name), self._weight(name))
            for name in leaves
        )

    def _parent(self, name: str) -> str:
        return self._queues[name]["parent"] or ROOT

    def _below(self, name: str) -> list[str]:
        return [each for each, queue in self._queues.items() if queue["parent"] == name]

    def _weight(self, name: str) -> Fraction:
        field = "gpu" if self._capacity["gpu"] else "cpu_millis"
        weight = self._queues[name][field]["over_quota_weight"]
        return Fraction(str(max(0, weight)))

    def _deserved(self, name: str, resource: str) -> int:
        return self._amount(name, resource, "deserved", self._capacity[resource])

    def _amount(self, name: str, resource: str, key: str, unlimited: int) -> int:
        field, unit = next((field, unit) for own, field, unit in RESOURCES if own == resource)
        value = self._queues[name][field][key]
        return unlimited if value < 0 else int(value * unit)

    def _quotas(self, name: str) -> tuple[ResourceGroup, ...]:
        quotas: dict[str, Quota] = {}
        for resource, field, _ in RESOURCES:
            deserved = self._deserved(name, resource)
            limit = self._queues[name][field]["limit"]
            quotas[resource] = Quota(
                deserved - sum(self._deserved(child, resource) for child in self._below(name)),
                None if limit < 0 else self._amount(name, resource, "limit", 0) - deserved,
            )
        return _group(quotas)


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


def _group(quotas: dict[str, Quota]) -> tuple[ResourceGroup, ...]:
    return (ResourceGroup(tuple(quotas), (FlavorQuotas(FLAVOR, quotas),)),)


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
