"""PodGroup of KAI, with the fields of both gang designs, as it is written.

Which combinations are allowed, and what they mean, is decided in `core.gang`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bough.errors import Invalid
from bough.formats.yaml.times import parse_duration_s, parse_time_ms
from bough.model.gang import TopologyConstraint
from bough.model.pod_group import (
    PodGroup,
    Preemptibility,
    PriorityClass,
    SubGroupSetSpec,
    SubGroupSpec,
    TopologyConstraints,
)

if TYPE_CHECKING:
    from bough.formats.kubernetes.metadata import Metadata
    from bough.formats.yaml.fields import Fields

#: What says how a gang is made up.
GANG_FIELDS = ("minMember", "minSubGroup", "subGroups", "topologyConstraint", "topologyConstraints")
#: Older fields that no scheduler reads.
_WITHOUT_MEANING = ("parallelism", "completions", "backoffLimit")
_KEEP_TRYING = -1
#: The scheduler writes here when a gang last started.
LAST_START_ANNOTATION = "kai.scheduler/last-start-timestamp"


def read_pod_group(fields: Fields, metadata: Metadata) -> PodGroup:
    """Read a PodGroup; its `status` says nothing that is not computed here."""
    fields.ignore("status")
    spec = fields.optional_child("spec")
    if spec is None:
        return PodGroup(metadata.name, metadata.namespace, created_ms=metadata.created_ms)
    spec.ignore(*_WITHOUT_MEANING)
    return msgspec.structs.replace(
        read_gang(spec, metadata.name),
        namespace=metadata.namespace,
        queue=spec.optional_text("queue") or "",
        priority_class=spec.optional_text("priorityClassName") or None,
        preemptibility=_read_preemptibility(spec),
        mark_unschedulable=_read_flag(spec, "markUnschedulable"),
        scheduling_backoff=_read_backoff(spec),
        preemption_delay_s=read_duration_s(spec, "preemptionDelay"),
        staleness_grace_s=read_duration_s(spec, "stalenessGracePeriod"),
        created_ms=metadata.created_ms,
        last_start_ms=_read_last_start_ms(fields, metadata),
    )


def read_gang(fields: Fields, name: str) -> PodGroup:
    """Read the fields that describe a gang (`GANG_FIELDS`), in whatever object they are."""
    return PodGroup(
        name=name,
        min_member=fields.optional_integer("minMember"),
        min_sub_group=fields.optional_integer("minSubGroup"),
        subgroups=tuple(_read_subgroup(each) for each in fields.children("subGroups")),
        constraint=_read_constraint(fields, "topologyConstraint"),
        constraints=_read_constraints(fields),
    )


def _read_last_start_ms(fields: Fields, metadata: Metadata) -> int | None:
    text = metadata.annotations.get(LAST_START_ANNOTATION)
    if not text:
        return None
    try:
        return parse_time_ms(text)
    except Invalid as error:
        path = ("metadata", "annotations", LAST_START_ANNOTATION)
        fields.reading.warn(path, f"{error.message}; what counts is when its pods started")
        return None


def read_priority_class(fields: Fields, metadata: Metadata) -> PriorityClass:
    """Read a PriorityClass of Kubernetes."""
    fields.ignore("description", "preemptionPolicy")
    value = fields.integer("value")
    return PriorityClass(metadata.name, value, fields.boolean("globalDefault", default=False))


def read_duration_s(fields: Fields, name: str) -> int | None:
    """A duration in seconds, or None."""
    text = fields.optional_text(name)
    if text is None:
        return None
    try:
        return parse_duration_s(text)
    except Invalid as error:
        fields.error(name, error.message)
        return None


def _read_subgroup(fields: Fields) -> SubGroupSpec:
    return SubGroupSpec(
        name=fields.text("name"),
        parent=fields.optional_text("parent") or None,
        min_member=fields.optional_integer("minMember"),
        min_sub_group=fields.optional_integer("minSubGroup"),
        constraint=_read_constraint(fields, "topologyConstraint"),
    )


def _read_constraint(fields: Fields, name: str) -> TopologyConstraint | None:
    nested = fields.optional_child(name)
    if nested is None:
        return None
    return TopologyConstraint(
        topology=nested.optional_text("topology") or None,
        required=nested.optional_text("requiredTopologyLevel") or None,
        preferred=nested.optional_text("preferredTopologyLevel") or None,
    )


def _read_constraints(spec: Fields) -> TopologyConstraints:
    nested = spec.optional_child("topologyConstraints")
    if nested is None:
        return TopologyConstraints()
    named = nested.optional_child("subGroups")
    names = () if named is None else named.names()
    by_name = {name: named and _read_constraint(named, name) for name in names}
    return TopologyConstraints(
        fallback=_read_constraint(nested, "global"),
        subgroups={name: each for name, each in by_name.items() if each is not None},
        sets=tuple(
            SubGroupSetSpec(
                members=each.texts("subGroups"),
                constraint=_read_constraint(each, "constraint") or _missing(each, "constraint"),
            )
            for each in nested.children("subGroupSets")
        ),
    )


def _missing(fields: Fields, name: str) -> TopologyConstraint:
    fields.error(name, "is missing")
    return TopologyConstraint()


def _read_preemptibility(spec: Fields) -> Preemptibility | None:
    if spec.optional_text("preemptibility") == "":
        return None
    return spec.optional_choice("preemptibility", Preemptibility)


def _read_flag(spec: Fields, name: str) -> bool | None:
    return spec.boolean(name, default=False) if name in spec else None


def _read_backoff(spec: Fields) -> int | None:
    """`-1` keeps trying; otherwise the number of cycles, of which only 1 has a meaning."""
    value = spec.optional_integer("schedulingBackoff")
    if value not in (None, _KEEP_TRYING, 1):
        spec.error("schedulingBackoff", f"is {value}, but must be 1, or -1 to keep trying")
    return value if value == 1 else None
