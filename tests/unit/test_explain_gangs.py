"""The certificate of a gang, reason by reason."""

from __future__ import annotations

import msgspec
import pytest

from bough.core.explain.certificate import certificate
from bough.core.explain.certificate import certificates_of_waiting as explain_waiting
from bough.model.certificate import Certificate, Holder, Ledger, Missing, Verdict
from bough.model.gang import PodState, TopologyConstraint
from bough.model.plan import PodShortage
from bough.model.policy import OSMO
from bough.model.quota import Cohort, FlavorQuotas, Queue, Quota, ResourceGroup
from bough.model.reason import WaitReason
from bough.model.shortage import Cause, DomainRoom, NodeCount
from bough.model.snapshot import Snapshot
from tests.worlds_explain import RED, ROOT, gang, quota, world

RACK = TopologyConstraint(required="rack")


def why(snapshot: Snapshot, name: str = "new") -> Certificate:
    found = certificate(snapshot, OSMO, name)
    assert found is not None
    return found


def test_a_gang_that_does_not_exist_has_no_certificate():
    assert certificate(world(gang("old", 1)), OSMO, "new") is None


def test_a_gang_over_its_quota_is_told_the_inequality_and_who_uses_the_quota():
    old = gang("old", 3, on="n0 n0 n0", owner="ada", priority=5)
    low = gang("low", 1, on="n1", preemptible=True)

    found = why(world(old, low, gang("new", 2)))

    assert (Verdict.WAITS, WaitReason.QUOTA) == (found.verdict, found.reason)
    assert "it needs 2 any/gpu and 1 is left of the quota of queue red" == found.sentence
    assert (RED, Ledger.GUARANTEED) == (found.refusal and found.refusal.node, found.ledger)
    assert Missing("gpu", 1, "any") == found.missing
    holder = Holder("old", "red", 3, guaranteed=3, owner="ada", priority=5, since_ms=1)
    assert (holder,) == found.holders


def test_a_preemptible_gang_is_told_when_everything_is_in_use_and_what_is_borrowed():
    old = gang("old", 4, on="n0 n0 n0 n0", queue="blue")
    low = gang("low", 4, on="n1 n1 n1 n1", queue="blue", preemptible=True)

    found = why(world(old, low, gang("new", 1, preemptible=True)))

    assert (WaitReason.LIMIT, Ledger.TOTAL) == (found.reason, found.ledger)
    assert "it needs 1 any/gpu and 0 are left of all that cohort root has" in found.sentence
    assert ROOT == (found.refusal and found.refusal.node)
    assert [("low", 0, 4), ("old", 4, 0)] == [
        (each.workload, each.guaranteed, each.borrowed) for each in found.holders
    ]


def test_a_gang_at_its_limit_is_told_so():
    old = gang("old", 5, on="n0 n0 n0 n0 n1", preemptible=True)

    found = why(world(old, gang("new", 2, preemptible=True), red_limit=2))

    assert "it needs 2 any/gpu and 1 is left before queue red is at its limit" == found.sentence


def test_what_can_never_fit_is_said_to_never_fit():
    assert why(world(gang("new", 9))).sentence.endswith("it would not fit even if nothing ran")


def test_what_may_be_evicted_comes_first_and_is_counted():
    """All of the gang that borrows may be evicted, but that is not enough."""
    old = gang("old", 3, on="n0 n0 n0", queue="blue")
    low = gang("low", 3, on="n0 n1 n1", queue="blue", minimum=2, preemptible=True)

    found = why(world(old, low, gang("new", 1, gpus=3), gpus=(4, 2)))

    assert WaitReason.LIMIT == found.reason
    assert found.sentence.endswith(", and nothing that may be evicted is enough")
    assert [("low", 3, 2, 3), ("old", 3, 0, 0)] == [
        (each.workload, each.amount, each.borrowed, each.evictable) for each in found.holders
    ]


def test_a_gang_without_a_place_is_told_the_nodes_by_cause():
    old = gang("old", 2, on="n0 n1", gpus=2, queue="blue")

    found = why(world(old, gang("new", 1, gpus=4)))

    assert WaitReason.PLACE == found.reason
    assert "1 of 1 pod of new (4 gpu each) has no place: of the nodes 2 lack gpus" == found.sentence
    assert (NodeCount(Cause.RESOURCE, 2, "gpus"),) == found.lacks[0].nodes
    assert Missing("gpus", 4) == found.missing
    assert [("old", 4)] == [(each.workload, each.amount) for each in found.holders]


def test_a_gang_that_fits_no_domain_is_told_the_best_one_and_what_it_lacks():
    old = gang("old", 1, on="n0", queue="blue")

    found = why(world(old, gang("new", 4, constraint=RACK), gpus=(4, 2)))

    assert (
        "4 pods of new (1 gpu each) must be in one rack; the best of 2, r0, has room for 3: 1 short"
        == found.sentence
    )
    together = found.lacks[0].together
    assert together is not None
    assert (DomainRoom("r0", 3), DomainRoom("r1", 2)) == together.best


def test_a_gang_whose_topology_is_unknown_is_told_which_there_are():
    found = why(world(gang("new", 1, constraint=TopologyConstraint(required="hall"))))

    assert ("new names hall, which there is not; known are rack",) == found.unresolved
    assert found.unresolved[0] == found.sentence


