"""Cohort, ClusterQueue and ResourceFlavor: the nodes of the quota tree, in all their spellings.

Which amounts make sense is decided in `core.quota`.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from bough.formats.kubernetes.pods import read_label_selector, read_taints, read_tolerations
from bough.model.admission_rules import (
    AdmissionCheck,
    AdmissionMode,
    AdmissionRules,
    BorrowWithinCohort,
    ConcurrentAdmission,
    FlavorFungibility,
    FlavorPreference,
    FlavorSearch,
    MigrationMode,
    Preemption,
    PreemptionWithinQueue,
    QueueingStrategy,
    ReclaimWithinCohort,
    StopPolicy,
)
from bough.model.quota import Cohort, FlavorQuotas, Queue, Quota, ResourceGroup
from bough.model.workload import Flavor

if TYPE_CHECKING:
    from bough.formats.kubernetes.metadata import Metadata
    from bough.formats.yaml.fields import Fields


class _OldFlavorSearch(StrEnum):
    """What v1beta1 called `MayStopSearch`."""

    BORROW = "Borrow"
    PREEMPT = "Preempt"


def read_cohort(fields: Fields, metadata: Metadata) -> Cohort:
    """Read a Cohort; its `status` says nothing that is not computed here."""
    fields.ignore("status")
    spec = fields.optional_child("spec")
    if spec is None:
        return Cohort(metadata.name)
    return Cohort(
        name=metadata.name,
        parent=spec.optional_text(spec.spelling("parentName", "parent")) or None,
        resource_groups=_read_resource_groups(spec),
        weight=read_weight(spec),
    )


def read_cluster_queue(fields: Fields, metadata: Metadata) -> Queue:
    """Read a ClusterQueue; its `status` says nothing that is not computed here."""
    fields.ignore("status")
    spec = fields.optional_child("spec")
    if spec is None:
        return Queue(metadata.name)
    return Queue(
        name=metadata.name,
        cohort=spec.optional_text(spec.spelling("cohortName", "cohort")) or None,
        resource_groups=_read_resource_groups(spec),
        weight=read_weight(spec),
        rules=_read_rules(spec),
    )


def read_resource_flavor(fields: Fields, metadata: Metadata) -> Flavor:
    """Read a ResourceFlavor."""
    fields.ignore("status")
    spec = fields.optional_child("spec")
    if spec is None:
        return Flavor(metadata.name)
    return Flavor(
        name=metadata.name,
        node_labels=spec.text_map("nodeLabels"),
        taints=read_taints(spec, "nodeTaints"),
        tolerations=read_tolerations(spec, "tolerations"),
        topology=spec.optional_text("topologyName") or None,
    )


def read_weight(spec: Fields) -> Fraction:
    """Read `fairSharing.weight`, which is 1 where it is absent."""
    sharing = spec.optional_child("fairSharing")
    weight = sharing.optional_fraction("weight") if sharing is not None else None
    return Fraction(1) if weight is None else weight


def _read_resource_groups(spec: Fields) -> tuple[ResourceGroup, ...]:
    return tuple(
        ResourceGroup(
            covered_resources=group.texts("coveredResources"),
            flavors=tuple(_read_flavor_quotas(flavor) for flavor in group.children("flavors")),
        )
        for group in spec.children("resourceGroups")
    )


def _read_flavor_quotas(fields: Fields) -> FlavorQuotas:
    resources: dict[str, Quota] = {}
    for each in fields.children("resources"):
        resource = each.text("name")
        quota = Quota(
            nominal=each.quantity("nominalQuota", resource),
            borrowing_limit=each.optional_quantity("borrowingLimit", resource),
            lending_limit=each.optional_quantity("lendingLimit", resource),
        )
        if resource in resources:
            each.error("name", f"{resource} is listed twice for this flavor")
        resources[resource] = quota
    return FlavorQuotas(fields.text("name"), resources)


def _read_rules(spec: Fields) -> AdmissionRules:
    queueing = QueueingStrategy.BEST_EFFORT_FIFO
    selector = spec.optional_child("namespaceSelector")
    scope = spec.optional_child("admissionScope")
    return AdmissionRules(
        queueing=spec.choice("queueingStrategy", QueueingStrategy, queueing),
        namespaces=None if selector is None else read_label_selector(selector),
        fungibility=_read_fungibility(spec),
        preemption=_read_preemption(spec),
        checks=_read_checks(spec),
        stop=spec.choice("stopPolicy", StopPolicy, StopPolicy.NONE),
        mode=None if scope is None else scope.optional_choice("admissionMode", AdmissionMode),
        concurrent=_read_concurrent(spec),
    )


def _read_fungibility(spec: Fields) -> FlavorFungibility:
    fields = spec.optional_child("flavorFungibility")
    if fields is None:
        return FlavorFungibility()
    borrow = _read_search(fields, "whenCanBorrow", _OldFlavorSearch.BORROW)
    preempt = _read_search(fields, "whenCanPreempt", _OldFlavorSearch.PREEMPT)
    return FlavorFungibility(
        when_can_borrow=borrow or FlavorSearch.MAY_STOP_SEARCH,
        when_can_preempt=preempt or FlavorSearch.TRY_NEXT_FLAVOR,
        preference=fields.optional_choice("preference", FlavorPreference),
    )


def _read_search(fields: Fields, name: str, old: _OldFlavorSearch) -> FlavorSearch | None:
    if fields.is_text(name, old.value):
        return FlavorSearch.MAY_STOP_SEARCH
    return fields.optional_choice(name, FlavorSearch)


def _read_preemption(spec: Fields) -> Preemption | None:
    fields = spec.optional_child("preemption")
    if fields is None:
        return None
    within = fields.optional_choice("withinClusterQueue", PreemptionWithinQueue)
    reclaim = fields.optional_choice("reclaimWithinCohort", ReclaimWithinCohort)
    borrow = fields.optional_child("borrowWithinCohort")
    policy = None if borrow is None else borrow.optional_choice("policy", BorrowWithinCohort)
    threshold = None if borrow is None else borrow.optional_integer("maxPriorityThreshold")
    return Preemption(
        within_queue=within or PreemptionWithinQueue.NEVER,
        reclaim_within_cohort=reclaim or ReclaimWithinCohort.NEVER,
        borrow_within_cohort=policy or BorrowWithinCohort.NEVER,
        borrow_priority_threshold=threshold,
    )


def _read_checks(spec: Fields) -> tuple[AdmissionCheck, ...]:
    """Read both forms: a list of names, and a strategy that says for which flavors."""
    names = spec.texts("admissionChecks")
    strategy = spec.optional_child("admissionChecksStrategy")
    if strategy is None:
        return tuple(AdmissionCheck(name) for name in names)
    if names:
        spec.error("admissionChecks", "says the same as admissionChecksStrategy; keep one of them")
    return tuple(
        AdmissionCheck(each.text("name"), each.texts("onFlavors"))
        for each in strategy.children("admissionChecks")
    )


def _read_concurrent(spec: Fields) -> ConcurrentAdmission | None:
    policy = spec.optional_child("concurrentAdmissionPolicy")
    if policy is None:
        return None
    migration = policy.optional_child("migration")
    if migration is None:
        return ConcurrentAdmission()
    constraints = migration.optional_child("constraints")
    last = None if constraints is None else constraints.optional_text("lastAcceptableFlavorName")
    return ConcurrentAdmission(migration.optional_choice("mode", MigrationMode), last)
