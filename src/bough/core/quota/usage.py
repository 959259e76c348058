"""What a workload's admission counts against the quota of its queue."""

from __future__ import annotations

from bough.model.gang import Gang
from bough.model.quota import FlavorResource
from bough.model.workload import Assignment, PodSet, Workload

#: Counted by itself where a queue covers it.
PODS = "pods"


def usage_of(workload: Workload | Gang) -> dict[FlavorResource, int]:
    """What the workload uses: nothing unless it holds quota, less what its finished pods had."""
    usage: dict[FlavorResource, int] = {}
    if workload.admission is None or not workload.holds_quota:
        return usage
    pod_sets = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    for assignment in workload.admission.assignments:
        reclaimed = workload.reclaimable_pods.get(assignment.name, 0)
        pod_set = pod_sets.get(assignment.name)
        for resource, flavor in assignment.flavors.items():
            what = FlavorResource(flavor, resource)
            usage[what] = usage.get(what, 0) + _charge(assignment, pod_set, resource, reclaimed)
    return usage


def _charge(assignment: Assignment, pod_set: PodSet | None, resource: str, reclaimed: int) -> int:
    """The total of one resource for one pod set."""
    declared = pod_set.count if pod_set is not None else assignment.count or 0
    count = declared if assignment.count is None else assignment.count
    left = min(count, max(0, declared - reclaimed))
    total = assignment.usage.get(resource)
    if total is None:
        return left * _request(pod_set, resource)
    return total if left == count else total // count * left


def _request(pod_set: PodSet | None, resource: str) -> int:
    if resource == PODS:
        return 1
    return 0 if pod_set is None else pod_set.template.requests.get(resource, 0)