def test_a_gang_that_lacks_pods_is_told_by_how_many():
    found = why(world(gang("new", 2, minimum=3)))

    assert WaitReason.PODS == found.reason
    assert "new needs 3 pods and there are 2: 1 short" == found.sentence
    assert (PodShortage("new", 3, 2),) == found.shortages


def test_a_gang_whose_pods_are_all_gated_waits_for_them():
    new = gang("new", 2)
    gated = tuple(msgspec.structs.replace(pod, state=PodState.GATED) for pod in new.pods)

    found = why(world(msgspec.structs.replace(new, pods=gated)))

    assert (Verdict.WAITS, WaitReason.PODS) == (found.verdict, found.reason)
    assert "new needs 2 pods and there are 0: 2 short" == found.sentence


def test_a_gang_behind_another_is_told_who_is_first():
    old = gang("old", 3, on="n0 n0 n0")

    found = why(world(old, gang("first", 2), gang("new", 1, submitted_ms=1)))

    assert (WaitReason.BEHIND, "first") == (found.reason, found.head)
    assert "first is first in queue red and waits for quota" == found.sentence


def test_a_gang_of_a_stopped_tree_is_told_the_cycle():
    tangled = (Cohort("root", "above"), Cohort("above", "root"))

    found = why(world(gang("new", 1), cohorts=tangled))

    assert WaitReason.TANGLED == found.reason
    assert {"root", "above"} == {*found.cycle}
    assert "its cohorts form a cycle" in found.sentence


@pytest.mark.parametrize(
    ("queue", "sentence"),
    [
        ("green", "queue green does not exist"),
        ("root", "root is a cohort: gangs go to the queues below it"),
        ("", "it names no queue"),
    ],
)
def test_a_gang_whose_queue_takes_no_gangs_is_told_why(queue: str, sentence: str):
    found = why(world(gang("new", 1, queue=queue)))

    assert (WaitReason.QUEUE, sentence) == (found.reason, found.sentence)


def test_free_nodes_that_are_kept_for_another_are_not_said_to_be_full():
    """The first needs both halves of the large node, of which one is free."""
    old = gang("old", 1, on="n0", gpus=2, queue="blue")
    first = gang("first", 1, gpus=4)
    new = gang("new", 1, gpus=2, queue="blue", submitted_ms=1)

    found = why(world(old, first, new, gpus=(4, 1, 1, 1, 1)))

    assert (WaitReason.PLACE, ("first",)) == (found.reason, found.kept_for)
    assert "the nodes that it could use are kept for first, ahead of it" == found.sentence


def test_quota_that_is_kept_for_another_is_told():
    """The quotas are oversold: what the first is to have is no more there for the second."""
    old = gang("old", 1, on="n0", gpus=2, queue="blue")
    first = gang("first", 1, gpus=4)
    new = gang("new", 1, gpus=2, queue="blue", submitted_ms=1)

    found = why(world(old, first, new, gpus=(4, 1, 1)))

    assert (WaitReason.QUOTA, ("first",)) == (found.reason, found.kept_for)
    assert found.sentence.endswith("; some is kept for first, ahead of it")


def test_every_flavor_is_told_where_there_are_several():
    flavors = tuple(
        FlavorQuotas(name, {"gpu": Quota(nominal)}) for name, nominal in (("big", 1), ("small", 2))
    )
    queue = Queue("red", "root", (ResourceGroup(("gpu",), flavors),))

    found = why(world(gang("new", 3), queues=(queue,), cohorts=(Cohort("root"),)))

    assert ["big", "small"] == [each.flavor for each in found.options]
    assert [2, 1] == [each.refusal.deficit for each in found.options if each.refusal]
    assert Missing("gpu", 1, "small") == found.missing


def test_who_starts_runs_or_is_nominated_does_not_wait():
    low = gang("low", 4, on="n0 n0 n0 n0", queue="blue", preemptible=True)
    more = gang("more", 4, on="n1 n1 n1 n1", queue="blue", preemptible=True)
    snapshot = world(low, more, gang("new", 2))

    nominated = why(snapshot)
    assert (Verdict.NOMINATED, ("more",)) == (nominated.verdict, nominated.waits_for)
    assert "it starts as soon as more made room for it" == nominated.sentence
    assert (Verdict.RUNS, "it has what it needs") == (
        why(snapshot, "low").verdict,
        why(snapshot, "low").sentence,
    )
    assert "it runs, and is told to end" == why(snapshot, "more").sentence
    assert Verdict.STARTS == why(world(gang("new", 2))).verdict


def test_all_that_wait_are_explained_for_the_price_of_one_cycle():
    old = gang("old", 3, on="n0 n0 n0")
    snapshot = world(
        old, gang("a", 2), gang("b", 1, submitted_ms=1), gang("c", 2, minimum=3, submitted_ms=2)
    )

    found = explain_waiting(snapshot, OSMO)

    assert {name: why(snapshot, name) for name in ("a", "b", "c")} == found


def test_quota_names_stay_apart_from_limits():
    """What is guaranteed may not borrow, whatever the limit."""
    found = why(world(gang("new", 5), red_limit=4, cohorts=(Cohort("root", None, quota(0)),)))

    assert Ledger.GUARANTEED == found.ledger
