"""A Pod as a member of a gang: what it asks for, its gang, and how far it is."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from bough.formats.kubernetes.pods import NotHonoured, read_pod_spec, resources_of
from bough.model.gang import Pod, PodState
from bough.model.podgroup import MemberPod, Preemptibility, qualified

if TYPE_CHECKING:
    from bough.formats.kubernetes.metadata import Metadata
    from bough.formats.yaml.fields import Fields

GROUP_ANNOTATION = "pod-group-name"
SUBGROUP_LABEL = "kai.scheduler/subgroup-name"
RANK_LABEL = "kai.scheduler/task-priority"
QUEUE_LABEL = "kai.scheduler/queue"
#: The older name of the label above.
PROJECT_LABEL = "project"
PRIORITY_LABEL = "priorityClassName"
PREEMPTIBILITY_LABEL = "kai.scheduler/preemptibility"
DEFAULT_QUEUE = "default-queue"
#: Kueue puts one of these on the pods of a Workload, as labels or annotations.
_KUEUE_MARKS = (
    "kueue.x-k8s.io/managed",
    "kueue.x-k8s.io/podset",
    "kueue.x-k8s.io/queue-name",
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
    state = _read_state(status, spec, metadata)
    template = read_pod_spec(spec, metadata.labels, _NOT_HONOURED.get(state))
    _refuse_fractions(fields, metadata)
    labels = metadata.labels
    group = metadata.annotations.get(GROUP_ANNOTATION)
    pod = Pod(
        name=qualified(metadata.namespace, metadata.name),
        subgroup=labels.get(SUBGROUP_LABEL) or None,
        requests=resources_of({"pods": 1, **template.requests}),
        state=state,
        node=spec.optional_text("nodeName") or None,
        node_selector=template.node_selector,
        affinity=template.affinity,
        tolerations=template.tolerations,
        rank=_read_rank(fields, labels.get(RANK_LABEL)),
        unsupported=template.unsupported,
    )
    return MemberPod(
        pod=pod,
        group=qualified(metadata.namespace, group) if group else None,
        namespace=metadata.namespace,
        queue=labels.get(QUEUE_LABEL) or labels.get(PROJECT_LABEL) or DEFAULT_QUEUE,
        priority_class=labels.get(PRIORITY_LABEL) or spec.optional_text("priorityClassName"),
        preemptibility=_read_preemptibility(fields, labels.get(PREEMPTIBILITY_LABEL)),
        created_ms=metadata.created_ms,
        started_ms=_read_start_ms(status, state),
        has_workload=any(each in labels or each in metadata.annotations for each in _KUEUE_MARKS),
    )


def _read_state(status: Fields, spec: Fields, metadata: Metadata) -> PodState:
    gates = [gate.text("name") for gate in spec.children("schedulingGates")]
    phase = status.optional_choice("phase", _Phase)
    if phase is _Phase.SUCCEEDED:
        return PodState.SUCCEEDED
    if phase is _Phase.FAILED:
        return PodState.FAILED
    if metadata.deleted_ms is not None:
        return PodState.RELEASING
    if "nodeName" in spec:
        return PodState.RUNNING
    if phase is _Phase.RUNNING:
        spec.warn("nodeName", "is missing, although the pod runs")
        return PodState.RUNNING
    return PodState.GATED if gates else PodState.PENDING


def _read_start_ms(status: Fields, state: PodState) -> int | None:
    """Since when a pod has been on its node; only for a pod that runs."""
    started = status.optional_time_ms("startTime")
    return started if state is PodState.RUNNING else None


def _read_rank(fields: Fields, text: str | None) -> int | None:
    if text is None:
        return None
    if text.removeprefix("-").isdecimal() and len(text) < 12:
        return int(text)
    path = ("metadata", "labels", RANK_LABEL)
    fields.reading.warn(path, f"{text!r} is no whole number, so that the pod has no rank")
    return None


def _read_preemptibility(fields: Fields, text: str | None) -> Preemptibility | None:
    if not text:
        return None
    for known in Preemptibility:
        if text == known.value:
            return known
    path = ("metadata", "labels", PREEMPTIBILITY_LABEL)
    names = " or ".join(known.value for known in Preemptibility)
    fields.reading.error(path, f"{text!r} must be {names}")
    return None


def _refuse_fractions(fields: Fields, metadata: Metadata) -> None:
    for name in _FRACTION_ANNOTATIONS:
        if name in metadata.annotations:
            path = ("metadata", "annotations", name)
            fields.reading.error(path, "parts of a GPU are not supported; ask for whole GPUs")
