"""Kueue's workloads and flavors, as the cases write them, in the model's types; gates as policy."""

from __future__ import annotations

from typing import Any

import msgspec

from bough.model.cluster import Taint, TaintEffect, Toleration
from bough.model.policy import (
    KUEUE,
    KUEUE_FAIR,
    OrderKey,
    Policy,
    RequeuingTimestamp,
    ShareRule,
)
from bough.model.workload import (
    Admission,
    Assignment,
    CheckState,
    Flavor,
    LocalQueue,
    PodSet,
    PodTemplate,
    SliceConstraint,
    TopologyRequest,
    Workload,
    WorkloadCondition,
)
from conformance.kueue_objects import amount_of, expression_of

#: Gates that are fields of the policy.
FIELDS = {
    "PartialAdmission": "partial_admission",
    "RecomputeAssignmentUponPreemptionTargetsOverlap": "recompute_overlap",
    "FlavorFungibilityPreserveScanProgress": "keep_scan_progress",
    "SchedulingEquivalenceHashing": "park_alike",
    "PriorityBoost": "priority_boost",
}
#: Gates that are translated otherwise, that decide nothing here, or that belong to features whose
#: use is refused where it is seen.
NEUTRAL = {
    "FairSharingPreemptWithinNominal",
    "FairSharingPrioritizeNonBorrowing",
    "PrioritizePreemptorWorkloads",
    "PrioritySortingWithinCohort",
    "ElasticJobsViaWorkloadSlices",
    "ReclaimablePods",
    "TASBalancedPlacement",
    "TASRecomputeAssignmentWithinSchedulingCycle",
    "TopologyAwareScheduling",
}
#: Gates without which a criterion of the order is not looked at.
ORDERS = {
    "PrioritySortingWithinCohort": OrderKey.PRIORITY,
    "FairSharingPrioritizeNonBorrowing": OrderKey.WITHIN_QUOTA,
}
#: How Kueue calls the rules by which shares are compared.
STRATEGIES = {
    "LessThanOrEqualToFinalShare": ShareRule.FINAL_SHARE,
    "LessThanInitialShare": ShareRule.INITIAL_SHARE,
}
SLICE_ANNOTATION = "kueue.x-k8s.io/workload-slice-replacement-for"


class UnsupportedError(Exception):
    """The case needs a feature that we do not have."""


def policy_of(case: dict[str, Any]) -> Policy:
    """The policy with the case's gates; those that we have no choice for are refused."""
    gates = case.get("feature_gates") or {}
    by_priority = gates.get("PrioritySortingWithinCohort", True)
    fair = bool(case["input"].get("fair_sharing"))
    preset = KUEUE_FAIR if fair else KUEUE
    choices: dict[str, Any] = {
        "order": _order(preset, gates),
        "take_by_share": _rules(case) if fair else (),
        "reclaimed_waits_anew": not by_priority,
        "requeuing_timestamp": RequeuingTimestamp(
            case["input"].get("requeuing_timestamp") or "Eviction"
        ),
    }
    for gate, on in gates.items():
        if gate in FIELDS:
            choices[FIELDS[gate]] = on
        elif on and gate not in NEUTRAL:
            raise UnsupportedError(f"gate {gate}")
    return msgspec.structs.replace(preset, **choices)


def _order(preset: Policy, gates: dict[str, bool]) -> tuple[OrderKey, ...]:
    dropped = {key for gate, key in ORDERS.items() if not gates.get(gate, True)}
    kept = tuple(key for key in preset.order if key not in dropped)
    if not gates.get("PrioritizePreemptorWorkloads", False) or OrderKey.NOMINATED in kept:
        return kept
    first = tuple(key for key in kept if key is OrderKey.HOLDS_QUOTA)
    return (*first, OrderKey.NOMINATED, *kept[len(first) :])


