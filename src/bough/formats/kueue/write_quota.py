"""Writes a quota tree as objects of Kueue, which Bough's reader reads back unchanged.

It covers what trees of pools have: quotas, limits, weights, preemption, and LocalQueues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bough.formats.kueue.organisation import GROUP, VERSIONS
from bough.model.words import write_amount

if TYPE_CHECKING:
    from fractions import Fraction

    from bough.model.admission_rules import Preemption
    from bough.model.organisation import Organisation
    from bough.model.quota import Cohort, FlavorQuotas, Queue, Quota, ResourceGroup
    from bough.model.workload import LocalQueue

KueueManifest = dict[str, Any]


def write_organisation(organisation: Organisation) -> list[KueueManifest]:
    """All objects but workloads, in the order in which to create them."""
    return [
        *(_manifest("ResourceFlavor", each.name, {}) for each in organisation.flavors),
        *(_manifest("Cohort", each.name, _cohort(each)) for each in organisation.cohorts),
        *(_manifest("ClusterQueue", each.name, _queue(each)) for each in organisation.queues),
        *(_local_queue(each) for each in organisation.local_queues),
    ]


def _manifest(kind: str, name: str, spec: dict[str, Any]) -> KueueManifest:
    return {
        "apiVersion": f"{GROUP}/{VERSIONS[0]}",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def _cohort(cohort: Cohort) -> dict[str, Any]:
    parent = {} if cohort.parent is None else {"parentName": cohort.parent}
    return {**parent, **_weight(cohort.weight), **_groups(cohort.resource_groups)}


def _queue(queue: Queue) -> dict[str, Any]:
    cohort = {} if queue.cohort is None else {"cohortName": queue.cohort}
    preemption = queue.rules.preemption
    return {
        **cohort,
        # Without a selector no namespace could use it.
        "namespaceSelector": {},
        **({} if preemption is None else {"preemption": _preemption(preemption)}),
        **_weight(queue.weight),
        **_groups(queue.resource_groups),
    }


def _local_queue(queue: LocalQueue) -> KueueManifest:
    found = _manifest("LocalQueue", queue.name, {"clusterQueue": queue.queue})
    found["metadata"]["namespace"] = queue.namespace
    return found


def _preemption(preemption: Preemption) -> dict[str, Any]:
    borrow: dict[str, Any] = {"policy": preemption.borrow_within_cohort.value}
    if preemption.borrow_priority_threshold is not None:
        borrow["maxPriorityThreshold"] = preemption.borrow_priority_threshold
    return {
        "withinClusterQueue": preemption.within_queue.value,
        "reclaimWithinCohort": preemption.reclaim_within_cohort.value,
        "borrowWithinCohort": borrow,
    }


def _weight(weight: Fraction) -> dict[str, Any]:
    """Write a weight unless it is 1, the default."""
    if weight == 1:
        return {}
    whole = weight.denominator == 1
    return {"fairSharing": {"weight": int(weight) if whole else str(float(weight))}}


def _groups(groups: tuple[ResourceGroup, ...]) -> dict[str, Any]:
    if not groups:
        return {}
    return {
        "resourceGroups": [
            {
                "coveredResources": list(group.covered_resources),
                "flavors": [_flavor(each) for each in group.flavors],
            }
            for group in groups
        ]
    }


def _flavor(flavor: FlavorQuotas) -> dict[str, Any]:
    resources = [_quota(name, quota) for name, quota in flavor.resources.items()]
    return {"name": flavor.name, "resources": resources}


def _quota(resource: str, quota: Quota) -> dict[str, Any]:
    written: dict[str, Any] = {"name": resource}
    for field, amount in (
        ("nominalQuota", quota.nominal),
        ("borrowingLimit", quota.borrowing_limit),
        ("lendingLimit", quota.lending_limit),
    ):
        if amount is not None:
            text = write_amount(resource, amount)
            written[field] = int(text) if text.isdecimal() else text
    return written
