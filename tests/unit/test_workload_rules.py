"""Rules of workloads, what they use, and how objects fit together."""

from __future__ import annotations

import pytest

from bough.core.quota import references
from bough.core.quota.references import validate
from bough.core.quota.usage import usage_of
from bough.core.quota.workload_rules import (
    validate_workload,
)
from bough.model.organisation import Organisation
from bough.model.problem import Severity
from bough.model.quota import Cohort, FlavorResource, Queue, Quota
from bough.model.workload import (
    Admission,
    Assignment,
    Flavor,
    LocalQueue,
    PodSet,
    PodTemplate,
    Workload,
    WorkloadCondition,
)
from tests.declared import found, group


def pods(name: str = "main", count: int = 2, **more: object) -> PodSet:
    return PodSet(name, count, **more)  # type: ignore[arg-type]


def workload(*pod_sets: PodSet, **more: object) -> Workload:
    return Workload("w", "n", pod_sets or (pods(),), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bad", "field", "message"),
    [
        (workload(pods(count=-1)), "spec.podSets[0].count", "is -1, but must not be negative"),
        (
            workload(pods(min_count=0)),
            "spec.podSets[0].minCount",
            "is 0, but must be positive and at most the count, 2",
        ),
        (
            workload(pods(min_count=3)),
            "spec.podSets[0].minCount",
            "is 3, but must be positive and at most the count, 2",
        ),
        (
            workload(pods(), pods()),
            "spec.podSets[1].name",
            "there are two pod sets called main",
        ),
        (
            workload(pods(template=PodTemplate({"cpu": -500}))),
            "spec.podSets[0].template.spec",
            "asks for -500m of cpu: less than none",
        ),
        (
            workload(priority_class="high"),
            "spec.priority",
            "is missing; the priority class high needs it",
        ),
        (
            workload(cluster="a", nominated_clusters=("b",)),
            "status.clusterName",
            "must not stand beside nominatedClusterNames",
        ),
        (
            workload(reclaimable_pods={"other": 1}),
            "status.reclaimablePods[0].name",
            "there is no pod set called other",
        ),
        (
            workload(reclaimable_pods={"main": 3}),
            "status.reclaimablePods[0].count",
            "is 3, but the pod set has 2 pods",
        ),
        (
            workload(admission=Admission("q", ())),
            "status.admission.podSetAssignments",
            "0 assignments for 1 pod sets; every pod set needs one",
        ),
        (
            workload(admission=Admission("q", (Assignment("x", {}),))),
            "status.admission.podSetAssignments[0].name",
            "there is no pod set called x",
        ),
        (
            workload(admission=Admission("q", (Assignment("main", {"g": "f"}, {"g": -1}),))),
            "status.admission.podSetAssignments[0].resourceUsage.g",
            "is -1, but must not be negative",
        ),
    ],
)
def test_a_bad_workload_is_refused(bad: Workload, field: str, message: str):
    assert found(validate_workload(bad)) == [(field, message)]


def test_a_workload_has_at_most_18_pod_sets():
    many = [pods(f"p{n}") for n in range(19)]
    assert found(validate_workload(workload(*many))) == [
        ("spec.podSets", "19 pod sets, but at most 18 are allowed")
    ]


def test_usage_that_is_not_counted_is_a_warning():
    admission = Admission("q", (Assignment("main", {}, {"gpu": 1}),))
    no_reservation = (WorkloadCondition("QuotaReserved", False),)
    problems = validate_workload(workload(admission=admission, conditions=no_reservation))
    assert [(each.severity, each.field) for each in problems] == [
        (Severity.WARNING, "status.admission"),
        (Severity.WARNING, "status.admission.podSetAssignments[0].resourceUsage.gpu"),
    ]


GPU = FlavorResource("f", "gpu")


def holding(**more: object) -> Workload:
    assignment = Assignment("main", {"gpu": "f"}, {"gpu": 8}, 2)
    return workload(admission=Admission("q", (assignment,)), **more)


def test_a_workload_uses_what_its_admission_says():
    assert usage_of(holding()) == {GPU: 8}


def test_a_workload_that_holds_nothing_uses_nothing():
    assert usage_of(workload()) == {}
    assert usage_of(holding(conditions=(WorkloadCondition("Finished", True),))) == {}
    assert usage_of(holding(conditions=(WorkloadCondition("QuotaReserved", False),))) == {}


def test_an_evicted_workload_uses_its_quota_until_the_reservation_is_gone():
    conditions = (WorkloadCondition("QuotaReserved", True), WorkloadCondition("Evicted", True))
    assert usage_of(holding(conditions=conditions)) == {GPU: 8}


def test_pods_that_are_done_give_their_part_back():
    assert usage_of(holding(reclaimable_pods={"main": 1})) == {GPU: 4}
    assert usage_of(holding(reclaimable_pods={"main": 2})) == {GPU: 0}


def test_usage_that_is_not_written_is_computed_from_the_pods():
    template = PodTemplate({"gpu": 3})
    flavors = {"gpu": "f", "pods": "f"}
    admission = Admission("q", (Assignment("main", flavors),))
    admitted = workload(pods(template=template), admission=admission)
    assert usage_of(admitted) == {GPU: 6, FlavorResource("f", "pods"): 2}


