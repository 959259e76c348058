"""PodGroup and Workload of Kubernetes itself (`scheduling.k8s.io/v1alpha2`).

They have no field for a queue: a PodGroup is in the queue that its label `kai.scheduler/queue`
names, or else that of its pods. Controllers copy everything that a decision needs from a Workload
into its PodGroups, so a Workload is only compared with them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from bough.formats.kai.pod import (
    PREEMPTIBILITY_LABEL,
    QUEUE_LABEL,
    find_preemptibility,
    preemptibility_problem,
)
from bough.model.gang import NODE_LABEL, TopologyConstraint
from bough.model.pod_group import PodGroup, TemplateName, Templates

if TYPE_CHECKING:
    from bough.formats.kubernetes.metadata import Metadata
    from bough.formats.yaml.fields import Fields

VERSION = "scheduling.k8s.io/v1alpha2"
MOST_TEMPLATES = 8
#: Pods that are placed one by one as there is room, so one of them is enough to start.
BASIC_MINIMUM = 1
NO_POLICY = "says neither basic nor gang; say one of them"
BOTH_POLICIES = "says basic and gang, which cannot be used together"


class DisruptionMode(StrEnum):
    """Whether others may take single pods of a PodGroup, or only all of them."""

    POD = "Pod"
    POD_GROUP = "PodGroup"


class NativeSpec(NamedTuple):
    """The spec of a PodGroup, or of a template for one."""

    #: `None`: its pods need not start together.
    min_count: int | None = None
    #: All its pods must be on nodes with the same value of this label.
    topology_key: str | None = None
    priority_class: str | None = None
    priority: int | None = None
    disrupted_whole: bool = False
    template: TemplateName | None = None


def native_pod_group(metadata: Metadata, spec: NativeSpec) -> PodGroup:
    """Translate a PodGroup, wherever it was read."""
    key = spec.topology_key
    return PodGroup(
        name=metadata.name,
        namespace=metadata.namespace,
        queue=metadata.labels.get(QUEUE_LABEL, ""),
        min_member=BASIC_MINIMUM if spec.min_count is None else spec.min_count,
        constraint=TopologyConstraint(NODE_LABEL, key) if key else None,
        priority_class=spec.priority_class,
        preemptibility=find_preemptibility(metadata.labels.get(PREEMPTIBILITY_LABEL)),
        created_ms=metadata.created_ms,
        native=True,
        priority=spec.priority,
        disrupted_whole=spec.disrupted_whole,
        template=spec.template,
    )


def read_native_pod_group(fields: Fields, metadata: Metadata) -> PodGroup:
    """Read a PodGroup; its `status` is not needed, as Bough computes it."""
    fields.ignore("status")
    wrong = preemptibility_problem(metadata)
    if wrong is not None:
        fields.reading.error(("metadata", "labels", PREEMPTIBILITY_LABEL), wrong)
    spec = fields.child("spec")
    found = _read_spec(spec)
    return native_pod_group(metadata, found._replace(template=_read_template_name(spec)))


def read_native_workload(fields: Fields, metadata: Metadata) -> Templates:
    """Read a Workload: the templates of its PodGroups."""
    fields.ignore("status")
    spec = fields.child("spec")
    spec.ignore("controllerRef")
    groups: list[PodGroup] = []
    written = spec.children("podGroupTemplates")
    if not 1 <= len(written) <= MOST_TEMPLATES:
        message = f"has {len(written)} templates, but must have 1 to {MOST_TEMPLATES}"
        spec.error("podGroupTemplates", message)
    for each in written:
        name = each.text("name")
        if any(name == group.name for group in groups):
            each.error("name", f"{name!r} is the name of another template, too")
        own = type(metadata)(name=name, namespace=metadata.namespace)
        groups.append(native_pod_group(own, _read_spec(each)))
    return Templates(metadata.name, metadata.namespace, tuple(groups))


def _read_spec(spec: Fields) -> NativeSpec:
    """Read what PodGroups and templates have in common."""
    policy = spec.child("schedulingPolicy")
    gang = policy.optional_child("gang")
    basic = policy.optional_child("basic")
    if basic is None and gang is None:
        if "schedulingPolicy" in spec:
            spec.error("schedulingPolicy", NO_POLICY)
    elif basic is not None and gang is not None:
        spec.error("schedulingPolicy", BOTH_POLICIES)
    claims = spec.children("resourceClaims")
    for each in claims:
        each.ignore(*each.names())
    if claims:
        spec.warn("resourceClaims", "resource claims are not supported: pods that have them wait")
    mode = spec.optional_choice("disruptionMode", DisruptionMode)
    return NativeSpec(
        min_count=None if gang is None else gang.integer("minCount", minimum=1),
        topology_key=_read_topology_key(spec),
        priority_class=spec.optional_text("priorityClassName") or None,
        priority=spec.optional_integer("priority"),
        disrupted_whole=mode is DisruptionMode.POD_GROUP,
    )


def _read_topology_key(spec: Fields) -> str | None:
    constraints = spec.optional_child("schedulingConstraints")
    found = [] if constraints is None else constraints.children("topology")
    keys = [each.text("key") for each in found]
    if constraints is not None and len(keys) > 1:
        constraints.error("topology", f"has {len(keys)} constraints, but must have one at most")
    return keys[0] if keys else None


def _read_template_name(spec: Fields) -> TemplateName | None:
    reference = spec.optional_child("podGroupTemplateRef")
    workload = None if reference is None else reference.child("workload")
    if workload is None:
        return None
    return TemplateName(workload.text("workloadName"), workload.text("podGroupTemplateName"))
