"""LocalQueue and Workload: what waits, what runs, and which quota it holds."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from bough.formats.kubernetes.pods import read_pod_template
from bough.formats.kueue.quota import read_weight
from bough.model.admission_rules import StopPolicy
from bough.model.workload import (
    Admission,
    Assignment,
    CheckState,
    LocalQueue,
    PodSet,
    SliceConstraint,
    TopologyRequest,
    Workload,
    WorkloadCondition,
)

if TYPE_CHECKING:
    from bough.formats.kubernetes.metadata import Metadata
    from bough.formats.yaml.fields import Fields

#: Where Kubernetes puts an object that names no namespace.
DEFAULT_NAMESPACE = "default"
#: What a pod set is called that has no name.
DEFAULT_POD_SET = "main"


class _ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class _CheckPhase(StrEnum):
    PENDING = "Pending"
    READY = "Ready"
    RETRY = "Retry"
    REJECTED = "Rejected"


class _DelayedTopology(StrEnum):
    PENDING = "Pending"
    READY = "Ready"


class _GatePosition(StrEnum):
    CLOSED = "Closed"
    OPEN = "Open"


def read_local_queue(fields: Fields, metadata: Metadata) -> LocalQueue:
    """Read a LocalQueue; its `status` says nothing that is not computed here."""
    fields.ignore("status")
    spec = fields.child("spec")
    return LocalQueue(
        name=metadata.name,
        namespace=metadata.namespace or DEFAULT_NAMESPACE,
        queue=spec.text("clusterQueue"),
        stop=spec.choice("stopPolicy", StopPolicy, StopPolicy.NONE),
        weight=read_weight(spec),
    )


def read_workload(fields: Fields, metadata: Metadata) -> Workload:
    """Read a Workload with its status, which says what it holds."""
    spec = fields.child("spec")
    pod_sets = tuple(_read_pod_set(each) for each in spec.children("podSets"))
    if not pod_sets:
        spec.error("podSets", "a workload needs at least one pod set")
    status = fields.optional_child("status") or fields.nothing("status")
    requeue = status.optional_child("requeueState") or status.nothing("requeueState")
    _skip_status(status)
    return Workload(
        name=metadata.name,
        namespace=metadata.namespace or DEFAULT_NAMESPACE,
        pod_sets=pod_sets,
        local_queue=spec.optional_text("queueName") or None,
        priority=spec.optional_integer("priority"),
        priority_class=_read_priority_class(spec),
        active=spec.boolean("active", default=True),
        maximum_execution_s=spec.optional_integer("maximumExecutionTimeSeconds", minimum=1),
        preemption_gates=tuple(each.text("name") for each in spec.children("preemptionGates")),
        uid=metadata.uid,
        created_ms=metadata.created_ms,
        labels=metadata.labels,
        annotations=metadata.annotations,
        admission=_read_admission(status),
        conditions=tuple(_read_condition(each) for each in status.children("conditions")),
        checks=tuple(_read_check(each) for each in status.children("admissionChecks")),
        reclaimable_pods=_read_reclaimable_pods(status),
        requeues=requeue.optional_integer("count", minimum=0) or 0,
        requeue_at_ms=requeue.optional_time_ms("requeueAt"),
        cluster=status.optional_text("clusterName") or None,
        nominated_clusters=status.texts("nominatedClusterNames"),
    )


def _read_priority_class(spec: Fields) -> str | None:
    """Read both forms: a reference, and a name with a source."""
    spec.optional_text("priorityClassSource")
    reference = spec.optional_child("priorityClassRef")
    if reference is None:
        return spec.optional_text("priorityClassName") or None
    spec.spelling("priorityClassRef", "priorityClassName")
    reference.optional_text("group")
    reference.optional_text("kind")
    return reference.text("name")


def _read_pod_set(fields: Fields) -> PodSet:
    return PodSet(
        name=fields.optional_text("name") or DEFAULT_POD_SET,
        count=fields.integer("count"),
        template=read_pod_template(fields.child("template")),
        min_count=fields.optional_integer("minCount"),
        topology=_read_topology_request(fields),
    )


def _read_topology_request(pod_set: Fields) -> TopologyRequest | None:
    fields = pod_set.optional_child("topologyRequest")
    if fields is None:
        return None
    fields.ignore("podIndexLabel", "subGroupIndexLabel", "subGroupCount")
    return TopologyRequest(
        required=fields.optional_text("required"),
        preferred=fields.optional_text("preferred"),
        unconstrained=fields.boolean("unconstrained", default=False),
        group=fields.optional_text("podSetGroupName"),
        slices=_read_slices(fields),
    )


def _read_slices(fields: Fields) -> tuple[SliceConstraint, ...]:
    """Read both forms: one level and size, and a list of them from the widest to the narrowest."""
    level = fields.optional_text("podSetSliceRequiredTopology")
    size = fields.optional_integer("podSetSliceSize", minimum=1)
    several = tuple(
        SliceConstraint(each.text("topology"), each.integer("size", minimum=1))
        for each in fields.children("podsetSliceRequiredTopologyConstraints")
    )
    if level is None:
        return several
    if several:
        name = "podsetSliceRequiredTopologyConstraints"
        fields.error(name, "says the same as podSetSliceRequiredTopology; keep one of them")
    if size is None:
        fields.error("podSetSliceSize", "is missing")
    return (SliceConstraint(level, size or 1),)


def _read_admission(status: Fields) -> Admission | None:
    fields = status.optional_child("admission")
    if fields is None:
        return None
    return Admission(
        queue=fields.text("clusterQueue"),
        assignments=tuple(_read_assignment(each) for each in fields.children("podSetAssignments")),
    )


def _read_assignment(fields: Fields) -> Assignment:
    fields.ignore("topologyAssignment")
    fields.optional_choice("delayedTopologyRequest", _DelayedTopology)
    return Assignment(
        name=fields.optional_text("name") or DEFAULT_POD_SET,
        flavors=fields.text_map("flavors"),
        usage=fields.quantities("resourceUsage"),
        count=fields.optional_integer("count", minimum=0),
    )


def _read_condition(fields: Fields) -> WorkloadCondition:
    fields.ignore("observedGeneration")
    status = fields.choice("status", _ConditionStatus, _ConditionStatus.UNKNOWN)
    return WorkloadCondition(
        type=fields.text("type"),
        status=status is _ConditionStatus.TRUE,
        reason=fields.optional_text("reason") or "",
        message=fields.optional_text("message") or "",
        since_ms=fields.optional_time_ms("lastTransitionTime"),
    )


def _read_check(fields: Fields) -> CheckState:
    fields.ignore("message", "podSetUpdates", "requeueAfterSeconds", "retryCount")
    return CheckState(
        name=fields.text("name"),
        state=fields.choice("state", _CheckPhase, _CheckPhase.PENDING).value,
        since_ms=fields.optional_time_ms("lastTransitionTime"),
    )


def _read_reclaimable_pods(status: Fields) -> dict[str, int]:
    return {
        each.text("name"): each.integer("count", minimum=0)
        for each in status.children("reclaimablePods")
    }


def _skip_status(status: Fields) -> None:
    """Accept what is only a record of the past, or computed anew; check the form of gates."""
    status.ignore(
        "accumulatedPastExecutionTimeSeconds",
        # The misspelling is part of v1beta1.
        "accumulatedPastExexcutionTimeSeconds",
        "resourceRequests",
        "schedulingStats",
        "unhealthyNodes",
    )
    for each in status.children("preemptionGates"):
        each.ignore("lastTransitionTime")
        each.text("name")
        each.optional_choice("position", _GatePosition)
