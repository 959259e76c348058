"""Fair sharing: which head is decided first, and which queue gives back, by shares of the tree."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from bough.core.cycle.plan import plan
from bough.core.cycle.waiting_lines import Lines
from bough.core.explain.certificate import certificate, certificates_of_waiting
from bough.core.explain.evictions import eviction_certificate
from bough.core.explain.remedies import remedies
from bough.core.gang.from_workload import gang_of_workload
from bough.model.plan import Eviction, EvictionRule, Plan
from bough.model.policy import KUEUE, KUEUE_FAIR, Heads, OrderKey, Policy, ShareRule
from bough.model.quota import NodeKind, TreeNode
from bough.model.remedy import RemedyKind, Weigh
from bough.model.snapshot import Progress, Snapshot
from bough.model.workload import Assignment
from tests.cycle_kueue import (
    admitted,
    cohort,
    cycle,
    evicted,
    pods,
    queue,
    running,
    snapshot,
    waiting,
)


def by(*rules: ShareRule) -> Policy:
    return msgspec.structs.replace(KUEUE_FAIR, take_by_share=rules)


# Which head goes first


@pytest.mark.parametrize(("weight", "first"), [(1, "b1"), (4, "a1")])
def test_the_queue_whose_share_would_be_smaller_for_its_weight_goes_first(weight, first) -> None:
    decided = cycle(
        [queue("a", "c", f=0, weight=weight), queue("b", "c", f=0)],
        [cohort("c", f=8)],
        policy=KUEUE_FAIR,
        holds=[running("a0", "a", 4), running("b0", "b", 3)],
        waits={"a": [waiting("a1", created_ms=1)], "b": [waiting("b1", created_ms=2)]},
    )
    assert [first] == admitted(decided)


def test_without_shares_the_older_one_goes_first() -> None:
    decided = cycle(
        [queue("a", "c", f=0), queue("b", "c", f=0)],
        [cohort("c", f=8)],
        policy=KUEUE,
        holds=[running("a0", "a", 4), running("b0", "b", 3)],
        waits={"a": [waiting("a1", created_ms=1)], "b": [waiting("b1", created_ms=2)]},
    )
    assert ["a1"] == admitted(decided)


def test_shares_are_compared_at_each_level_of_the_tree() -> None:
    """The team as a whole has more, though the queue that is next in it has nothing."""
    decided = cycle(
        [queue("a", "team", f=0), queue("a2", "team", f=0), queue("b", "root", f=0)],
        [cohort("root", f=10), cohort("team", "root")],
        policy=KUEUE_FAIR,
        holds=[running("a0", "a", 5), running("b0", "b", 4)],
        waits={"a2": [waiting("a21", created_ms=1)], "b": [waiting("b1", created_ms=2)]},
    )
    assert ["b1"] == admitted(decided)


def test_what_stays_within_its_quota_goes_before_a_smaller_share() -> None:
    """Queue a borrows another flavor; of what it asks for it has its own."""
    queues = [queue("a", "c", f=1, g=0), queue("b", "c", f=0, g=0)]
    fields = {
        "holds": [running("a0", "a", 6, flavor="g")],
        "waits": {"a": [waiting("a1", created_ms=2)], "b": [waiting("b1", created_ms=1)]},
    }
    by_share = (OrderKey.SHARE, OrderKey.PRIORITY, OrderKey.TIMESTAMP)
    plain = msgspec.structs.replace(KUEUE_FAIR, order=by_share)

    cohorts = [cohort("c", g=6)]
    assert ["a1"] == admitted(cycle(queues, cohorts, policy=KUEUE_FAIR, **fields))
    assert ["b1"] == admitted(cycle(queues, cohorts, policy=plain, **fields))


def test_what_was_decided_before_counts_for_the_next() -> None:
    """After its first, queue a has as much as b: now the older one of the two others goes."""
    everything = msgspec.structs.replace(KUEUE_FAIR, heads=Heads.ALL)
    decided = cycle(
        [queue("a", "c", f=0), queue("b", "c", f=0)],
        [cohort("c", f=4)],
        policy=everything,
        waits={
            "a": [waiting(f"a{n}", created_ms=n) for n in range(4)],
            "b": [waiting(f"b{n}", created_ms=9 + n) for n in range(4)],
        },
    )
    assert ["a0", "b0", "a1", "b1"] == admitted(decided)


def test_a_queue_without_weight_goes_last_and_gives_first() -> None:
    queues = [
        queue("a", "c", f=0, weight=0),
        queue("b", "c", f=0),
        queue("d", "c", f=1, reclaim="Any"),
    ]
    waits = {"a": [waiting("a1", created_ms=1)], "b": [waiting("b1", created_ms=2)]}
    first = cycle(queues, policy=KUEUE_FAIR, waits=waits)
    taken = cycle(
        queues,
        [cohort("c", f=2)],
        policy=KUEUE_FAIR,
        holds=[running("a0", "a"), running("b0", "b", 2)],
        waits={"d": [waiting("d1")]},
    )

    assert ["b1"] == admitted(first)
    assert {"a0": "reclaim"} == evicted(taken)


# Which queue gives back


def unequal(policy: Policy, *, weight: Fraction | int = 1, gpu: int = 1) -> Plan:
    """Queue a has all four GPUs of the cohort, and b wants some."""
    return cycle(
        [queue("a", "c", f=0), queue("b", "c", f=0, reclaim="Any", weight=weight)],
        [cohort("c", f=4)],
        policy=policy,
        holds=[running(f"a{n}", "a", since_ms=n) for n in range(4)],
        waits={"b": [waiting("b1", gpu)]},
    )


def test_the_queue_with_the_larger_share_gives_its_newest() -> None:
    assert {"a3": "fair_share"} == evicted(unequal(KUEUE_FAIR))
    assert {} == evicted(unequal(KUEUE))


@pytest.mark.parametrize(("gpu", "taken"), [(1, 1), (2, 2), (3, 0)])
def test_no_more_is_taken_than_leaves_both_sides_equal(gpu: int, taken: int) -> None:
    assert taken == len(evicted(unequal(by(ShareRule.FINAL_SHARE), gpu=gpu)))


@pytest.mark.parametrize(
    ("rules", "taken"),
    [
        ((ShareRule.FINAL_SHARE,), []),
        ((ShareRule.INITIAL_SHARE,), ["a0"]),
        ((ShareRule.FINAL_SHARE, ShareRule.INITIAL_SHARE), ["a0"]),
        ((ShareRule.WITHIN_QUOTA,), []),
    ],
)
def test_by_the_share_before_it_a_queue_gives_what_leaves_it_with_less(rules, taken) -> None:
    decided = cycle(
        [queue("a", "c", f=0), queue("b", "c", f=0, reclaim="Any")],
        [cohort("c", f=4)],
        policy=by(*rules),
        holds=[running("a0", "a", 4)],
        waits={"b": [waiting("b1")]},
    )
    assert taken == [*evicted(decided)]


def test_the_share_counts_for_the_weight() -> None:
    final = by(ShareRule.FINAL_SHARE)

    assert 3 == len(evicted(unequal(final, weight=3, gpu=3)))
    assert 0 == len(evicted(unequal(final, weight=Fraction(1, 3), gpu=2)))
    assert 0 == len(evicted(unequal(final, weight=0)))


def test_a_queue_within_its_quota_takes_whatever_the_shares_are() -> None:
    queues = [queue("a", "c", f=3), queue("b", "c", f=1, reclaim="Any", weight=0)]
    fields = {"holds": [running("a0", "a", 4)], "waits": {"b": [waiting("b1")]}}

    assert {"a0": "reclaim"} == evicted(cycle(queues, policy=KUEUE_FAIR, **fields))
    # By shares it is not let: without a0 queue a has none, and so has b: equal is enough.
    assert {"a0": "fair_share"} == evicted(
        cycle(queues, policy=by(ShareRule.FINAL_SHARE), **fields)
    )


def test_the_sides_below_the_common_cohort_are_compared() -> None:
    """Queue a has less than b, but b's team has nothing beside a's team."""
    decided = cycle(
        [
            queue("a", "team-a", f=0),
            queue("a2", "team-a", f=0),
            queue("b", "team-b", f=0, reclaim="Any"),
        ],
        [cohort("root", f=6), cohort("team-a", "root"), cohort("team-b", "root")],
        policy=KUEUE_FAIR,
        holds=[running("a0", "a", 2), *(running(f"x{n}", "a2", since_ms=n) for n in range(4))],
        waits={"b": [waiting("b1", 3)]},
    )

    # Two of a2, which has most of its team; then both have two, and the newest of all goes.
    assert ["x3", "x2", "x1"] == [*evicted(decided)]
    assert {TreeNode(NodeKind.COHORT, "root")} == {each.level for each in decided.evictions}


def test_the_certificate_of_an_eviction_names_both_shares() -> None:
    world = snapshot(
        [queue("a", "c", f=0), queue("b", "c", f=0, reclaim="Any", weight=2)],
        [cohort("c", f=4)],
        holds=[*(running(f"a{n}", "a", since_ms=n) for n in range(3)), running("b0", "b")],
        waits={"b": [waiting("b1")]},
    )
    found = eviction_certificate(world, KUEUE_FAIR, "ns/a2")

    assert found is not None
    assert "fair_share" == found.rule
    assert [("a", "0.75", "1"), ("b", "0.125", "2")] == [
        (each.node.name, each.share, each.weight) for each in found.shares
    ]
    assert (
        "it ends for ns/b1 of queue b, which has less: the share of queue a is 0.75, "
        "that of queue b is 0.125 for its weight of 2"
    ) == found.sentence


# It comes to rest


def test_a_gang_takes_nothing_from_those_that_it_gave_way_to() -> None:
    queues = [queue("a", "c", f=0), queue("b", "c", f=0, reclaim="Any")]
    fields = {
        "holds": [running(f"a{n}", "a", since_ms=n) for n in range(4)],
        "waits": {"b": [waiting("b1")]},
    }
    gave_way = {"ns/b1": Progress(gave_way_to=("ns/a3", "ns/a2"))}
    cohorts = [cohort("c", f=4)]
    plain = msgspec.structs.replace(KUEUE_FAIR, gives_way_once=False)

    def taken(policy: Policy, progress: dict[str, Progress]) -> list[str]:
        world = msgspec.structs.replace(snapshot(queues, cohorts, **fields), progress=progress)
        return [each.workload for each in plan(world, policy).evictions]

    assert ["ns/a3"] == taken(KUEUE_FAIR, {})
    assert ["ns/a1"] == taken(KUEUE_FAIR, gave_way)
    assert ["ns/a3"] == taken(plain, gave_way)


def test_what_gave_way_is_remembered_with_those_that_its_taker_gave_way_to() -> None:
    lines = Lines(KUEUE_FAIR, (), [queue("a", None, f=1)])
    lines.add("a", gang_of_workload(waiting("x"), "a"))
    lines.settle(Plan(evictions=(_ended("ns/x", "ns/y"), _ended("ns/y", "ns/z"))))

    assert ("ns/y", "ns/z") == lines.progress["ns/x"].gave_way_to
    lines.forget("ns/x")
    assert {} == lines.progress


def test_without_the_field_nothing_is_remembered_of_who_gave_way() -> None:
    lines = Lines(KUEUE, (), [queue("a", None, f=1)])
    lines.add("a", gang_of_workload(waiting("x"), "a"))
    lines.settle(Plan(evictions=(_ended("ns/x", "ns/y"),)))

    assert {} == lines.progress


def _ended(name: str, preemptor: str) -> Eviction:
    return Eviction(name, EvictionRule.FAIR_SHARE, preemptor=preemptor)


def test_a_gang_gets_the_flavor_and_the_number_of_pods_that_it_was_promised() -> None:
    """Though there is room for all of its pods, and on the first flavor."""
    world = snapshot(
        [queue("a", "c", f=4, g=4)],
        waits={"a": [waiting("a1", pod_sets=(pods(4, 1, gpu=1),))]},
    )
    promised = (Assignment("main", {"gpu": "g"}, {"gpu": 2}, 2),)
    known = Progress(nominated=True, promised=promised)
    world = msgspec.structs.replace(world, progress={"ns/a1": known})

    assert [promised] == [each.admission.assignments for each in plan(world, KUEUE_FAIR).admits]
    all_of_it = (Assignment("main", {"gpu": "f"}, {"gpu": 4}, 4),)
    assert [all_of_it] == [each.admission.assignments for each in plan(world, KUEUE).admits]


def test_a_promise_that_cannot_be_kept_is_forgotten() -> None:
    world = snapshot([queue("a", "c", f=4)], waits={"a": [waiting("a1")]})
    gone = (Assignment("main", {"gpu": "gone"}, {"gpu": 1}, 1),)
    other = (Assignment("renamed", {"gpu": "f"}, {"gpu": 1}, 1),)
    for promised in (gone, other):
        known = Progress(nominated=True, promised=promised)
        world = msgspec.structs.replace(world, progress={"ns/a1": known})
        assert ["a1"] == admitted(plan(world, KUEUE_FAIR))


# What would help


def _starved(weight: Fraction | int = 1) -> Snapshot:
    """Queue a has all four GPUs; b wants three, more than is fair."""
    return snapshot(
        [queue("a", "c", f=0), queue("b", "c", f=0, reclaim="Any", weight=weight)],
        [cohort("c", f=4)],
        holds=[running(f"a{n}", "a", since_ms=n) for n in range(4)],
        waits={"b": [waiting("b1", 3)]},
    )


def test_the_least_weight_that_works_is_a_remedy() -> None:
    found = remedies(_starved(), KUEUE_FAIR, "ns/b1").found
    (remedy,) = (each for each in found if each.kind is RemedyKind.RAISE_WEIGHT)

    assert "raise the weight of queue b from 1 to 2" == remedy.sentence
    assert (Weigh(TreeNode(NodeKind.QUEUE, "b"), 2),) == remedy.steps
    assert 0 == len(evicted(plan(_starved(), KUEUE_FAIR)))
    assert 3 == len(evicted(plan(_starved(2), KUEUE_FAIR)))


def test_a_weight_is_no_remedy_where_weights_decide_nothing() -> None:
    kinds = [each.kind for each in remedies(_starved(), KUEUE, "ns/b1").found]

    assert RemedyKind.RAISE_WEIGHT not in kinds
    assert RemedyKind.RAISE_QUOTA in kinds


def test_the_weight_of_a_cohort_above_is_a_remedy_where_its_queues_is_none() -> None:
    world = snapshot(
        [queue("a", "c", f=0), queue("b", "team", f=0, reclaim="Any")],
        [cohort("c", f=4), cohort("team", "c", weight=Fraction(1, 2))],
        holds=[running(f"a{n}", "a", since_ms=n) for n in range(4)],
        waits={"b": [waiting("b1", 3)]},
    )
    found = remedies(world, KUEUE_FAIR, "ns/b1").found

    assert ["raise the weight of cohort team from 0.5 to 2"] == [
        each.sentence for each in found if each.kind is RemedyKind.RAISE_WEIGHT
    ]


# Why a gang waits


def test_a_gang_that_may_take_no_more_is_told_both_shares() -> None:
    """One of the four it may take: then both would have as much. The next it may not."""
    found = certificate(_starved(), KUEUE_FAIR, "ns/b1")

    assert found is not None
    assert [("b", "0.75"), ("a", "0.5")] == [(each.node.name, each.share) for each in found.shares]
    assert found.sentence.endswith(
        "; it may take no more from queue a: "
        "with it the share of queue b is 0.75, that of queue a is 0.5"
    )


def test_a_gang_after_which_another_went_is_told_both_shares() -> None:
    world = snapshot(
        [queue("a", "c", f=0), queue("b", "c", f=0, weight=2)],
        [cohort("c", f=3)],
        waits={"a": [waiting("a1", 2)], "b": [waiting("b1", 3)]},
    )
    found = certificates_of_waiting(world, KUEUE_FAIR)["ns/a1"]

    assert found.sentence.endswith(
        "; ns/b1 went first: with it the share of queue a is 0.667, "
        "that of queue b is 0.5 for its weight of 2"
    )


def test_shares_are_not_told_where_they_decide_nothing() -> None:
    found = certificate(_starved(), KUEUE, "ns/b1")

    assert found is not None
    assert () == found.shares