def test_a_partly_admitted_workload_is_counted_as_admitted():
    template = PodTemplate({"gpu": 3})
    admission = Admission("q", (Assignment("main", {"gpu": "f"}, count=1),))
    admitted = workload(pods(template=template), admission=admission)
    assert usage_of(admitted) == {GPU: 3}


def test_pod_sets_with_the_same_flavor_add_up():
    sets = (pods("a", 1), pods("b", 1))
    admission = Admission(
        "q", (Assignment("a", {"gpu": "f"}, {"gpu": 1}), Assignment("b", {"gpu": "f"}, {"gpu": 2}))
    )
    assert usage_of(workload(*sets, admission=admission)) == {GPU: 3}


def together(organisation: Organisation) -> list[tuple[str, str, str, Severity]]:
    return [
        (each.subject, each.field, each.message, each.severity) for each in validate(organisation)
    ]


def test_objects_that_fit_together_have_no_problems():
    organisation = Organisation(
        cohorts=(Cohort("a", "implicit"),),
        queues=(Queue("q", "a", (group(Quota(8)),)),),
        flavors=(Flavor("f"),),
        local_queues=(LocalQueue("main", "n", "q"),),
        workloads=(holding(local_queue="main"),),
    )
    assert together(organisation) == []


def test_a_local_queue_of_an_unknown_queue_is_an_error_and_without_any_queue_a_warning():
    doors = (LocalQueue("main", "n", "q"),)
    fault = ("LocalQueue/n/main", "spec.clusterQueue", "there is no ClusterQueue called q")
    assert [(*fault, Severity.WARNING)] == together(Organisation(local_queues=doors))
    queues = (Queue("p", None, (group(Quota(8)),)),)
    assert [(*fault, Severity.ERROR)] == together(Organisation(queues=queues, local_queues=doors))


def test_a_workload_of_an_unknown_local_queue_is_a_warning():
    assert together(Organisation(workloads=(workload(local_queue="x"), ))) == [
        (
            "Workload/n/w",
            "spec.queueName",
            "there is no LocalQueue called x in the namespace n",
            Severity.WARNING,
        )
    ]  # fmt: skip
    assert together(Organisation(workloads=(workload(),))) == [
        (
            "Workload/n/w",
            "spec.queueName",
            "is missing; the workload waits in no queue",
            Severity.WARNING,
        )
    ]


def test_usage_in_an_unknown_queue_is_an_error():
    assert together(Organisation(workloads=(holding(),))) == [
        (
            "Workload/n/w",
            "status.admission.clusterQueue",
            "there is no ClusterQueue called q; the usage counts nowhere",
            Severity.ERROR,
        )
    ]


def test_usage_of_what_the_queue_does_not_list_is_a_warning():
    queue = Queue("q", None, (group(Quota(8), "cpu"),))
    assert together(Organisation(queues=(queue,), workloads=(holding(),))) == [
        (
            "Workload/n/w",
            "status.admission.podSetAssignments[0].flavors.gpu",
            "the queue q does not list gpu on f",
            Severity.WARNING,
        )
    ]


def test_an_unknown_flavor_is_a_warning_where_flavors_are_declared():
    queue = Queue("q", None, (group(Quota(8)),))
    assert together(Organisation(queues=(queue,))) == []
    assert together(Organisation(queues=(queue,), flavors=(Flavor("other"),))) == [
        (
            "ClusterQueue/q",
            "spec.resourceGroups[0].flavors[0].name",
            "there is no ResourceFlavor called f",
            Severity.WARNING,
        )
    ]


def chain(length: int) -> tuple[Cohort, ...]:
    return tuple(Cohort(f"c{n}", f"c{n + 1}" if n + 1 < length else None) for n in range(length))


def test_a_tree_is_at_most_64_cohorts_deep():
    assert together(Organisation(cohorts=chain(64))) == []
    assert together(Organisation(cohorts=chain(65))) == [
        (
            "Cohort/c0",
            "spec.parentName",
            "stands below more than 63 other cohorts, the limit",
            Severity.ERROR,
        )
    ]


def test_a_very_deep_tree_is_refused_and_not_walked_again_and_again():
    assert len(together(Organisation(cohorts=chain(20_000)))) == 20_000 - 64


def test_a_ring_of_more_than_64_cohorts_is_refused():
    ring = tuple(Cohort(f"c{n}", f"c{(n + 1) % 65}") for n in range(65))
    assert {severity for *_, severity in together(Organisation(cohorts=ring))} == {Severity.ERROR}


def test_a_cycle_is_a_warning_for_its_cohorts_and_not_for_those_below():
    cohorts = (Cohort("b", "a"), Cohort("a", "b"), Cohort("below", "a"), Cohort("self", "self"))
    text = "its cohorts form a cycle: {}; nothing new is admitted below them"
    assert together(Organisation(cohorts=cohorts)) == [
        ("Cohort/b", "spec.parentName", text.format("a → b → a"), Severity.WARNING),
        ("Cohort/a", "spec.parentName", text.format("a → b → a"), Severity.WARNING),
        ("Cohort/self", "spec.parentName", text.format("self → self"), Severity.WARNING),
    ]


def test_a_tree_has_a_largest_size(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(references, "MAXIMUM_NODES", 2)
    queues = (Queue("a"), Queue("b"))
    assert together(Organisation(queues=queues)) == []
    assert together(Organisation(cohorts=(Cohort("c"),), queues=queues)) == [
        ("", "", "3 cohorts and queues, but at most 2 are allowed", Severity.ERROR)
    ]
