"""Remedies in the objects that files hold: what each step changes there.

Queue, PodGroup, Pod and Node as KAI has them; ClusterQueue, Cohort, LocalQueue and Workload as
Kueue does. Files may hold both.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from bough.core.explain.change import door_to
from bough.core.explain.judge import find_gang
from bough.core.explain.source import Source
from bough.core.gang.normalisation import gang_names
from bough.core.gang.outline import Form, outline
from bough.core.gang.priority import SYSTEM, is_preemptible, known_priorities
from bough.core.quota.fairtree import (
    capacity_of,
    fair_amount,
    fair_tree,
    weighed_resource,
    with_amount,
)
from bough.formats import remedy_fields as fields
from bough.model.podgroup import Preemptibility
from bough.model.problem import dotted
from bough.model.quota import NodeKind
from bough.model.remedy import (
    AnyNodes,
    Change,
    End,
    HeldPart,
    Knob,
    LowerMinimum,
    Move,
    Raise,
    RaisePriority,
    Resume,
    Step,
    Tolerate,
    Untangle,
    Value,
    Weigh,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from bough.formats.yaml.documents import Document
    from bough.model.fairqueue import FairAmount, FairQueue
    from bough.model.gang import Gang
    from bough.model.podgroup import PodGroup, PriorityClass
    from bough.model.quota import FlavorResource, TreeNode
    from bough.model.snapshot import Snapshot


class WrittenObjects(NamedTuple):
    """What was read and a snapshot does not hold as it was written."""

    #: The Queues of KAI that were read.
    queues: tuple[FairQueue, ...] = ()
    pod_groups: tuple[PodGroup, ...] = ()
    #: By which PodGroups name their priorities.
    priority_classes: tuple[PriorityClass, ...] = ()
    #: Nodes that take no pods because they say so, and for no other reason.
    cordoned: frozenset[str] = frozenset()


def source_of(snapshot: Snapshot, written: WrittenObjects) -> Source:
    """The source of a scene."""
    return FileSource(snapshot, written)


def cordoned_nodes(documents: Iterable[Document]) -> frozenset[str]:
    """The nodes that are ready but cordoned."""
    return frozenset(name for document in documents for name in _cordoned(document.value))


def _cordoned(value: object) -> Iterator[str]:
    node: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if node.get("kind") != "Node":
        return
    spec: dict[str, Any] = node.get("spec") or {}
    status: dict[str, Any] = node.get("status") or {}
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    ready = [each.get("status") for each in conditions if each.get("type") == "Ready"]
    if spec.get("unschedulable") is True and all(str(each) == "True" for each in ready):
        yield node["metadata"]["name"]


class FairSource(Source):
    """Queues with quota and limit as they are written; the tree is made of them and the nodes."""

    def __init__(
        self,
        snapshot: Snapshot,
        queues: Iterable[FairQueue],
        units: Mapping[str, int] | None = None,
    ) -> None:
        """units:  by resource, in units of how much it is written, where that is not one."""
        super().__init__(snapshot)
        self.units = units or {}
        self.queues = {queue.name: queue for queue in queues}

    def declare(self, snapshot: Snapshot, steps: Sequence[Step]) -> Snapshot:
        """The tree anew; cohorts and queues that are not of these queues are changed themselves."""
        others = [step for step in steps if not self._concerns(step)]
        same_nodes = len(snapshot.nodes) == len(self.snapshot.nodes)
        snapshot = super().declare(snapshot, others)
        if not self.queues or (same_nodes and len(others) == len(steps)):
            return snapshot
        tree = fair_tree(self._declared(steps).values(), capacity_of(snapshot.nodes))
        names = {each.name for each in (*tree.cohorts, *tree.queues)}
        return msgspec.structs.replace(
            snapshot,
            cohorts=(*tree.cohorts, *(each for each in snapshot.cohorts if each.name not in names)),
            queues=(*tree.queues, *(each for each in snapshot.queues if each.name not in names)),
        )

    def _concerns(self, step: Step) -> bool:
        """Whether a step changes one of these queues."""
        match step:
            case Raise(node=node) | Weigh(node=node):
                return node.name in self.queues
            case Untangle(name):
                return name in self.queues
            case _:
                return False

    def can_raise(self, node: TreeNode, what: FlavorResource, knob: Knob) -> bool:
        """Whether it is one of these queues, and the bound is one that can be higher."""
        queue = self.queues.get(node.name)
        if queue is None:
            return super().can_raise(node, what, knob) and node.name not in self._derived()
        if knob is Knob.LENDING:
            return False
        return _bound(fair_amount(queue, what.resource), knob) is not None

    def weight_of(self, node: TreeNode) -> Fraction | None:
        """What a queue has of what others leave, by the resource whose weight counts."""
        queue = self.queues.get(node.name)
        if queue is not None:
            return fair_amount(queue, self._weighed_resource()).over_quota_weight
        return None if node.name in self._derived() else super().weight_of(node)

    def tell_weight(self, step: Weigh) -> Change:
        """The weight of one resource."""
        if step.node.name not in self.queues:
            return super().tell_weight(step)
        field = self.weight_field(self._weighed_resource())
        before = self.written_weight(step)
        return Change("queue", step.node.name, field, before, step.weight, "the weight")

    def weight_field(self, resource: str) -> str:
        """Where a weight is written."""
        return f"{resource}.weight"

    def _weighed_resource(self) -> str:
        return weighed_resource(capacity_of(self.snapshot.nodes))

    def tell_raise(self, step: Raise) -> Change:
        """Quota and limit, each in the unit in which it is written."""
        queue = self.queues.get(step.node.name)
        if queue is None:
            return super().tell_raise(step)
        resource = step.flavor_resource.resource
        raised = self._raised(queue, step)
        before, after = (
            self.written(resource, _bound(fair_amount(each, resource), step.knob))
            for each in (queue, raised)
        )
        return Change(
            "queue",
            queue.name,
            self.bound_field(resource, step.knob),
            before,
            after,
            f"the {step.knob.value}",
            resource,
        )

    def bound_field(self, resource: str, knob: Knob) -> str:
        """Where a bound is written."""
        return f"{resource}.{knob.value}"

    def written(self, resource: str, amount: Fraction | None) -> Value:
        """An amount in the unit in which it is written."""
        if amount is None:
            return None
        amount /= self.units.get(resource, 1)
        return int(amount) if amount.denominator == 1 else str(float(amount))

    def _derived(self) -> set[str]:
        """The nodes of the tree that were made of these queues."""
        if not self.queues:
            return set()
        tree = fair_tree(self.queues.values(), capacity_of(self.snapshot.nodes))
        return {each.name for each in (*tree.cohorts, *tree.queues)}

    def _declared(self, steps: Sequence[Step]) -> dict[str, FairQueue]:
        queues = dict(self.queues)
        for step in steps:
            if isinstance(step, Raise) and step.node.name in queues:
                queues[step.node.name] = self._raised(queues[step.node.name], step)
            elif isinstance(step, Weigh) and step.node.name in queues:
                queues[step.node.name] = self._weighed(queues[step.node.name], step)
            elif isinstance(step, Untangle) and step.cohort in queues:
                queues[step.cohort] = msgspec.structs.replace(queues[step.cohort], parent=None)
        return queues

    def _weighed(self, queue: FairQueue, step: Weigh) -> FairQueue:
        resource = self._weighed_resource()
        amount = fair_amount(queue, resource)
        weight = Fraction(step.weight)
        changed = msgspec.structs.replace(amount, over_quota_weight=weight)
        return with_amount(queue, resource, changed)

    def _raised(self, queue: FairQueue, step: Raise) -> FairQueue:
        """A queue with more, rounded up to whole units."""
        resource = step.flavor_resource.resource
        amount = fair_amount(queue, resource)
        before = _bound(amount, step.knob) or Fraction(0)
        unit = self.units.get(resource, 1)
        after = Fraction(-(-(int(before) + step.by) // unit) * unit)
        changed = (
            msgspec.structs.replace(amount, quota=after)
            if step.knob is Knob.QUOTA
            else msgspec.structs.replace(amount, limit=after)
        )
        return with_amount(queue, resource, changed)


class FileSource(FairSource):
    """Queues, PodGroups, Pods and Nodes of KAI; objects of Kueue in Kueue's own words."""

    node_kind = "Node"
    cordoned_field = fields.UNSCHEDULABLE

    def __init__(self, snapshot: Snapshot, written: WrittenObjects) -> None:
        super().__init__(snapshot, written.queues, fields.KAI_UNITS)
        self._groups = gang_names(written.pod_groups)
        self._classes = known_priorities(written.priority_classes)
        self._cordoned = written.cordoned
        self._kueue = KueueSource(snapshot)

    def can_uncordon(self, node: str) -> bool:
        """Whether it is cordoned, and nothing else is in the way."""
        return node in self._cordoned

    def priorities_for(self, workload: str) -> list[RaisePriority]:
        """A PodGroup names a class, which may also say that it is no longer preemptible."""
        gang, group = find_gang(self.snapshot, workload), self._groups.get(workload)
        if self._is_counted(workload) or gang is None:
            return super().priorities_for(workload)
        if group is None:
            return []
        return [
            RaisePriority(value, name, is_preemptible(group.preemptibility, value))
            for name, value in sorted(self._classes.items(), key=lambda each: (each[1], each[0]))
            if value > gang.priority and not name.startswith(SYSTEM)
        ]

    def kind_of(self, workload: str) -> str:
        """A pod that is on its own has no PodGroup."""
        if self._is_counted(workload):
            return self._kueue.kind_of(workload)
        return "PodGroup" if workload in self._groups else "Pod"

    def bound_field(self, resource: str, knob: Knob) -> str:
        """The path of a quota or limit."""
        return fields.fair_field(resource, knob.value)

    def weight_field(self, resource: str) -> str:
        """The path of a weight."""
        return fields.fair_field(resource, "overQuotaWeight")

    def tell_workload(self, name: str, step: Step) -> Iterable[Change]:
        """What a step changes in a PodGroup, or its Pods."""
        if self._is_counted(name):
            yield from self._kueue.tell_workload(name, step)
            return
        gang, group = find_gang(self.snapshot, name), self._groups.get(name)
        kind = self.kind_of(name)
        match step:
            case LowerMinimum() if group is not None:
                yield _minimum(group, step)
            case RaisePriority(word=word):
                before = None if group is None else group.priority_class
                yield Change(kind, name, fields.GROUP_PRIORITY, before, word)
            case Move(queue):
                field = fields.POD_QUEUE if group is None or group.native else fields.GROUP_QUEUE
                before = None if gang is None else gang.queue or None
                yield Change(kind, name, field, before, queue, "queue")
            case AnyNodes() if gang is not None:
                yield from _selectors(gang)
            case Tolerate(key) if gang is not None:
                for pod in gang.pods:
                    field = fields.toleration_field(len(pod.tolerations))
                    yield Change("Pod", pod.name, field, None, fields.toleration(key))
            case _:
                said = None if group is None else group.preemptibility
                before = None if said is None else said.value
                of_label = group is None or group.native
                field = fields.POD_PREEMPTIBILITY if of_label else fields.GROUP_PREEMPTIBILITY
                yield Change(kind, name, field, before, Preemptibility.PREEMPTIBLE.value)

    def capacity_field(self, resource: str) -> str:
        """The path of what a node offers."""
        return fields.capacity_field(resource)

    def tell_cluster(self, step: Step) -> Iterable[Change]:
        """What a step changes in Queues, Nodes and other PodGroups."""
        match step:
            case Untangle(name) if name in self.queues:
                parent = self.queues[name].parent
                yield Change("Queue", name, fields.PARENT_QUEUE, parent, None)
            case Raise(node=node) if node.name in self.queues:
                yield _of_kind(self.tell_raise(step), "Queue")
            case Weigh(node=node) if node.name in self.queues:
                yield _of_kind(self.tell_weight(step), "Queue")
            case Raise() | Weigh() | Untangle() | Resume():
                yield from self._kueue.tell_cluster(step)
            case _:
                yield from super().tell_cluster(step)

    def _is_counted(self, workload: str) -> bool:
        gang = find_gang(self.snapshot, workload)
        return gang is not None and bool(gang.pod_sets)


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


