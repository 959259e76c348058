"""Where what a remedy changes is written in objects of KAI and of Kueue: the fields, by their path.

Names and units of fields only; which change helps is decided in `core.explain`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.formats.kai.pod import PREEMPTIBILITY_LABEL, QUEUE_LABEL
from bough.formats.kai.queue import MEMORY_UNIT
from bough.formats.kubernetes.pods import GPU
from bough.model.problem import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bough.model.gang import Gang
    from bough.model.quota import Cohort, FlavorResource, Queue

#: By resource: in units of how much a Queue of KAI is written.
KAI_UNITS = {"memory": MEMORY_UNIT}
#: By resource: what is counted there, where its name alone would mislead.
KAI_UNIT_NAMES = {"cpu": "thousandths of a cpu", "memory": "MB of memory"}
PARENT_QUEUE = "spec.parentQueue"
PARENT_COHORT = "spec.parentName"
WEIGHT = "spec.fairSharing.weight"
STOP_POLICY = "spec.stopPolicy"
ACTIVE = "spec.active"
QUEUE_NAME = "spec.queueName"
PRIORITY = "spec.priority"
UNSCHEDULABLE = "spec.unschedulable"
#: Where a Pod, and a PodGroup, say which queue they are of, and that they are preemptible.
GROUP_QUEUE = "spec.queue"
GROUP_PRIORITY = "spec.priorityClassName"
GROUP_PREEMPTIBILITY = "spec.preemptibility"
MIN_COUNT = "spec.schedulingPolicy.gang.minCount"
POD_QUEUE = dotted(("metadata", "labels", QUEUE_LABEL))
POD_PREEMPTIBILITY = dotted(("metadata", "labels", PREEMPTIBILITY_LABEL))
#: What a pod says about its nodes.
POD_SELECTORS = ("spec.nodeSelector", "spec.affinity")


def fair_field(resource: str, bound: str) -> str:
    """The quota, or the limit, of a Queue of KAI."""
    return dotted(("spec", "resources", resource, bound))


def quota_field(declared: Cohort | Queue, what: FlavorResource, bound: str) -> str:
    """An amount of a ClusterQueue or Cohort of Kueue."""
    for number, group in enumerate(declared.resource_groups):
        for place, flavor in enumerate(group.flavors):
            if flavor.name == what.flavor and what.resource in flavor.resources:
                index = list(flavor.resources).index(what.resource)
                flavors = ("spec", "resourceGroups", number, "flavors", place)
                return dotted((*flavors, "resources", index, bound))
    return bound


def label_field(key: str) -> str:
    """A label of a Node."""
    return dotted(("metadata", "labels", key))


def capacity_field(resource: str) -> str:
    """What a Node offers of a resource, by the name that Bough gives it."""
    return dotted(("status", "allocatable", GPU if resource == "gpu" else resource))


def toleration_field(number: int) -> str:
    """The next toleration of a Pod."""
    return dotted(("spec", "tolerations", number))


def toleration(key: str) -> dict[str, str]:
    """What tolerates all taints of one key."""
    return {"key": key, "operator": "Exists"}


def pod_set_fields(workload: Gang, name: str | None, *below: str | int) -> Iterator[str]:
    """A field of one pod set of a Workload, or of all."""
    for number, pod_set in enumerate(workload.pod_sets):
        if name is None or pod_set.name == name:
            yield dotted(("spec", "podSets", number, *below))
