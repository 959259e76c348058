"""A Pod as a member of a gang: what it asks for, its gang, and how far it is."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from bough.formats.kubernetes.pods import NotHonoured, read_pod_spec, resources_of
from bough.model.gang import Pod, PodState
from bough.model.pod_group import (
    DEFAULT_NAMESPACE,
    MemberPod,
    Preemptibility,
    group_key,
    qualified,
)
from bough.model.problem import Severity

if TYPE_CHECKING:
    from bough.formats.kubernetes.metadata import Metadata
    from bough.formats.yaml.fields import Fields
    from bough.model.problem import FieldPath
    from bough.model.workload import PodTemplate

GROUP_ANNOTATION = "pod-group-name"
SUBGROUP_LABEL = "kai.scheduler/subgroup-name"
RANK_LABEL = "kai.scheduler/task-priority"
QUEUE_LABEL = "kai.scheduler/queue"
#: The older name of the label above.
PROJECT_LABEL = "project"
PRIORITY_LABEL = "priorityClassName"
PREEMPTIBILITY_LABEL = "kai.scheduler/preemptibility"
DEFAULT_QUEUE = "default-queue"
#: What an object can be called, as far as it matters: nothing that leads out of its namespace.
_CAN_BE_NAME = re.compile(r"[^/\s]+")
#: Where a pod, its owner or its PodGroup names the LocalQueue of Kueue that it comes through.
DOOR_LABEL = "kueue.x-k8s.io/queue-name"
#: Kueue puts one of these on the pods of a Workload, as labels or annotations.
_KUEUE_MARKS = (
    "kueue.x-k8s.io/managed",
    "kueue.x-k8s.io/podset",
    DOOR_LABEL,
    "kueue.x-k8s.io/workload",
)
#: Ask for a part of a GPU.
_FRACTION_ANNOTATIONS = ("gpu-fraction", "gpu-memory")
#: What becomes of a pod with demands that are not honoured; of one that has ended, nothing.
_NOT_HONOURED = {
    PodState.PENDING: NotHonoured.WAITS,
    PodState.GATED: NotHonoured.WAITS,
    PodState.RUNNING: NotHonoured.RUNS,
    PodState.RELEASING: NotHonoured.RUNS,
}


class _Phase(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


def read_pod(fields: Fields, metadata: Metadata) -> MemberPod:
    """Read a Pod."""
    spec = fields.child("spec")
    status = fields.optional_child("status") or fields.nothing("status")
    status.ignore(*status.names())
    standing = _read_standing(status, spec, metadata)
    template = read_pod_spec(spec, metadata.labels, _NOT_HONOURED.get(standing.state))
    problems = member_problems(metadata, standing.scheduling_group)
    for path, (severity, message) in problems.items():
        report = fields.reading.error if severity is Severity.ERROR else fields.reading.warn
        report(path, message)
    return member_pod(metadata, template, standing)


class PodStanding(NamedTuple):
    """How far a pod is."""

    state: PodState
    node: str | None = None
    #: When it was started on its node, as far as it says so.
    started_ms: int | None = None
    #: The name of its priority, unless a label has one.
    priority_class: str | None = None
    #: The PodGroup of Kubernetes itself that it names.
    scheduling_group: str | None = None


def member_pod(metadata: Metadata, template: PodTemplate, standing: PodStanding) -> MemberPod:
    """What a pod says about itself, wherever it was read."""
    labels = metadata.labels
    state = standing.state
    pod = Pod(
        name=qualified(metadata.namespace, metadata.name),
        subgroup=labels.get(SUBGROUP_LABEL) or None,
        requests=resources_of({"pods": 1, **template.requests}),
        state=state,
        node=standing.node,
        node_selector=template.node_selector,
        affinity=template.affinity,
        tolerations=template.tolerations,
        rank=_rank(labels.get(RANK_LABEL)),
        unsupported=template.unsupported,
    )
    return MemberPod(
        pod=pod,
        group=_group_key(metadata, standing.scheduling_group),
        namespace=metadata.namespace,
        queue=labels.get(QUEUE_LABEL) or labels.get(PROJECT_LABEL) or DEFAULT_QUEUE,
        priority_class=labels.get(PRIORITY_LABEL) or standing.priority_class,
        preemptibility=find_preemptibility(labels.get(PREEMPTIBILITY_LABEL)),
        created_ms=metadata.created_ms,
        started_ms=standing.started_ms if state is PodState.RUNNING else None,
        has_workload=any(each in labels or each in metadata.annotations for each in _KUEUE_MARKS),
    )


def state_of(phase: str | None, *, deleted: bool, bound: bool, gated: bool) -> PodState:
    """How far a pod is: what has ended stays so, and what was told to end does not run."""
    if phase == _Phase.SUCCEEDED:
        return PodState.SUCCEEDED
    if phase == _Phase.FAILED:
        return PodState.FAILED
    if deleted:
        return PodState.RELEASING
    if bound or phase == _Phase.RUNNING:
        return PodState.RUNNING
    return PodState.GATED if gated else PodState.PENDING


def member_problems(
    metadata: Metadata, scheduling_group: str | None = None
) -> dict[FieldPath, tuple[Severity, str]]:
    """What is wrong with what a pod says about its gang, by the paths."""
    found: dict[FieldPath, tuple[Severity, str]] = {}
    for name in _FRACTION_ANNOTATIONS:
        if name in metadata.annotations:
            message = "parts of a GPU are not supported; ask for whole GPUs"
            found["metadata", "annotations", name] = (Severity.ERROR, message)
    rank = metadata.labels.get(RANK_LABEL)
    if rank is not None and _rank(rank) is None:
        message = f"{rank!r} is not a whole number, so that the pod has no rank"
        found["metadata", "labels", RANK_LABEL] = (Severity.WARNING, message)
    wrong = preemptibility_problem(metadata)
    if wrong is not None:
        found["metadata", "labels", PREEMPTIBILITY_LABEL] = (Severity.ERROR, wrong)
    if scheduling_group and metadata.annotations.get(GROUP_ANNOTATION):
        message = f"names a PodGroup, and the annotation {GROUP_ANNOTATION} another; keep one"
        found["spec", "schedulingGroup"] = (Severity.ERROR, message)
    return found


def preemptibility_problem(metadata: Metadata) -> str | None:
    """What is wrong with the label that says whether others may take its place."""
    said = metadata.labels.get(PREEMPTIBILITY_LABEL)
    if not said or find_preemptibility(said) is not None:
        return None
    return f"{said!r} must be {' or '.join(known.value for known in Preemptibility)}"


def find_preemptibility(text: str | None) -> Preemptibility | None:
    """What a label says about whether others may take its place."""
    return next((known for known in Preemptibility if text == known.value), None)


def _group_key(metadata: Metadata, scheduling_group: str | None) -> str | None:
    """The PodGroup that a pod names: of KAI by an annotation, else of Kubernetes itself."""
    group = metadata.annotations.get(GROUP_ANNOTATION)
    if group and not _CAN_BE_NAME.fullmatch(group):
        # No object is called so; and it must not be taken for one of another namespace.
        return f"{metadata.namespace or DEFAULT_NAMESPACE}/{group!r}"
    if group:
        return qualified(metadata.namespace, group)
    if not scheduling_group:
        return None
    return group_key(qualified(metadata.namespace, scheduling_group), native=True)


def _read_standing(status: Fields, spec: Fields, metadata: Metadata) -> PodStanding:
    gates = [gate.text("name") for gate in spec.children("schedulingGates")]
    phase = status.optional_choice("phase", _Phase)
    deleted = metadata.deleted_ms is not None
    state = state_of(phase, deleted=deleted, bound="nodeName" in spec, gated=bool(gates))
    if state is PodState.RUNNING and "nodeName" not in spec:
        spec.warn("nodeName", "is missing, although the pod runs")
    return PodStanding(
        state,
        node=spec.optional_text("nodeName") or None,
        started_ms=status.optional_time_ms("startTime"),
        priority_class=spec.optional_text("priorityClassName"),
        scheduling_group=_read_scheduling_group(spec),
    )


def _read_scheduling_group(spec: Fields) -> str | None:
    group = spec.optional_child("schedulingGroup")
    return None if group is None else group.optional_text("podGroupName")


def _rank(text: str | None) -> int | None:
    if text is not None and text.removeprefix("-").isdecimal() and len(text) < 12:
        return int(text)
    return None