def _minimum(group: PodGroup, step: LowerMinimum) -> Change:
    """The field in which a PodGroup, or one of its subgroups, says what it needs."""
    if group.native:
        before, after = step.before, step.after
        return Change("PodGroup", group.full_name, fields.MIN_COUNT, before, after, "minCount")
    shape = outline(group)
    entry = next(each for each in shape.entries if each.name == step.subgroup)
    older = shape.form is Form.OLDER and entry.min_sub_group is None
    field = "minMember" if entry.is_leaf or older else "minSubGroup"
    before = entry.min_member if field == "minMember" else entry.min_sub_group
    word = field if step.subgroup is None else f"{field} of subgroup {step.subgroup}"
    shown = step.before if before is None else before
    path = dotted((*entry.path, field))
    return Change("PodGroup", group.full_name, path, shown, step.after, word)


def _selectors(gang: Gang) -> Iterator[Change]:
    for pod in gang.pods:
        said = (pod.node_selector, pod.affinity)
        for field, value in zip(fields.POD_SELECTORS, said, strict=True):
            if value:
                yield Change("Pod", pod.name, field, str(value))


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


def _bound(amount: FairAmount, knob: Knob) -> Fraction | None:
    return amount.quota if knob is Knob.QUOTA else amount.limit


def _of_kind(change: Change, kind: str) -> Change:
    return Change(
        kind,
        change.name,
        change.field,
        change.before,
        change.after,
        change.word,
        change.resource,
    )
