"""Kueue's quota objects, as the cases write them, in the model's types."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from bough.core.quota.tree import QuotaTree
from bough.model.admission_rules import (
    AdmissionCheck,
    AdmissionRules,
    BorrowWithinCohort,
    FlavorFungibility,
    FlavorPreference,
    FlavorSearch,
    Preemption,
    PreemptionWithinQueue,
    QueueingStrategy,
    ReclaimWithinCohort,
    StopPolicy,
)
from bough.model.cluster import Match
from bough.model.quota import (
    Cohort,
    FlavorQuotas,
    FlavorResource,
    Queue,
    Quota,
    ResourceGroup,
)

#: What the cases call "unlimited": the largest amount that Kueue can count.
UNLIMITED = 2**63 - 1


def cohort_of(data: dict[str, Any]) -> Cohort:
    """A Cohort object."""
    return Cohort(data["name"], data.get("parent") or None, _groups(data), _weight(data))


def queue_of(data: dict[str, Any]) -> Queue:
    """A ClusterQueue object."""
    cohort = data.get("cohort") or None
    return Queue(data["name"], cohort, _groups(data), _weight(data), _rules(data))


def tree_of(data: dict[str, Any]) -> QuotaTree:
    """The tree of a case, with nothing in use."""
    return QuotaTree.of(
        (cohort_of(cohort) for cohort in data.get("cohorts", ())),
        (queue_of(queue) for queue in data.get("cluster_queues", ())),
    )


def amounts_of(data: dict[str, dict[str, Any]]) -> dict[FlavorResource, int]:
    """`{flavor: {resource: amount}}`."""
    return {
        FlavorResource(flavor, resource): amount_of(amount)
        for flavor, resources in data.items()
        for resource, amount in resources.items()
    }


def admitted_usage(workload: dict[str, Any]) -> dict[FlavorResource, int]:
    """What an admitted workload is charged."""
    usage: dict[FlavorResource, int] = {}
    for pod_set in workload["admission"]["pod_sets"]:
        for resource, amount in pod_set["usage"].items():
            what = FlavorResource(pod_set["flavors"][resource], resource)
            usage[what] = usage.get(what, 0) + amount_of(amount)
    return usage


def amount_of(value: Any) -> int:
    """An amount, which may be "unlimited"."""
    return UNLIMITED if value == "unlimited" else int(value)


def written(amount: int) -> int | str:
    """An amount as the cases write it."""
    return "unlimited" if amount >= UNLIMITED else amount


def matches_of(selector: dict[str, Any]) -> tuple[Match, ...]:
    """A label selector, as conditions that must all hold."""
    labels = selector.get("match_labels") or {}
    expressions = selector.get("match_expressions") or ()
    return (
        *(Match(key, "In", (value,)) for key, value in labels.items()),
        *(expression_of(expression) for expression in expressions),
    )


def expression_of(data: dict[str, Any]) -> Match:
    """One condition on labels."""
    return Match(data["key"], data["operator"], tuple(data.get("values") or ()))


def _rules(data: dict[str, Any]) -> AdmissionRules:
    selector = data.get("namespace_selector")
    return AdmissionRules(
        queueing=QueueingStrategy(data.get("queueing_strategy") or "BestEffortFIFO"),
        namespaces=None if selector is None else matches_of(selector),
        fungibility=_fungibility(data.get("flavor_fungibility") or {}),
        preemption=_preemption(data.get("preemption") or {}),
        checks=tuple(_check(each) for each in data.get("admission_checks") or ()),
        stop=StopPolicy(data.get("stop_policy") or "None"),
    )


def _fungibility(data: dict[str, Any]) -> FlavorFungibility:
    preference = data.get("preference")
    return FlavorFungibility(
        FlavorSearch(data.get("when_can_borrow") or "MayStopSearch"),
        FlavorSearch(data.get("when_can_preempt") or "TryNextFlavor"),
        None if preference is None else FlavorPreference(preference),
    )


def _preemption(data: dict[str, Any]) -> Preemption:
    borrow = data.get("borrow_within_cohort") or {}
    return Preemption(
        PreemptionWithinQueue(data.get("within_cluster_queue") or "Never"),
        ReclaimWithinCohort(data.get("reclaim_within_cohort") or "Never"),
        BorrowWithinCohort(borrow.get("policy") or "Never"),
        borrow.get("max_priority_threshold"),
    )


def _check(data: Any) -> AdmissionCheck:
    if isinstance(data, str):
        return AdmissionCheck(data)
    return AdmissionCheck(data["name"], tuple(data.get("on_flavors") or ()))


def _groups(data: dict[str, Any]) -> tuple[ResourceGroup, ...]:
    return tuple(
        ResourceGroup(
            tuple(group["covered_resources"]),
            tuple(
                FlavorQuotas(
                    flavor["name"],
                    {name: _quota(quota) for name, quota in flavor["resources"].items()},
                )
                for flavor in group["flavors"]
            ),
        )
        for group in data.get("resource_groups") or ()
    )


def _quota(data: dict[str, Any]) -> Quota:
    borrowing, lending = data.get("borrowing_limit"), data.get("lending_limit")
    return Quota(
        amount_of(data["nominal"]),
        None if borrowing is None else amount_of(borrowing),
        None if lending is None else amount_of(lending),
    )


def _weight(data: dict[str, Any]) -> Fraction:
    weight = data.get("fair_weight")
    return Fraction(1) if weight is None else Fraction(str(weight))
