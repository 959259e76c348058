"""PodGroups, Queues, Topologies and PriorityClasses as an apiserver sends them.

Only single fields are checked here; whether the fields fit together is checked by `core.gang`, as
for files.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Generic, NamedTuple, TypeVar

import msgspec

from bough.errors import Invalid
from bough.formats.kai.kubernetes_pod_group import (
    BOTH_POLICIES,
    NO_POLICY,
    DisruptionMode,
    NativeSpec,
    native_pod_group,
)
from bough.formats.kai.pod import PREEMPTIBILITY_LABEL, preemptibility_problem
from bough.formats.kai.pod_group import LAST_START_ANNOTATION
from bough.formats.kai.queue import DEFAULT_PRIORITY, MEMORY_UNIT, bound
from bough.formats.live.objects import (
    LiveAmount,
    LiveConstraint,
    LiveConstraints,
    LiveNativePodGroup,
    LiveNativePodGroupSpec,
    LivePodGroup,
    LivePriorityClass,
    LiveQueue,
    LiveSubGroup,
    LiveTopology,
    Written,
)
from bough.formats.live.pods import live_metadata, live_time_ms
from bough.formats.yaml.quantity import parse_fraction
from bough.formats.yaml.times import parse_duration_s
from bough.model.cluster import Topology, TopologyLevel
from bough.model.fair_queue import FairAmount, FairQueue
from bough.model.gang import TopologyConstraint
from bough.model.pod_group import (
    PodGroup,
    Preemptibility,
    PriorityClass,
    SubGroupSetSpec,
    SubGroupSpec,
    TemplateName,
    TopologyConstraints,
)
from bough.model.problem import FieldPath, Problem

T = TypeVar("T")
Made = TypeVar("Made")


class LiveRead(NamedTuple, Generic[Made]):
    """What was read, and what is wrong with it."""

    made: Made
    problems: tuple[Problem, ...] = ()


class _Problems:
    """Collects the problems of one object."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self.found: list[Problem] = []

    def read(self, path: FieldPath, text: T | None, parse: Callable[[T], Made]) -> Made | None:
        """Parse a value; `None` if it is missing or wrong, and then the problem is noted."""
        if text is None:
            return None
        try:
            return parse(text)
        except Invalid as error:
            self.add(path, error.message)
            return None

    def add(self, path: FieldPath, message: str) -> None:
        """Note what is wrong with a field."""
        self.found.append(Problem(path, message, subject=self._subject))


def live_pod_group(written: LivePodGroup) -> LiveRead[PodGroup]:
    """Read a PodGroup; its status is ignored, as all of that is computed anew."""
    metadata = live_metadata(written.metadata)
    spec = written.spec
    group = PodGroup(
        name=metadata.name,
        namespace=metadata.namespace,
        queue=spec.queue or "",
        min_member=spec.min_member,
        min_sub_group=spec.min_sub_group,
        subgroups=tuple(_subgroup(each) for each in spec.sub_groups or ()),
        constraint=_constraint(spec.topology_constraint),
        constraints=_constraints(spec.topology_constraints),
        priority_class=spec.priority_class_name or None,
        mark_unschedulable=spec.mark_unschedulable,
        scheduling_backoff=1 if spec.scheduling_backoff == 1 else None,
        created_ms=metadata.created_ms,
    )
    problems = _Problems(f"PodGroup/{group.key}")
    read = problems.read
    group = msgspec.structs.replace(
        group,
        preemptibility=read(("spec", "preemptibility"), spec.preemptibility or None, _preempts),
        preemption_delay_s=read(
            ("spec", "preemptionDelay"), spec.preemption_delay, parse_duration_s
        ),
        staleness_grace_s=read(
            ("spec", "stalenessGracePeriod"), spec.staleness_grace_period, parse_duration_s
        ),
        # If this is not a valid time, the start times of the pods count instead.
        last_start_ms=live_time_ms(metadata.annotations.get(LAST_START_ANNOTATION)),
    )
    if spec.scheduling_backoff not in (None, -1, 1):
        message = f"is {spec.scheduling_backoff}, but must be 1, or -1 to keep trying"
        problems.add(("spec", "schedulingBackoff"), message)
    return LiveRead(group, tuple(problems.found))


def live_native_pod_group(written: LiveNativePodGroup) -> LiveRead[PodGroup]:
    """Read a native PodGroup, one of Kubernetes itself."""
    metadata = live_metadata(written.metadata)
    spec = written.spec
    constraints = spec.scheduling_constraints
    keys = [each.key for each in (constraints and constraints.topology) or ()]
    gang = spec.scheduling_policy.gang
    template = spec.pod_group_template_ref and spec.pod_group_template_ref.workload
    group = native_pod_group(
        metadata,
        NativeSpec(
            min_count=None if gang is None else max(gang.min_count, 1),
            topology_key=keys[0] if keys else None,
            priority_class=spec.priority_class_name or None,
            priority=spec.priority,
            disrupted_whole=spec.disruption_mode == DisruptionMode.POD_GROUP,
            template=template
            and TemplateName(template.workload_name, template.pod_group_template_name),
        ),
    )
    problems = _Problems(f"PodGroup/{group.key}")
    _check_native(spec, keys, problems)
    wrong = preemptibility_problem(metadata)
    if wrong is not None:
        problems.add(("metadata", "labels", PREEMPTIBILITY_LABEL), wrong)
    return LiveRead(group, tuple(problems.found))


