"""Which flavors, local queues and workloads may be declared, each taken by itself.

Problems carry the paths of the Kubernetes spec.
"""

from __future__ import annotations

from collections.abc import Iterator

from bough.core.names import label_fault
from bough.core.quota.validation import Fault, name_faults, problems_of, weight_faults
from bough.model.problem import FieldPath, Problem, Severity
from bough.model.words import write_amount
from bough.model.workload import Admission, Flavor, LocalQueue, PodSet, Workload

MAXIMUM_POD_SETS = 18
MAXIMUM_FLAVOR_ITEMS = 8

_ASSIGNMENTS: FieldPath = ("status", "admission", "podSetAssignments")


def validate_flavor(flavor: Flavor) -> list[Problem]:
    """Everything that is wrong with a flavor taken by itself."""
    faults = list(name_faults(flavor.name))
    for field, count in (
        ("nodeLabels", len(flavor.node_labels)),
        ("nodeTaints", len(flavor.taints)),
        ("tolerations", len(flavor.tolerations)),
    ):
        if count > MAXIMUM_FLAVOR_ITEMS:
            message = f"{count} entries, but at most {MAXIMUM_FLAVOR_ITEMS} are allowed"
            faults.append((("spec", field), message))
    if flavor.topology is not None and not flavor.node_labels:
        message = f"is {flavor.topology}, which needs at least one of nodeLabels"
        faults.append((("spec", "topologyName"), message))
    return problems_of(f"ResourceFlavor/{flavor.name}", faults)


def validate_local_queue(queue: LocalQueue) -> list[Problem]:
    """Everything that is wrong with a local queue taken by itself."""
    faults = [*name_faults(queue.name), *weight_faults(queue.weight)]
    return problems_of(f"LocalQueue/{queue.namespace}/{queue.name}", faults)


def validate_workload(workload: Workload) -> list[Problem]:
    """Everything that is wrong with a workload taken by itself."""
    faults = [
        *name_faults(workload.name),
        *_pod_sets_faults(workload.pod_sets),
        *_reclaimable_faults(workload),
    ]
    if workload.priority_class is not None and workload.priority is None:
        message = f"is missing; the priority class {workload.priority_class} needs it"
        faults.append((("spec", "priority"), message))
    if workload.cluster is not None and workload.nominated_clusters:
        message = "must not stand beside nominatedClusterNames"
        faults.append((("status", "clusterName"), message))
    if workload.admission is not None:
        faults.extend(_admission_faults(workload.admission, workload.pod_sets))
    subject = f"Workload/{workload.key}"
    return [*problems_of(subject, faults), *_warnings(subject, workload)]


def _pod_sets_faults(pod_sets: tuple[PodSet, ...]) -> Iterator[Fault]:
    if len(pod_sets) > MAXIMUM_POD_SETS:
        message = f"{len(pod_sets)} pod sets, but at most {MAXIMUM_POD_SETS} are allowed"
        yield ("spec", "podSets"), message
    known: set[str] = set()
    for index, pod_set in enumerate(pod_sets):
        path = ("spec", "podSets", index)
        fault = label_fault(pod_set.name)
        if fault is not None:
            yield (*path, "name"), fault
        if pod_set.name in known:
            yield (*path, "name"), f"there are two pod sets called {pod_set.name}"
        known.add(pod_set.name)
        yield from _pod_set_faults(path, pod_set)


def _pod_set_faults(path: FieldPath, pod_set: PodSet) -> Iterator[Fault]:
    if pod_set.count < 0:
        yield (*path, "count"), f"is {pod_set.count}, but must not be negative"
    minimum = pod_set.min_count
    if minimum is not None and not 0 < minimum <= pod_set.count:
        message = f"is {minimum}, but must be positive and at most the count, {pod_set.count}"
        yield (*path, "minCount"), message
    for resource, amount in pod_set.template.requests.items():
        if amount < 0:
            written = write_amount(resource, amount)
            yield (*path, "template", "spec"), f"asks for {written} of {resource}: less than none"


def _reclaimable_faults(workload: Workload) -> Iterator[Fault]:
    counts = {pod_set.name: pod_set.count for pod_set in workload.pod_sets}
    for index, (name, count) in enumerate(workload.reclaimable_pods.items()):
        path = ("status", "reclaimablePods", index)
        if name not in counts:
            yield (*path, "name"), f"there is no pod set called {name}"
        elif count > counts[name]:
            yield (*path, "count"), f"is {count}, but the pod set has {counts[name]} pods"


def _admission_faults(admission: Admission, pod_sets: tuple[PodSet, ...]) -> Iterator[Fault]:
    names = [pod_set.name for pod_set in pod_sets]
    if len(admission.assignments) != len(names):
        message = f"{len(admission.assignments)} assignments for {len(names)} pod sets"
        yield _ASSIGNMENTS, f"{message}; every pod set needs one"
    known: set[str] = set()
    for index, assignment in enumerate(admission.assignments):
        path = (*_ASSIGNMENTS, index)
        if assignment.name not in names:
            yield (*path, "name"), f"there is no pod set called {assignment.name}"
        elif assignment.name in known:
            yield (*path, "name"), f"the pod set {assignment.name} has an assignment already"
        known.add(assignment.name)
        for resource, amount in assignment.usage.items():
            if amount < 0:
                written = write_amount(resource, amount)
                message = f"is {written}, but must not be negative"
                yield (*path, "resourceUsage", resource), message


def _warnings(subject: str, workload: Workload) -> Iterator[Problem]:
    """What is odd about a workload's admission: usage that will not be counted."""
    admission = workload.admission
    if admission is None:
        return
    if workload.lacks("QuotaReserved"):
        message = "is not counted: the condition QuotaReserved is not true"
        yield Problem(("status", "admission"), message, Severity.WARNING, subject)
    for index, assignment in enumerate(admission.assignments):
        for resource in assignment.usage:
            if resource not in assignment.flavors:
                path = (*_ASSIGNMENTS, index, "resourceUsage", resource)
                message = f"is not counted: no flavor is assigned for {resource}"
                yield Problem(path, message, Severity.WARNING, subject)
