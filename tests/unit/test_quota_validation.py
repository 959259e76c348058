"""Which objects may be declared, alone and together."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bough.model.admission_rules import (
    AdmissionRules,
    BorrowWithinCohort,
    FlavorFungibility,
    FlavorPreference,
    FlavorSearch,
    Preemption,
    ReclaimWithinCohort,
)
from bough.model.cluster import Toleration
from bough.model.quota import Cohort, FlavorQuotas, Queue, Quota, ResourceGroup
from bough.model.workload import Flavor, LocalQueue
from tests.checked import (
    Told,
    check_quota,
    cluster_queue,
    cohort,
    flavor,
    local_queue,
    told,
    workload,
)
from tests.declared import FIRST, group

WRITTEN = {Cohort: cohort, Queue: cluster_queue, LocalQueue: local_queue, Flavor: flavor}


def found(declared: Cohort | Queue | LocalQueue | Flavor) -> Told:
    """The fields and messages of what is wrong with one object."""
    return told(check_quota(WRITTEN[type(declared)](declared)))


def test_good_objects_have_no_problems():
    groups = (group(Quota(4, 2, 4)), group(Quota(0, 0, 0), "cpu", "g"))
    assert found(Cohort("a.b-c", "company", groups, Fraction(0))) == []
    assert found(Queue("a", "company", groups, Fraction(1, 3))) == []


@pytest.mark.parametrize(
    ("quota", "field", "amount"),
    [
        (Quota(-4), "nominalQuota", "-4"),
        (Quota(4, -1), "borrowingLimit", "-1"),
        (Quota(4, None, -2), "lendingLimit", "-2"),
    ],
)
def test_amounts_are_not_negative(quota: Quota, field: str, amount: str):
    expected = [(f"{FIRST}.{field}", f"is {amount}, but must not be negative")]
    assert found(Cohort("a", "p", (group(quota),))) == expected
    assert found(Queue("a", "p", (group(quota),))) == expected


def test_amounts_in_messages_are_written_as_people_write_them():
    assert found(Cohort("a", "p", (group(Quota(-1500), "cpu"),))) == [
        (f"{FIRST}.nominalQuota", "is -1500m, but must not be negative")
    ]


def test_a_root_may_say_that_it_borrows_0_and_nothing_else():
    assert found(Cohort("a", None, (group(Quota(4, 0)),))) == []
    assert found(Queue("a", None, (group(Quota(4, 0)),))) == []
    assert found(Cohort("a", None, (group(Quota(4, 3)),))) == [
        (
            f"{FIRST}.borrowingLimit",
            "is 3, but without parentName there is nothing to borrow from; leave it out or say 0",
        )
    ]
    assert found(Queue("a", None, (group(Quota(4, None, 0)),))) == [
        (
            f"{FIRST}.lendingLimit",
            "is 0, but without cohortName there is nothing to lend to; leave it out",
        )
    ]


def test_a_queue_lends_no_more_than_it_has_but_a_cohort_may():
    groups = (group(Quota(4, None, 5)),)
    assert found(Cohort("a", "p", groups)) == []
    assert found(Queue("a", "p", groups)) == [
        (f"{FIRST}.lendingLimit", "is 5, but must be at most the nominalQuota, 4")
    ]


def test_flavors_and_resources_stand_in_one_group_only():
    groups = (group(Quota(1)), group(Quota(1), "gpu", "g"), group(Quota(1), "cpu", "f"))
    assert found(Cohort("a", None, groups)) == [
        (
            "spec.resourceGroups[1].coveredResources[0]",
            "the resource gpu stands in resource group 0 already; it may be in one only",
        ),
        (
            "spec.resourceGroups[2].flavors[0].name",
            "the flavor f stands in resource group 0 already; it may be in one only",
        ),
    ]


def test_there_are_at_most_16_groups():
    groups = tuple(group(Quota(1), f"r{n}", f"f{n}") for n in range(17))
    assert found(Queue("a", None, groups[:16])) == []
    assert found(Queue("a", None, groups)) == [
        ("spec.resourceGroups", "17 resource groups, but at most 16 are allowed")
    ]


@pytest.mark.parametrize("count", [0, 65])
def test_a_group_has_1_to_64_flavors(count: int):
    flavors = tuple(FlavorQuotas(f"f{n}", {"gpu": Quota()}) for n in range(count))
    message = "65 entries, but at most 64 are allowed in a group" if count else "must not be empty"
    assert found(Cohort("a", None, (ResourceGroup(("gpu",), flavors),))) == [
        ("spec.resourceGroups[0].flavors", message)
    ]


def test_a_group_covers_at_most_64_resources():
    names = tuple(f"r{n}" for n in range(65))
    quotas = FlavorQuotas("f", {name: Quota() for name in names})
    assert found(Cohort("a", None, (ResourceGroup(names, (quotas,)),))) == [
        (
            "spec.resourceGroups[0].coveredResources",
            "65 entries, but at most 64 are allowed in a group",
        )
    ]


def test_a_queue_has_at_most_256_flavors_and_resources_over_all_groups():
    flavors = tuple(
        ResourceGroup(
            (f"r{number}",),
            tuple(FlavorQuotas(f"f{number}-{n}", {f"r{number}": Quota()}) for n in range(60)),
        )
        for number in range(5)
    )
    assert found(Cohort("a", None, flavors)) == []
    assert found(Queue("a", None, flavors)) == [
        ("spec.resourceGroups", "300 flavors over all groups, but at most 256 are allowed")
    ]


def test_a_queue_s_group_has_at_most_512_pairs():
    names = tuple(f"r{n}" for n in range(27))
    flavors = tuple(FlavorQuotas(f"f{n}", dict.fromkeys(names, Quota())) for n in range(19))
    assert found(Queue("a", None, (ResourceGroup(names, flavors),))) == [
        (
            "spec.resourceGroups[0]",
            "513 pairs of flavor and resource, but at most 512 are allowed in a group",
        )
    ]


def test_a_flavor_lists_the_covered_resources_in_their_order():
    swapped = FlavorQuotas("f", {"gpu": Quota(), "cpu": Quota()})
    assert found(Cohort("a", None, (ResourceGroup(("cpu", "gpu"), (swapped,)),))) == [
        (f"{FIRST}.name", "is gpu, but coveredResources has cpu in this place"),
        (
            "spec.resourceGroups[0].flavors[0].resources[1].name",
            "is cpu, but coveredResources has gpu in this place",
        ),
    ]
    short = FlavorQuotas("f", {"cpu": Quota()})
    assert found(Cohort("a", None, (ResourceGroup(("cpu", "gpu"), (short,)),))) == [
        (
            "spec.resourceGroups[0].flavors[0].resources",
            "flavor f lists 1 resources, but coveredResources has 2; they must be the same",
        )
    ]


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (Fraction(-1, 2), "is -1/2, but must not be negative"),
        (Fraction(1, 10**9), "is too small: a weight is 0, or larger than 1n"),
    ],
)
def test_a_weight_is_0_or_large_enough(weight: Fraction, message: str):
    expected = [("spec.fairSharing.weight", message)]
    assert found(Cohort("a", weight=weight)) == expected
    assert found(Queue("a", weight=weight)) == expected
    assert found(LocalQueue("a", "n", "q", weight=weight)) == expected


@pytest.mark.parametrize("name", ["a", "a-b.c", "0", "a" * 253])
def test_good_names(name: str):
    assert found(Cohort(name)) == []


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a-", "a..b", "a/b", "ä", "a b", "a\n"])
def test_bad_names_are_refused(name: str):
    ((field, message),) = found(Cohort(name))
    assert ("metadata.name", True) == (field, "is not a valid name" in message)
    ((field, message),) = told(check_quota(workload(name)))
    assert ("spec.podSets[0].name", True) == (field, "is not a valid name" in message)


def test_long_names_are_refused_and_cut_in_the_message():
    ((_, fault),) = found(Cohort("a" * 1_000_000))
    assert fault.endswith("has 1,000,000 characters; at most 253 are allowed")
    assert len(fault) < 200
    ((_, fault),) = told(check_quota(workload("a" * 64)))
    assert "has 64 characters; at most 63" in fault


@pytest.mark.parametrize("name", ["cpu", "nvidia.com/gpu", "hugepages-2Mi", "rdma/hca_shared"])
def test_good_resources(name: str):
    assert found(Cohort("a", None, (group(Quota(1), name),))) == []


@pytest.mark.parametrize("name", ["/gpu", "a/b/", "A.com/gpu", "g pu", "x" * 64, "-a"])
def test_bad_resources_are_refused(name: str):
    ((field, message),) = found(Cohort("a", None, (group(Quota(1), name),)))
    assert "spec.resourceGroups[0].coveredResources[0]" == field
    assert "is not a valid resource" in message


def test_names_of_nodes_parents_and_flavors_are_checked():
    cohort = Cohort("A", "B", (group(Quota(), "g!", "F"),))
    assert [field for field, _ in found(cohort)] == [
        "metadata.name",
        "spec.parentName",
        "spec.resourceGroups[0].coveredResources[0]",
        "spec.resourceGroups[0].flavors[0].name",
    ]


def test_borrowing_while_reclaiming_needs_reclaiming():
    borrow = Preemption(borrow_within_cohort=BorrowWithinCohort.LOWER_PRIORITY)
    assert found(Queue("a", rules=AdmissionRules(preemption=borrow))) == [
        (
            "spec.preemption.borrowWithinCohort.policy",
            "is LowerPriority, but must be Never while reclaimWithinCohort is Never",
        )
    ]
    both = Preemption(
        reclaim_within_cohort=ReclaimWithinCohort.ANY,
        borrow_within_cohort=BorrowWithinCohort.LOWER_PRIORITY,
    )
    assert found(Queue("a", rules=AdmissionRules(preemption=both))) == []


def test_a_preference_needs_both_searches_to_go_on():
    preference = FlavorPreference.PREEMPTION_OVER_BORROWING
    on = FlavorSearch.TRY_NEXT_FLAVOR
    stops = AdmissionRules(fungibility=FlavorFungibility(preference=preference))
    goes_on = AdmissionRules(fungibility=FlavorFungibility(on, on, preference))
    assert found(Queue("a", rules=stops)) == [
        (
            "spec.flavorFungibility.preference",
            f"{preference} needs both whenCanBorrow and whenCanPreempt to be TryNextFlavor",
        )
    ]
    assert found(Queue("a", rules=goes_on)) == []


def test_a_flavor_has_at_most_8_of_each_and_a_label_for_its_topology():
    many = {f"k{n}": "v" for n in range(9)}
    assert found(Flavor("f", many, tolerations=(Toleration(),) * 9, topology="t")) == [
        ("spec.nodeLabels", "9 entries, but at most 8 are allowed"),
        ("spec.tolerations", "9 entries, but at most 8 are allowed"),
    ]
    assert found(Flavor("f", topology="t")) == [
        ("spec.topologyName", "is t, which needs at least one of nodeLabels")
    ]
