"""Why a workload is evicted: for what, by which rule, at which level, by which inequality."""

from __future__ import annotations

import msgspec

from bough.core.cycle.plan import plan
from bough.core.explain.evictions import eviction_certificate
from bough.model.admission_rules import (
    AdmissionRules,
    Preemption,
    PreemptionWithinQueue,
    ReclaimWithinCohort,
    StopPolicy,
)
from bough.model.certificate import EvictionCertificate, Excess
from bough.model.plan import EvictionRule
from bough.model.policy import KUEUE, OSMO, Policy
from bough.model.snapshot import Snapshot
from tests.worlds_explain import BLUE, GPU, RED, ROOT, gang, held, kueue_world, workload, world


def why(snapshot: Snapshot, name: str, policy: Policy = OSMO) -> EvictionCertificate:
    found = eviction_certificate(snapshot, policy, name)
    assert found is not None
    return found


def test_who_is_not_evicted_has_no_certificate():
    assert eviction_certificate(world(gang("new", 1)), OSMO, "new") is None


def test_a_reclaim_names_the_preemptor_the_level_and_the_excess():
    low = gang("low", 6, on="n0 n0 n0 n0 n1 n1", queue="blue", preemptible=True, owner="bob")

    found = why(world(low, gang("new", 3, owner="ada")), "low")

    assert (EvictionRule.RECLAIM, ROOT) == (found.rule, found.level)
    assert ("new", "red", "ada") == (
        found.preemptor,
        found.preemptor_queue,
        found.preemptor_owner,
    )
    assert ("blue", "bob") == (found.queue, found.owner)
    assert (Excess(BLUE, GPU, 4, 6),) == found.excesses
    assert (ROOT, 1) == (found.need and found.need.node, found.need and found.need.deficit)
    assert (
        "it ends for new of queue red, which reclaims at cohort root: "
        "queue blue used 6 of its quota of 4 any/gpu" == found.sentence
    )


def test_surplus_is_said_to_be_beyond_the_minimum():
    low = gang("low", 6, on="n0 n0 n0 n0 n1 n1", queue="blue", preemptible=True, minimum=4)

    found = why(world(low, gang("new", 3)), "low")

    assert 1 == len(found.pods)
    assert found.sentence.startswith("1 of its pods, beyond its minimum, ends for new")


def test_each_part_of_a_gang_names_the_one_that_it_ends_for():
    low = gang("low", 8, on="n0 n0 n0 n0 n1 n1 n1 n1", queue="blue", preemptible=True, minimum=4)
    both = world(low, gang("new", 2), gang("newer", 2))
    decided = plan(both, OSMO)

    found = [
        eviction_certificate(both, OSMO, "low", decided, eviction=each)
        for each in decided.evictions
    ]

    assert ["new", "newer"] == [each.preemptor for each in decided.evictions]
    assert ["new", "newer"] == [None if each is None else each.preemptor for each in found]


def test_a_preemption_compares_priorities():
    low = gang("low", 2, on="n0 n0", gpus=2, preemptible=True, priority=1)

    found = why(world(low, gang("new", 4, priority=2), gpus=(4,), red=4, blue=0), "low")

    assert (EvictionRule.PREEMPT, RED) == (found.rule, found.level)
    assert (1, 2) == (found.priority, found.preemptor_priority)
    assert (
        "it ends for new of queue red: of the two it has the lower priority, 1 < 2"
        == found.sentence
    )


def test_a_stale_gang_ends_for_no_other():
    broken = msgspec.structs.replace(gang("broken", 1, on="n0", minimum=2), stale_since_ms=0)

    found = why(world(broken, now_ms=60_000), "broken")

    assert (EvictionRule.STALE, None) == (found.rule, found.preemptor)
    assert "it ends: it has run with less than its minimum for too long" == found.sentence


# In the form of Kueue


def test_a_workload_that_borrows_is_reclaimed_from():
    rules = AdmissionRules(preemption=Preemption(reclaim_within_cohort=ReclaimWithinCohort.ANY))
    old = held(workload("old", 5), "blue")
    snapshot = kueue_world({"red": (workload("new", 4),)}, {"blue": (old,)}, rules)

    found = why(snapshot, "ns/old", KUEUE)

    assert (EvictionRule.RECLAIM, ROOT) == (found.rule, found.level)
    assert (Excess(BLUE, GPU, 4, 5),) == found.excesses
    assert ("ns/new", 1) == (found.preemptor, found.need and found.need.deficit)


def test_a_workload_of_lower_priority_is_preempted():
    within = PreemptionWithinQueue.LOWER_PRIORITY
    rules = AdmissionRules(preemption=Preemption(within_queue=within))
    old = held(workload("old", 6, priority=1), "red")
    snapshot = kueue_world({"red": (workload("new", 4, priority=2),)}, {"red": (old,)}, rules)

    found = why(snapshot, "ns/old", KUEUE)

    assert (EvictionRule.PREEMPT, RED, 1, 2) == (
        found.rule,
        found.level,
        found.priority,
        found.preemptor_priority,
    )


def test_a_drained_queue_is_named():
    rules = AdmissionRules(stop=StopPolicy.HOLD_AND_DRAIN)
    old = held(workload("old", 1), "red")

    found = why(kueue_world({}, {"red": (old,)}, rules), "ns/old", KUEUE)

    assert "it ends: queue red is stopped and drained" == found.sentence
