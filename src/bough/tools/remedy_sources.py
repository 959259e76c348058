"""Remedies in the objects that files hold: what each step changes there.

Queue, PodGroup, Pod and Node as KAI has them; ClusterQueue, Cohort, LocalQueue and Workload as
Kueue does. Files may hold both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from bough.core.explain.declared_snapshot import Source
from bough.core.explain.judge import find_gang
from bough.core.gang.from_pod_group import gang_names, written_name
from bough.core.gang.outline import Form, outline
from bough.core.gang.priority import SYSTEM, is_preemptible, known_priorities
from bough.formats import remedy_fields as fields
from bough.model.pod_group import Preemptibility
from bough.model.problem import dotted
from bough.model.remedy import (
    AnyNodes,
    Change,
    Knob,
    LowerMinimum,
    Move,
    Raise,
    RaisePriority,
    Resume,
    Step,
    Tolerate,
    Untangle,
    Weigh,
)
from bough.tools.kai_remedy_source import FairSource
from bough.tools.kueue_remedy_source import KueueSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bough.formats.yaml.documents import Document
    from bough.model.fair_queue import FairQueue
    from bough.model.gang import Gang
    from bough.model.pod_group import PodGroup, PriorityClass
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


class FileSource(FairSource):
    """Queues, PodGroups, Pods and Nodes of KAI; objects of Kueue in Kueue's own words."""

    node_kind = "Node"
    cordoned_field = fields.UNSCHEDULABLE

    def __init__(self, snapshot: Snapshot, written: WrittenObjects) -> None:
        super().__init__(snapshot, written.queues, fields.KAI_UNITS, fields.KAI_UNIT_NAMES)
        self._groups = gang_names(written.pod_groups)
        self._classes = known_priorities(written.priority_classes)
        self._cordoned = written.cordoned
        self._kueue = KueueSource(snapshot)

    def can_uncordon(self, node: str) -> bool:
        """Whether it is cordoned, and nothing else is in the way."""
        return node in self._cordoned

    def tell(self, workload: str, step: Step) -> Iterable[Change]:
        """What a step changes, by the names that the objects have."""
        for each in super().tell(workload, step):
            name = written_name(each.name)
            before = name if each.before == each.name else each.before
            yield msgspec.structs.replace(each, name=name, before=before)

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

    def label_field(self, key: str) -> str:
        """The path of a label."""
        return fields.label_field(key)

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
