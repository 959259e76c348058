"""Kueue's scheduling cycles: who is admitted, who is evicted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bough.core.cycle.plan import plan
from bough.core.gang.from_workload import gang_of_workload
from bough.model.gang import Gang
from bough.model.plan import EvictionRule
from bough.model.snapshot import Snapshot
from bough.model.workload import Admission
from conformance.kueue_objects import cohort_of, queue_of, written
from conformance.kueue_workloads import (
    UnsupportedError,
    flavor_of,
    local_queue_of,
    policy_of,
    workload_of,
)

#: Why a workload is evicted, in Kueue's words.
REASONS = {
    EvictionRule.PREEMPT: "InClusterQueue",
    EvictionRule.RECLAIM: "InCohortReclamation",
    EvictionRule.RECLAIM_WHILE_BORROWING: "InCohortReclaimWhileBorrowing",
    EvictionRule.FAIR_SHARE: "InCohortFairSharing",
    EvictionRule.DRAIN: "ClusterQueueStopped",
}


def answer_schedule(case: dict[str, Any]) -> dict[str, Any]:
    """One cycle."""
    data = case["input"]
    try:
        policy = policy_of(case)
        snapshot = snapshot_of(data)
    except UnsupportedError as reason:
        return {"unsupported": str(reason)}
    decided = plan(snapshot, policy)
    # The case lets every write of an admission fail after the decision.
    admits = () if data.get("admission_write_fails") else decided.admits
    return {
        "actual": {
            "admitted": [admit.workload for admit in admits],
            "evicted": [
                {"workload": each.workload, "reason": REASONS[each.rule]}
                for each in decided.evictions
            ],
            "assignments_after": {admit.workload: _written(admit.admission) for admit in admits},
        }
    }


def snapshot_of(data: dict[str, Any]) -> Snapshot:
    """The state of a case at the time 0, which is its now."""
    if "admission_fair_sharing" in data:
        raise UnsupportedError("admission fair sharing")
    if data.get("extra_objects"):
        raise UnsupportedError("objects that the case does not hold")
    doors = tuple(local_queue_of(each) for each in data["local_queues"])
    queues = {(door.namespace, door.name): door.queue for door in doors}
    gangs: dict[str, list[Gang]] = {}
    for workload in (workload_of(each) for each in data["workloads"]):
        queue = queues.get((workload.namespace, workload.local_queue or ""))
        if workload.admission is not None:
            queue = workload.admission.queue
        if queue is not None:
            gangs.setdefault(queue, []).append(gang_of_workload(workload, queue))
    return Snapshot(
        cohorts=tuple(cohort_of(each) for each in data["cohorts"]),
        queues=tuple(queue_of(each) for each in data["cluster_queues"]),
        flavors=tuple(flavor_of(each) for each in data["resource_flavors"]),
        local_queues=doors,
        namespaces={name: labels or {} for name, labels in data["namespaces"].items()},
        gangs={queue: tuple(members) for queue, members in gangs.items()},
    )


def _written(admission: Admission) -> dict[str, Any]:
    return {
        "cluster_queue": admission.queue,
        "pod_sets": [
            {
                "name": each.name,
                "count": each.count,
                "flavors": each.flavors,
                "usage": {name: written(amount) for name, amount in each.usage.items()},
            }
            for each in admission.assignments
        ],
    }


ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "schedule": answer_schedule,
    "schedule_recompute": answer_schedule,
    "schedule_fair": answer_schedule,
    "schedule_concurrent": answer_schedule,
    "schedule_afs": answer_schedule,
    "random_schedule": answer_schedule,
    "random_schedule_fair": answer_schedule,
}
