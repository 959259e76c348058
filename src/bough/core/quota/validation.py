"""Which cohorts and queues may be declared: amounts, limits, resource groups, rules of admission.

Holds for objects that users write; inner nodes that the product makes itself may have negative
quota. Problems carry the paths of the Kubernetes spec.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from bough.core.names import name_fault, resource_fault
from bough.model.admission_rules import (
    AdmissionRules,
    BorrowWithinCohort,
    FlavorSearch,
    Preemption,
    ReclaimWithinCohort,
)
from bough.model.problem import FieldPath, Problem
from bough.model.quota import Cohort, FlavorQuotas, Queue, Quota, ResourceGroup
from bough.model.words import write_amount

MAXIMUM_GROUPS = 16
MAXIMUM_GROUP_ITEMS = 64
#: For a queue, over all groups.
MAXIMUM_ITEMS = 256
#: For a queue, within a group.
MAXIMUM_COMBINATIONS = 512
#: A smaller weight would vanish in Kubernetes' own arithmetic.
SMALLEST_WEIGHT = Fraction(1, 10**9)

#: A problem without its subject.
Fault = tuple[FieldPath, str]

_GROUPS: FieldPath = ("spec", "resourceGroups")


def validate_cohort(cohort: Cohort) -> list[Problem]:
    """Everything that is wrong with a cohort taken by itself."""
    faults = [
        *name_faults(cohort.name),
        *_parent_faults("parentName", cohort.parent),
        *_group_faults(cohort.resource_groups),
        *_quota_faults(cohort.resource_groups, cohort.parent, "parentName"),
        *weight_faults(cohort.weight),
    ]
    return problems_of(f"Cohort/{cohort.name}", faults)


def validate_queue(queue: Queue) -> list[Problem]:
    """Everything that is wrong with a queue taken by itself."""
    faults = [
        *name_faults(queue.name),
        *_parent_faults("cohortName", queue.cohort),
        *_group_faults(queue.resource_groups),
        *_size_faults(queue.resource_groups),
        *_quota_faults(queue.resource_groups, queue.cohort, "cohortName"),
        *_lending_faults(queue.resource_groups),
        *weight_faults(queue.weight),
        *_rule_faults(queue.rules),
    ]
    return problems_of(f"ClusterQueue/{queue.name}", faults)


def problems_of(subject: str, faults: list[Fault]) -> list[Problem]:
    """Say whose faults they are."""
    return [Problem(path, message, subject=subject) for path, message in faults]


def name_faults(name: str) -> Iterator[Fault]:
    """What is wrong with the name of an object."""
    fault = name_fault(name)
    if fault is not None:
        yield ("metadata", "name"), fault


def weight_faults(weight: Fraction) -> Iterator[Fault]:
    """What is wrong with a fair-share weight."""
    path = ("spec", "fairSharing", "weight")
    if weight < 0:
        yield path, f"is {weight}, but must not be negative"
    elif 0 < weight <= SMALLEST_WEIGHT:
        yield path, "is too small: a weight is 0, or larger than 1n"


def _parent_faults(field: str, parent: str | None) -> Iterator[Fault]:
    fault = None if parent is None else name_fault(parent)
    if fault is not None:
        yield ("spec", field), fault


def _group_faults(groups: tuple[ResourceGroup, ...]) -> Iterator[Fault]:
    """The form of resource groups: sizes, names, order, and each thing in one place only."""
    if len(groups) > MAXIMUM_GROUPS:
        message = f"{len(groups)} resource groups, but at most {MAXIMUM_GROUPS} are allowed"
        yield _GROUPS, message
    flavors: dict[str, FieldPath] = {}
    resources: dict[str, FieldPath] = {}
    for number, group in enumerate(groups):
        path = (*_GROUPS, number)
        yield from _count_faults((*path, "coveredResources"), len(group.covered_resources))
        yield from _count_faults((*path, "flavors"), len(group.flavors))
        for index, resource in enumerate(group.covered_resources):
            place = (*path, "coveredResources", index)
            fault = resource_fault(resource)
            if fault is not None:
                yield place, fault
            yield from _once(resources, "resource", resource, place)
        for index, flavor in enumerate(group.flavors):
            place = (*path, "flavors", index)
            yield from _flavor_faults(place, group, flavor)
            yield from _once(flavors, "flavor", flavor.name, (*place, "name"))


def _count_faults(path: FieldPath, count: int) -> Iterator[Fault]:
    if count == 0:
        yield path, "must not be empty"
    elif count > MAXIMUM_GROUP_ITEMS:
        yield path, f"{count} entries, but at most {MAXIMUM_GROUP_ITEMS} are allowed in a group"


def _once(known: dict[str, FieldPath], what: str, name: str, path: FieldPath) -> Iterator[Fault]:
    first = known.setdefault(name, path)
    if first != path:
        group = first[2]
        yield (
            path,
            f"the {what} {name} stands in resource group {group} already; it may be in one only",
        )


def _flavor_faults(path: FieldPath, group: ResourceGroup, flavor: FlavorQuotas) -> Iterator[Fault]:
    fault = name_fault(flavor.name)
    if fault is not None:
        yield (*path, "name"), fault
    covered, listed = group.covered_resources, tuple(flavor.resources)
    if len(covered) != len(listed):
        message = f"lists {len(listed)} resources, but coveredResources has {len(covered)}"
        yield (*path, "resources"), f"flavor {flavor.name} {message}; they must be the same"
        return
    for index, (wanted, name) in enumerate(zip(covered, listed, strict=True)):
        if wanted != name:
            message = f"is {name}, but coveredResources has {wanted} in this place"
            yield (*path, "resources", index, "name"), message


def _size_faults(groups: tuple[ResourceGroup, ...]) -> Iterator[Fault]:
    flavors = sum(len(group.flavors) for group in groups)
    resources = sum(len(group.covered_resources) for group in groups)
    for count, what in ((flavors, "flavors"), (resources, "covered resources")):
        if count > MAXIMUM_ITEMS:
            yield (
                _GROUPS,
                f"{count} {what} over all groups, but at most {MAXIMUM_ITEMS} are allowed",
            )
    for number, group in enumerate(groups):
        count = len(group.flavors) * len(group.covered_resources)
        if count > MAXIMUM_COMBINATIONS:
            message = f"{count} pairs of flavor and resource, but at most {MAXIMUM_COMBINATIONS}"
            yield (*_GROUPS, number), f"{message} are allowed in a group"


def _quotas(groups: tuple[ResourceGroup, ...]) -> Iterator[tuple[FieldPath, str, Quota]]:
    for number, group in enumerate(groups):
        for position, flavor in enumerate(group.flavors):
            for index, (resource, quota) in enumerate(flavor.resources.items()):
                place = (*_GROUPS, number, "flavors", position, "resources", index)
                yield place, resource, quota


def _quota_faults(
    groups: tuple[ResourceGroup, ...], parent: str | None, parent_field: str
) -> Iterator[Fault]:
    """Amounts are not negative; without a parent there is no one to borrow from or lend to."""
    for path, resource, quota in _quotas(groups):
        for field, amount in (
            ("nominalQuota", quota.nominal),
            ("borrowingLimit", quota.borrowing_limit),
            ("lendingLimit", quota.lending_limit),
        ):
            if amount is not None and amount < 0:
                written = write_amount(resource, amount)
                yield (*path, field), f"is {written}, but must not be negative"
        if parent is not None:
            continue
        if quota.borrowing_limit:
            written = write_amount(resource, quota.borrowing_limit)
            message = f"is {written}, but without {parent_field} there is nothing to borrow from"
            yield (*path, "borrowingLimit"), f"{message}; leave it out or say 0"
        if quota.lending_limit is not None:
            written = write_amount(resource, quota.lending_limit)
            message = f"is {written}, but without {parent_field} there is nothing to lend to"
            yield (*path, "lendingLimit"), f"{message}; leave it out"


def _lending_faults(groups: tuple[ResourceGroup, ...]) -> Iterator[Fault]:
    """A queue can lend no more than it has; a cohort lends what its subtree has."""
    for path, resource, quota in _quotas(groups):
        if quota.lending_limit is not None and quota.lending_limit > quota.nominal:
            limit = write_amount(resource, quota.lending_limit)
            nominal = write_amount(resource, quota.nominal)
            message = f"is {limit}, but must be at most the nominalQuota, {nominal}"
            yield (*path, "lendingLimit"), message


def _rule_faults(rules: AdmissionRules) -> Iterator[Fault]:
    preemption, fungibility = rules.preemption or Preemption(), rules.fungibility
    never = ReclaimWithinCohort.NEVER
    policy = preemption.borrow_within_cohort
    if preemption.reclaim_within_cohort is never and policy is not BorrowWithinCohort.NEVER:
        path = ("spec", "preemption", "borrowWithinCohort", "policy")
        yield path, f"is {policy}, but must be Never while reclaimWithinCohort is Never"
    searches = (fungibility.when_can_borrow, fungibility.when_can_preempt)
    if fungibility.preference is not None and set(searches) != {FlavorSearch.TRY_NEXT_FLAVOR}:
        path = ("spec", "flavorFungibility", "preference")
        message = "needs both whenCanBorrow and whenCanPreempt to be TryNextFlavor"
        yield path, f"{fungibility.preference} {message}"