def _rules(case: dict[str, Any]) -> tuple[ShareRule, ...]:
    strategies = case["input"].get("fair_sharing_strategies") or list(STRATEGIES)
    rules = tuple(STRATEGIES[each] for each in strategies)
    gates = case.get("feature_gates") or {}
    entitled = gates.get("FairSharingPreemptWithinNominal", True)
    return (ShareRule.WITHIN_QUOTA, *rules) if entitled else rules


def flavor_of(data: dict[str, Any]) -> Flavor:
    """A ResourceFlavor object."""
    return Flavor(
        data["name"],
        data.get("node_labels") or {},
        tuple(_taint(each) for each in data.get("node_taints") or ()),
        tuple(_toleration(each) for each in data.get("tolerations") or ()),
        data.get("topology"),
    )


def local_queue_of(data: dict[str, Any]) -> LocalQueue:
    """A LocalQueue object."""
    return LocalQueue(data["name"], data["namespace"], data["cluster_queue"])


def workload_of(data: dict[str, Any]) -> Workload:
    """A Workload object."""
    annotations = data.get("annotations") or {}
    if SLICE_ANNOTATION in annotations:
        raise UnsupportedError("elastic workload slices")
    if data.get("preemption_gates"):
        raise UnsupportedError("preemption gates")
    requeue = data.get("requeue_state") or {}
    return Workload(
        data["name"],
        data["namespace"],
        tuple(pod_set_of(each) for each in data["pod_sets"]),
        local_queue=data.get("queue") or None,
        priority=data.get("priority"),
        active=data.get("active", True),
        uid=data.get("uid"),
        created_ms=_milliseconds(data.get("created_at_s")),
        annotations=annotations,
        admission=_admission(data.get("admission")),
        conditions=tuple(_condition(each) for each in data.get("conditions") or ()),
        checks=tuple(
            CheckState(each["name"], each["state"])
            for each in data.get("admission_check_states") or ()
        ),
        reclaimable_pods=data.get("reclaimable_pods") or {},
        requeue_at_ms=_milliseconds(requeue.get("requeue_at_s")),
    )


def pod_set_of(data: dict[str, Any]) -> PodSet:
    """A pod set."""
    for extra in ("init_container_requests", "pod_overhead"):
        if data.get(extra):
            raise UnsupportedError(extra)
    template = PodTemplate(
        {name: amount_of(amount) for name, amount in data["requests_per_pod"].items()},
        data.get("node_selector") or {},
        tuple(
            tuple(expression_of(each) for each in term)
            for term in data.get("required_node_affinity") or ()
        ),
        tuple(_toleration(each) for each in data.get("tolerations") or ()),
    )
    topology = _topology(data.get("topology_request"))
    return PodSet(data["name"], data["count"], template, data.get("min_count"), topology)


def _topology(data: dict[str, Any] | None) -> TopologyRequest | None:
    if data is None:
        return None
    if set(data) - {"pod_set_group"}:
        raise UnsupportedError("placement by topology")
    return TopologyRequest(group=data.get("pod_set_group"), slices=tuple[SliceConstraint]())


def _admission(data: dict[str, Any] | None) -> Admission | None:
    if data is None:
        return None
    return Admission(
        data["cluster_queue"],
        tuple(
            Assignment(
                each["name"],
                each["flavors"],
                {name: amount_of(amount) for name, amount in each["usage"].items()},
                each["count"],
            )
            for each in data["pod_sets"]
        ),
    )


def _condition(data: dict[str, Any]) -> WorkloadCondition:
    return WorkloadCondition(
        data["type"],
        data["status"] == "True",
        data.get("reason") or "",
        since_ms=_milliseconds(data.get("at_s")),
    )


def _taint(data: dict[str, Any]) -> Taint:
    return Taint(data["key"], data.get("value") or "", TaintEffect(data["effect"]))


def _toleration(data: dict[str, Any]) -> Toleration:
    effect = data.get("effect")
    return Toleration(
        data.get("key") or "",
        data.get("operator") or "Equal",
        data.get("value") or "",
        TaintEffect(effect) if effect else None,
    )


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