def _check_native(spec: LiveNativePodGroupSpec, keys: list[str], problems: _Problems) -> None:
    """Check what this version of the apiserver refuses, as another version may let it through."""
    at, policy = ("spec", "schedulingPolicy"), spec.scheduling_policy
    if policy.gang is not None and policy.gang.min_count < 1:
        message = f"is {policy.gang.min_count}, but must be at least 1"
        problems.add((*at, "gang", "minCount"), message)
    if policy.gang is None and policy.basic is None:
        problems.add(at, NO_POLICY)
    elif policy.gang is not None and policy.basic is not None:
        problems.add(at, BOTH_POLICIES)
    if len(keys) > 1:
        message = f"has {len(keys)} constraints, but must have one at most"
        problems.add(("spec", "schedulingConstraints", "topology"), message)
    if spec.disruption_mode and spec.disruption_mode not in set(DisruptionMode):
        known = ", ".join(DisruptionMode)
        problems.add(("spec", "disruptionMode"), f"is {spec.disruption_mode!r}, but not {known}")


def live_queue(written: LiveQueue) -> LiveRead[FairQueue]:
    """Read a Queue; its status is ignored, as all of that is computed anew."""
    metadata = live_metadata(written.metadata)
    spec = written.spec
    problems = _Problems(f"Queue/{metadata.name}")
    own = spec.resources
    queue = FairQueue(
        name=metadata.name,
        parent=spec.parent_queue or None,
        priority=DEFAULT_PRIORITY if spec.priority is None else spec.priority,
        gpus=_amount(problems, "gpu", own.gpu),
        cpu_milli=_amount(problems, "cpu", own.cpu),
        memory_bytes=_amount(problems, "memory", own.memory, MEMORY_UNIT),
        preempt_min_runtime_s=problems.read(
            ("spec", "preemptMinRuntime"), spec.preempt_min_runtime, parse_duration_s
        ),
        reclaim_min_runtime_s=problems.read(
            ("spec", "reclaimMinRuntime"), spec.reclaim_min_runtime, parse_duration_s
        ),
        display_name=spec.display_name or None,
        created_ms=metadata.created_ms or 0,
    )
    return LiveRead(queue, tuple(problems.found))


def live_topology(written: LiveTopology) -> Topology:
    """Read a Topology."""
    levels = (
        TopologyLevel(each.node_label, each.alias or None) for each in written.spec.levels or ()
    )
    return Topology(written.metadata.name, tuple(levels))


def live_priority_class(written: LivePriorityClass) -> PriorityClass:
    """Read a PriorityClass."""
    return PriorityClass(written.metadata.name, written.value, written.global_default)


def _subgroup(written: LiveSubGroup) -> SubGroupSpec:
    return SubGroupSpec(
        name=written.name,
        parent=written.parent or None,
        min_member=written.min_member,
        min_sub_group=written.min_sub_group,
        constraint=_constraint(written.topology_constraint),
    )


def _constraint(written: LiveConstraint | None) -> TopologyConstraint | None:
    if written is None:
        return None
    return TopologyConstraint(
        topology=written.topology or None,
        required=written.required_topology_level or None,
        preferred=written.preferred_topology_level or None,
    )


def _constraints(written: LiveConstraints | None) -> TopologyConstraints:
    if written is None:
        return TopologyConstraints()
    named = {name: _constraint(each) for name, each in (written.sub_groups or {}).items()}
    return TopologyConstraints(
        fallback=_constraint(written.fallback),
        subgroups={name: each for name, each in named.items() if each is not None},
        sets=tuple(
            SubGroupSetSpec(
                each.sub_groups or (), _constraint(each.constraint) or TopologyConstraint()
            )
            for each in written.sub_group_sets or ()
        ),
    )


def _preempts(text: str) -> Preemptibility:
    try:
        return Preemptibility(text)
    except ValueError:
        names = " or ".join(known.value for known in Preemptibility)
        raise Invalid(f"{text!r} must be {names}") from None


def _amount(
    problems: _Problems, resource: str, written: LiveAmount | None, unit: int = 1
) -> FairAmount:
    """The amounts of one resource; what is left out is zero, as in KAI's API."""
    if written is None:
        return FairAmount()
    at = ("spec", "resources", resource)
    weight = problems.read((*at, "overQuotaWeight"), written.over_quota_weight, _not_negative)
    return FairAmount(
        quota=_bound(problems, (*at, "quota"), written.quota, unit),
        limit=_bound(problems, (*at, "limit"), written.limit, unit),
        over_quota_weight=weight or Fraction(0),
    )


def _bound(
    problems: _Problems, path: FieldPath, written: Written | None, unit: int
) -> Fraction | None:
    amount = bound(problems.read(path, written, _fraction), unit)
    if amount is not None and amount < 0:
        message = f"is {written}, but must not be negative; -1 means no limit"
        problems.add(path, message)
        return Fraction(0)
    return amount


def _fraction(written: Written) -> Fraction:
    return parse_fraction(str(written))


def _not_negative(written: Written) -> Fraction:
    value = _fraction(written)
    if value < 0:
        raise Invalid(f"is {value}, but must not be negative")
    return value
