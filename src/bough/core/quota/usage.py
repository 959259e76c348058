"""How much a workload's admission counts against the quota of its queue."""

from __future__ import annotations

from bough.model.gang import Gang
from bough.model.quota import FlavorResource
from bough.model.workload import PodSet, Workload

#: Counted by itself where a queue covers it.
PODS = "pods"


def usage_of(workload: Workload | Gang) -> dict[FlavorResource, int]:
    """What the workload uses: nothing unless it holds quota, less what its finished pods had."""
    usage: dict[FlavorResource, int] = {}
    if workload.admission is None or not workload.holds_quota:
        return usage
    finished = workload.reclaimable_pods
    for assignment in workload.admission.assignments:
        pod_set = _set_of(workload.pod_sets, assignment.name)
        count = assignment.count
        declared = count or 0 if pod_set is None else pod_set.count
        if count is None:
            count = declared
        left = declared - finished.get(assignment.name, 0) if finished else declared
        left = max(0, min(count, left))
        for resource, flavor in assignment.flavors.items():
            what = FlavorResource(flavor, resource)
            total = assignment.usage.get(resource)
            if total is None:
                total = left * _request(pod_set, resource)
            elif left != count:
                total = total // count * left
            usage[what] = usage.get(what, 0) + total
    return usage


def _set_of(pod_sets: tuple[PodSet, ...], name: str) -> PodSet | None:
    for pod_set in pod_sets:
        if pod_set.name == name:
            return pod_set
    return None


def _request(pod_set: PodSet | None, resource: str) -> int:
    if resource == PODS:
        return 1
    return 0 if pod_set is None else pod_set.template.requests.get(resource, 0)
