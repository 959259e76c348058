"""Whether declared objects fit together: names, parents, the depth and size of the tree.

Each object's own rules are in validation and workload_rules; `validate` joins them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bough.core.quota.tree_shape import Edges
from bough.core.quota.validation import validate_cohort, validate_queue
from bough.core.quota.workload_rules import (
    validate_flavor,
    validate_local_queue,
    validate_workload,
)
from bough.model.organisation import Organisation
from bough.model.problem import FieldPath, Problem, Severity
from bough.model.quota import Cohort, FlavorResource, NodeKind, TreeNode, quotas_of
from bough.model.reason import cycle_text
from bough.model.words import suggest_all
from bough.model.workload import Workload

#: Levels of cohorts from a queue to its root, or around a cycle.
MAXIMUM_DEPTH = 64
MAXIMUM_NODES = 1_000_000


def validate(organisation: Organisation) -> list[Problem]:
    """Everything that is wrong, with each object and between them."""
    problems: list[Problem] = []
    for cohort in organisation.cohorts:
        problems.extend(validate_cohort(cohort))
    for queue in organisation.queues:
        problems.extend(validate_queue(queue))
    for flavor in organisation.flavors:
        problems.extend(validate_flavor(flavor))
    for local_queue in organisation.local_queues:
        problems.extend(validate_local_queue(local_queue))
    for workload in organisation.workloads:
        problems.extend(validate_workload(workload))
    problems.extend(_shape_problems(organisation))
    problems.extend(_flavor_problems(organisation))
    problems.extend(_local_queue_problems(organisation))
    problems.extend(_workload_problems(organisation))
    return problems


def _shape_problems(organisation: Organisation) -> Iterator[Problem]:
    """Size, depth and cycles; what is too deep or too large must not be built at all."""
    count = len(organisation.cohorts) + len(organisation.queues)
    if count > MAXIMUM_NODES:
        message = f"{count:,} cohorts and queues, but at most {MAXIMUM_NODES:,} are allowed"
        yield Problem((), message)
        return
    parents = {cohort.name: cohort.parent for cohort in organisation.cohorts}
    depths = _depths(parents)
    for cohort in organisation.cohorts:
        if depths[cohort.name] > MAXIMUM_DEPTH:
            message = f"stands below more than {MAXIMUM_DEPTH - 1} other cohorts, the limit"
            yield Problem(("spec", "parentName"), message, subject=f"Cohort/{cohort.name}")
    if max(depths.values(), default=0) <= MAXIMUM_DEPTH:
        yield from _cycle_problems(organisation.cohorts)


def _depths(parents: Mapping[str, str | None]) -> dict[str, int]:
    """How many cohorts there are from each one upwards, itself included; a cycle counts once."""
    depths: dict[str, int] = {}
    for start in parents:
        path: dict[str, None] = {}
        current: str | None = start
        while current is not None and current not in depths and current not in path:
            path[current] = None
            current = parents.get(current)
        names = list(path)
        if current in path:
            ring = names.index(current)
            depths.update(dict.fromkeys(names[ring:], len(names) - ring))
            names = names[:ring]
        above = 0 if current is None else depths[current]
        for name in reversed(names):
            above += 1
            depths[name] = above
    return depths


def _cycle_problems(cohorts: tuple[Cohort, ...]) -> Iterator[Problem]:
    edges = Edges()
    for cohort in cohorts:
        above = None if cohort.parent is None else TreeNode(NodeKind.COHORT, cohort.parent)
        edges.put(TreeNode(NodeKind.COHORT, cohort.name), above)
    for cohort in cohorts:
        cycle = edges.cycle(TreeNode(NodeKind.COHORT, cohort.name))
        if cohort.name in cycle:
            message = f"{cycle_text(cycle)}; nothing new is admitted below them"
            subject = f"Cohort/{cohort.name}"
            yield Problem(("spec", "parentName"), message, Severity.WARNING, subject)


def _flavor_problems(organisation: Organisation) -> Iterator[Problem]:
    """Flavors that are not declared; not checked where no flavor is declared at all."""
    if not organisation.flavors:
        return
    known = {flavor.name for flavor in organisation.flavors}
    for kind, nodes in (("Cohort", organisation.cohorts), ("ClusterQueue", organisation.queues)):
        for node in nodes:
            for number, group in enumerate(node.resource_groups):
                for index, flavor in enumerate(group.flavors):
                    if flavor.name not in known:
                        path = ("spec", "resourceGroups", number, "flavors", index, "name")
                        message = f"there is no ResourceFlavor called {flavor.name}"
                        yield Problem(path, message, Severity.WARNING, f"{kind}/{node.name}")


def _local_queue_problems(organisation: Organisation) -> Iterator[Problem]:
    """Local queues of a queue that does not exist: an error, unless no queue is declared at all."""
    known = {queue.name for queue in organisation.queues}
    severity = Severity.ERROR if known else Severity.WARNING
    unknown = [each for each in organisation.local_queues if each.queue and each.queue not in known]
    meant = suggest_all((each.queue for each in unknown), known)
    for each in unknown:
        message = f"there is no ClusterQueue called {each.queue}{meant.get(each.queue, '')}"
        subject = f"LocalQueue/{each.namespace}/{each.name}"
        yield Problem(("spec", "clusterQueue"), message, severity, subject)


def _workload_problems(organisation: Organisation) -> Iterator[Problem]:
    doors = {(each.namespace, each.name): each.queue for each in organisation.local_queues}
    quotas = {queue.name: set(quotas_of(queue.resource_groups)) for queue in organisation.queues}
    for workload in organisation.workloads:
        subject = f"Workload/{workload.key}"
        if workload.local_queue is None:
            if workload.admission is None:
                message = "is missing; the workload waits in no queue"
                yield Problem(("spec", "queueName"), message, Severity.WARNING, subject)
        elif (workload.namespace, workload.local_queue) not in doors:
            message = f"there is no LocalQueue called {workload.local_queue}"
            where = f"in the namespace {workload.namespace}"
            yield Problem(("spec", "queueName"), f"{message} {where}", Severity.WARNING, subject)
        if workload.admission is not None and workload.holds_quota:
            yield from _admission_problems(workload, subject, quotas)


def _admission_problems(
    workload: Workload, subject: str, quotas: Mapping[str, set[FlavorResource]]
) -> Iterator[Problem]:
    admission = workload.admission
    if admission is None:
        return
    path: FieldPath = ("status", "admission")
    listed = quotas.get(admission.queue)
    if listed is None:
        message = f"there is no ClusterQueue called {admission.queue}; the usage counts nowhere"
        yield Problem((*path, "clusterQueue"), message, subject=subject)
        return
    for index, assignment in enumerate(admission.assignments):
        for resource, flavor in assignment.flavors.items():
            if FlavorResource(flavor, resource) not in listed:
                place = (*path, "podSetAssignments", index, "flavors", resource)
                message = f"the queue {admission.queue} does not list {resource} on {flavor}"
                yield Problem(place, message, Severity.WARNING, subject)
