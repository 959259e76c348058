"""Remedies in objects of Kueue, from Cohort to Workload: what a step changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.core.explain.changed_snapshot import door_to
from bough.core.explain.declared_snapshot import Source
from bough.core.explain.judge import find_gang
from bough.formats import remedy_fields as fields
from bough.model.quota import NodeKind
from bough.model.remedy import (
    Change,
    End,
    HeldPart,
    Knob,
    LowerMinimum,
    Move,
    Raise,
    RaisePriority,
    Step,
    Tolerate,
    Untangle,
    Weigh,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bough.model.gang import Gang


class KueueSource(Source):
    """Cohorts, ClusterQueues, LocalQueues and Workloads."""

    def kind_of(self, workload: str) -> str:  # noqa: ARG002
        """All that waits is a Workload."""
        return "Workload"

    def tell_workload(self, name: str, step: Step) -> Iterable[Change]:
        """What a step changes in a Workload."""
        workload = find_gang(self.snapshot, name)
        if workload is None:
            return
        match step:
            case LowerMinimum(subgroup, before, after):
                for field in fields.pod_set_fields(workload, subgroup, "minCount"):
                    word = f"minCount of pod set {subgroup}"
                    yield Change("Workload", name, field, before, after, word)
            case RaisePriority(priority):
                yield Change("Workload", name, fields.PRIORITY, workload.priority, priority)
            case Move(queue):
                door = door_to(self.snapshot, workload.namespace, queue)
                after = queue if door is None else door.name
                before = workload.local_queue
                word = "LocalQueue"
                yield Change("Workload", name, fields.QUEUE_NAME, before, after, word)
            case Tolerate(key):
                yield from _template_tolerations(workload, key)
            case _:
                yield from _template_selectors(workload)

    def tell_cluster(self, step: Step) -> Iterable[Change]:
        """What a step changes in ClusterQueues, Cohorts and LocalQueues."""
        match step:
            case End(name):
                yield Change("Workload", name, before=name)
            case Untangle(name):
                yield Change("Cohort", name, fields.PARENT_COHORT, self.parent_of(name), None)
            case _:
                yield from super().tell_cluster(step)

    def tell_resume(self, part: HeldPart, name: str) -> Change:
        """A stop policy, or whether a Workload is active."""
        if part is HeldPart.WORKLOAD:
            return Change("Workload", name, fields.ACTIVE, False, True)
        kind = "ClusterQueue" if part is HeldPart.QUEUE else "LocalQueue"
        return Change(kind, name, fields.STOP_POLICY, self.stop_of(part, name), "None")

    def tell_weight(self, step: Weigh) -> Change:
        """The weight of fair sharing."""
        kind = "Cohort" if step.node.kind is NodeKind.COHORT else "ClusterQueue"
        change = super().tell_weight(step)
        return Change(kind, change.name, fields.WEIGHT, change.before, change.after, "the weight")

    def tell_raise(self, step: Raise) -> Change:
        """A nominalQuota, a borrowingLimit, or a lendingLimit."""
        change = super().tell_raise(step)
        cohort = step.node.kind is NodeKind.COHORT
        bound = _BOUNDS[step.knob]
        table = self.snapshot.cohorts if cohort else self.snapshot.queues
        declared = next(each for each in table if each.name == step.node.name)
        return Change(
            "Cohort" if cohort else "ClusterQueue",
            change.name,
            fields.quota_field(declared, step.flavor_resource, bound),
            change.before,
            change.after,
            bound,
            change.resource,
        )


_BOUNDS = {
    Knob.QUOTA: "nominalQuota",
    Knob.LIMIT: "borrowingLimit",
    Knob.LENDING: "lendingLimit",
}


def _template_selectors(workload: Gang) -> Iterator[Change]:
    for pod_set in workload.pod_sets:
        said = (pod_set.template.node_selector, pod_set.template.affinity)
        for path, value in zip(("nodeSelector", "affinity"), said, strict=True):
            if value:
                below = ("template", "spec", path)
                for field in fields.pod_set_fields(workload, pod_set.name, *below):
                    yield Change("Workload", workload.name, field, str(value))


def _template_tolerations(workload: Gang, key: str) -> Iterator[Change]:
    for pod_set in workload.pod_sets:
        number = len(pod_set.template.tolerations)
        below = ("template", "spec", "tolerations", number)
        for field in fields.pod_set_fields(workload, pod_set.name, *below):
            yield Change("Workload", workload.name, field, None, fields.toleration(key))
