"""The certificate of a workload in the form of Kueue, as far as quota is concerned."""

from __future__ import annotations

import msgspec
import pytest

from bough.core.explain.certificate import certificate
from bough.core.explain.kueue_turns import find_turn
from bough.model.admission_rules import (
    AdmissionRules,
    Preemption,
    QueueingStrategy,
    ReclaimWithinCohort,
    StopPolicy,
)
from bough.model.certificate import Certificate, Ledger, Missing, Verdict
from bough.model.policy import KUEUE
from bough.model.quota import Cohort, FlavorQuotas, Queue, Quota, ResourceGroup
from bough.model.reason import WaitReason
from bough.model.snapshot import Snapshot
from bough.model.workload import Flavor, LocalQueue, PodSet, PodTemplate, Workload
from tests.worlds_explain import RED, ROOT, held, kueue_world, workload


def why(snapshot: Snapshot, name: str = "ns/new") -> Certificate:
    found = certificate(snapshot, KUEUE, name)
    assert found is not None
    return found


def test_a_workload_that_does_not_exist_has_no_certificate():
    assert certificate(kueue_world({}), KUEUE, "ns/new") is None


def test_who_holds_quota_runs_and_who_gets_it_starts():
    old = held(workload("old", 1), "red")
    snapshot = kueue_world({"red": (workload("new", 1),)}, {"red": (old,)})

    assert Verdict.RUNS == why(snapshot, "ns/old").verdict
    assert Verdict.STARTS == why(snapshot).verdict


def test_a_workload_over_its_limit_is_told_the_inequality_and_who_holds_the_quota():
    old = held(workload("old", 4, priority=3), "red", since_ms=7)

    found = why(kueue_world({"red": (workload("new", 3),)}, {"red": (old,)}))

    assert (WaitReason.LIMIT, Ledger.TOTAL) == (found.reason, found.ledger)
    assert "it needs 3 any/gpu and 2 are left before queue red is at its limit" == found.sentence
    assert (RED, Missing("gpu", 1, "any")) == (found.refusal and found.refusal.node, found.missing)
    (holder,) = found.holders
    assert ("ns/old", 4, 0, 0, 7) == (
        holder.workload,
        holder.amount,
        holder.borrowed,
        holder.evictable,
        holder.since_ms,
    )


def test_a_workload_is_told_who_borrows_what_it_owns_and_whether_it_may_take_it_back():
    rules = AdmissionRules(
        preemption=Preemption(reclaim_within_cohort=ReclaimWithinCohort.LOWER_PRIORITY)
    )
    older = held(workload("older", 5, priority=9), "blue", since_ms=1)
    newer = held(workload("newer", 2, priority=-1), "blue", since_ms=2)

    found = why(kueue_world({"red": (workload("new", 4),)}, {"blue": (older, newer)}, rules))

    assert ROOT == (found.refusal and found.refusal.node)
    assert [("ns/newer", 2, 2), ("ns/older", 1, 0)] == [
        (each.workload, each.borrowed, each.evictable) for each in found.holders
    ]


def test_a_workload_behind_a_strict_head_is_told_who_goes_first():
    rules = AdmissionRules(queueing=QueueingStrategy.STRICT_FIFO)
    line = (workload("first", 9, created_ms=1), workload("new", 1, created_ms=2))

    found = why(kueue_world({"red": line}, rules=rules))

    assert (WaitReason.BEHIND, "ns/first") == (found.reason, found.head)


def test_a_workload_behind_another_that_is_set_aside_has_its_own_turn():
    line = (workload("first", 9, created_ms=1), workload("new", 1, created_ms=2))

    assert Verdict.STARTS == why(kueue_world({"red": line})).verdict


def test_a_workload_like_one_that_was_set_aside_waits_for_the_same():
    line = (workload("first", 9, created_ms=1), workload("new", 9, created_ms=2))

    found = why(kueue_world({"red": line}))

    assert WaitReason.TOO_LARGE == found.reason
    assert found.sentence.endswith("it would not fit even if nothing ran")


def test_what_others_of_the_same_cycle_got_is_counted():
    waiting = {
        "red": (workload("new", 6, created_ms=2),),
        "blue": (workload("first", 4, created_ms=1),),
    }

    found = why(kueue_world(waiting))

    assert (ROOT, 2) == (
        found.refusal and found.refusal.node,
        found.missing and found.missing.amount,
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"active": False}, "it is not active"),
        ({"requeue_at_ms": 5_000}, "it is held back after an eviction, for 5 s more"),
    ],
)
def test_a_workload_that_is_not_in_line_is_told_why(changes: dict[str, object], sentence: str):
    new: Workload = msgspec.structs.replace(workload("new", 1), **changes)

    assert sentence == why(kueue_world({"red": (new,)})).sentence


def test_a_stopped_queue_and_a_stopped_door_are_named():
    held_back = AdmissionRules(stop=StopPolicy.HOLD)
    new = workload("new", 1, local_queue="door")
    door = LocalQueue("door", "ns", "red", StopPolicy.HOLD)

    assert "queue red is stopped: its stopPolicy is Hold" == (
        why(kueue_world({"red": (new,)}, rules=held_back)).sentence
    )
    assert "local queue door is stopped: its stopPolicy is Hold" == (
        why(kueue_world({"red": (new,)}, local_queues=(door,))).sentence
    )


def test_a_stopped_tree_and_a_missing_queue_are_named():
    tangled = (Cohort("root", "above"), Cohort("above", "root"))

    found = why(kueue_world({"red": (workload("new", 1),)}, cohorts=tangled))
    assert {"root", "above"} == {*found.cycle}
    assert "its cohorts form a cycle" in found.sentence
    assert (
        "queue green does not exist" == why(kueue_world({"green": (workload("new", 1),)})).sentence
    )


def test_a_flavor_that_does_not_suit_is_told():
    flavor = Flavor("any", {"type": "a100"})
    new = workload("new", 1, selector={"type": "h100"})

    found = why(kueue_world({"red": (new,)}, flavors=(flavor,)))

    assert WaitReason.FLAVOR == found.reason
    assert ["flavor any has type=a100, not h100"] == [each.unsuitable for each in found.options]


def test_resources_are_compared_by_the_part_that_lacks_and_not_by_their_units():
    """Of 8 GPUs half is lacking, of 9000 thousandths of a core a ninth."""
    groups = tuple(
        ResourceGroup((name,), (FlavorQuotas("any", {name: Quota(nominal, 0)}),))
        for name, nominal in (("cpu", 8_000), ("gpu", 4))
    )
    queue = Queue("red", "root", groups)
    template = PodTemplate({"cpu": 9_000, "gpu": 8})
    new = Workload("new", "ns", (PodSet("main", 1, template),))

    found = why(kueue_world({"red": (new,)}, queues=(queue,)))

    assert Missing("gpu", 4, "any") == found.missing


def test_following_a_line_ends_at_its_bound():
    line = tuple(workload(f"w{at}", 9 + at, created_ms=at) for at in range(9))
    turn = find_turn(kueue_world({"red": line}), KUEUE, "ns/w8", 3)

    assert 3 == turn.plans
