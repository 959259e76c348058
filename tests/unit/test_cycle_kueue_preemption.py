"""What is evicted for what: the rules of a queue's preemption, the order of victims, attempts."""

from __future__ import annotations

import msgspec
import pytest

from bough.model.policy import KUEUE, RequeuingTimestamp
from bough.model.quota import NodeKind, TreeNode
from bough.model.workload import WorkloadCondition
from tests.cycle_kueue import admitted, cohort, cycle, evicted, queue, running, wait, waiting


@pytest.mark.parametrize(
    ("rule", "victim", "taken"),
    [
        ("Never", {"priority": 0}, False),
        ("LowerPriority", {"priority": 0}, True),
        ("LowerPriority", {"priority": 1}, False),
        ("LowerOrNewerEqualPriority", {"priority": 1, "created_ms": 6}, True),
        ("LowerOrNewerEqualPriority", {"priority": 1, "created_ms": 5}, False),
        ("LowerOrNewerEqualPriority", {"priority": 1, "created_ms": None}, False),
        ("LowerOrNewerEqualPriority", {"priority": 2, "created_ms": 6}, False),
    ],
)
def test_a_queue_says_what_its_workloads_preempt_among_themselves(rule, victim, taken) -> None:
    decided = cycle(
        [queue("q", within=rule, f=1)],
        holds=[running("r", "q", **victim)],
        waits={"q": [waiting("w", priority=1, created_ms=5)]},
    )
    assert ({"r": "preempt"} if taken else {}) == evicted(decided)


@pytest.mark.parametrize(
    ("rule", "priority", "taken"),
    [
        ("Never", 0, False),
        ("LowerPriority", 0, True),
        ("LowerPriority", 1, False),
        ("Any", 9, True),
    ],
)
def test_a_queue_says_from_which_queues_its_workloads_reclaim(rule, priority, taken) -> None:
    decided = cycle(
        [queue("q", "c", reclaim=rule, f=1), queue("other", "c", f=0)],
        holds=[running("r", "other", priority=priority)],
        waits={"q": [waiting("w", priority=1)]},
    )
    assert ({"r": "reclaim"} if taken else {}) == evicted(decided)


def test_nothing_is_reclaimed_from_a_queue_within_its_quota() -> None:
    decided = cycle(
        [queue("q", "c", reclaim="Any", f=1), queue("other", "c", f=1)],
        holds=[running("r", "other"), running("mine", "q")],
        waits={"q": [waiting("w")]},
    )
    assert {} == evicted(decided)


def test_reclaiming_from_a_queue_ends_when_it_is_within_its_quota() -> None:
    decided = cycle(
        [queue("q", "c", reclaim="Any", f=2), queue("b", "c", f=1), queue("d", "c", f=0)],
        holds=[
            running("b1", "b", since_ms=9),
            running("b2", "b", since_ms=8),
            running("d1", "d", since_ms=1),
        ],
        waits={"q": [waiting("w", 2)]},
    )
    assert {"b1": "reclaim", "d1": "reclaim"} == evicted(decided)


def test_a_subtree_within_its_quota_is_never_touched_from_outside() -> None:
    decided = cycle(
        [
            queue("q", "root", reclaim="Any", f=1),
            queue("rich", "team", f=2),
            queue("poor", "team", f=0),
        ],
        [cohort("team", "root"), cohort("root", f=0)],
        holds=[running("r", "poor", 2), running("mine", "q", 1)],
        waits={"q": [waiting("w")]},
    )
    assert {} == evicted(decided)


def test_a_team_takes_its_own_back_from_outside_even_while_its_queue_borrows() -> None:
    world = {
        "queues": [
            queue("q", "team", reclaim="Any", f=0),
            queue("idle", "team", f=2),
            queue("outside", "root", f=0),
        ],
        "cohorts": [cohort("team", "root"), cohort("root")],
        "holds": [running("r", "outside", 2)],
        "waits": {"q": [waiting("w", 1)]},
    }
    assert {"r": "reclaim"} == evicted(cycle(**world))


def test_without_advantage_nothing_is_reclaimed_while_borrowing_unless_the_queue_may() -> None:
    def decided(**rules: object):
        return cycle(
            [
                queue("q", "c", reclaim="Any", f=0, **rules),
                queue("idle", "c", f=2),
                queue("other", "c", f=0),
            ],
            holds=[running("r", "other", 2, priority=3)],
            waits={"q": [waiting("w", 1, priority=5)]},
        )

    assert {} == evicted(decided())
    assert {"r": "reclaim_while_borrowing"} == evicted(decided(borrow="LowerPriority"))
    assert {} == evicted(decided(borrow="LowerPriority", threshold=2))
    assert {"r": "reclaim_while_borrowing"} == evicted(decided(borrow="LowerPriority", threshold=3))


def test_only_lower_priorities_are_reclaimed_while_borrowing() -> None:
    decided = cycle(
        [queue("q", "c", reclaim="Any", borrow="LowerPriority", f=0), queue("b", "c", f=0)],
        [cohort("c", f=2)],
        holds=[running("r", "b", 2, priority=5)],
        waits={"q": [waiting("w", 1, priority=5)]},
    )
    assert {} == evicted(decided)


def _victims(*holds, gpu=1, queues=None, **fields):
    declared = queues or [
        queue("q", "c", within="LowerPriority", reclaim="Any", f=8),
        queue("b", "c", f=0),
    ]
    return list(
        evicted(
            cycle(declared, holds=holds, waits={"q": [waiting("w", gpu, priority=5)]}, **fields)
        )
    )


def test_victims_in_other_queues_go_before_those_in_the_own() -> None:
    mine, theirs = running("mine", "q", 4), running("theirs", "b", 4, priority=4)
    assert ["theirs"] == _victims(mine, theirs)


def test_lower_priorities_go_first_then_who_holds_quota_for_the_shorter_time_then_uid() -> None:
    by_priority = [running("a", "b", 4, priority=2), running("b", "b", 4, priority=1)]
    by_time = [running("a", "b", 4, since_ms=1), running("b", "b", 4, since_ms=2)]
    by_uid = [running("a", "b", 4, uid="2"), running("b", "b", 4, uid="1")]
    assert [["b"], ["b"], ["b"]] == [_victims(*each) for each in (by_priority, by_time, by_uid)]


def test_who_was_told_to_end_already_goes_before_all_others() -> None:
    ending = running("ending", "q", 4, priority=4, evicted=True)
    assert [] == _victims(running("theirs", "b", 4), ending)


def test_nothing_is_evicted_that_turns_out_not_to_be_needed() -> None:
    small = [running(f"s{number}", "b", 1, since_ms=9 - number) for number in range(4)]
    large = running("large", "b", 4, priority=1)
    assert ["s0", "s1", "s2"] == _victims(*small, large, gpu=3, queues=_enough())
    assert ["s0", "large"] == _victims(*small, large, gpu=5, queues=_enough())


def _enough():
    return [queue("q", "c", reclaim="Any", f=8), queue("b", "c", f=0)]


def test_nothing_is_evicted_in_vain() -> None:
    holds = [running("low", "q", 4), running("high", "q", 4, priority=9)]
    assert [] == _victims(*holds, gpu=5)


def test_only_who_uses_what_is_scarce_is_evicted() -> None:
    holds = [running("x1", "q", 4, flavor="x"), running("y1", "q", 4, flavor="y", priority=1)]
    decided = cycle(
        [queue("q", within="LowerPriority", x=4, y=4)],
        holds=holds,
        waits={"q": [waiting("w", 1, priority=5)]},
    )
    assert {"x1": "preempt"} == evicted(decided)


def _owner(mine: int, theirs: int, asked: int):
    """A queue with quota 3 of 5; the rest is borrowed by others."""
    return cycle(
        [
            queue("q", "c", within="LowerPriority", reclaim="LowerPriority", f=3),
            queue("b", "c", f=0),
            queue("idle", "c", f=2),
        ],
        holds=[running("mine", "q", mine), running("theirs", "b", theirs)],
        waits={"q": [waiting("w", asked, priority=5)]},
    )


def test_an_owner_below_its_quota_may_fill_it_up_at_the_expense_of_others() -> None:
    assert {"mine": "preempt", "theirs": "reclaim"} == evicted(_owner(2, 3, asked=3))


def test_an_owner_at_its_quota_takes_from_its_own_only() -> None:
    assert {"mine": "preempt"} == evicted(_owner(3, 2, asked=3))
    assert {} == evicted(_owner(3, 2, asked=4))


def test_the_boost_of_an_annotation_counts_where_the_policy_lets_it() -> None:
    policy = msgspec.structs.replace(KUEUE, priority_boost=True)

    def decided(text: str, used=KUEUE):
        boost = {"kueue.x-k8s.io/priority-boost": text}
        return cycle(
            [queue("q", within="LowerPriority", f=1)],
            holds=[running("r", "q", priority=4)],
            waits={"q": [waiting("w", priority=1, annotations=boost)]},
            policy=used,
        )

    assert {} == evicted(decided("9"))
    assert {"r": "preempt"} == evicted(decided("9", policy))
    for text in ("-9", "nine", "99999999999", "3"):
        assert {} == evicted(decided(text, policy))


def test_who_lost_its_place_through_its_own_fault_waits_anew() -> None:
    def first(policy, **condition):
        ago = WorkloadCondition("Evicted", True, since_ms=50, **condition)
        line = [waiting("back", conditions=(ago,)), waiting("patient", created_ms=10)]
        return admitted(cycle([queue("q", f=1)], waits={"q": line}, policy=policy))

    by_creation = msgspec.structs.replace(KUEUE, requeuing_timestamp=RequeuingTimestamp.CREATION)
    assert ["patient"] == first(KUEUE, reason="PodsReadyTimeout")
    assert ["back"] == first(by_creation, reason="PodsReadyTimeout")
    assert ["patient"] == first(by_creation, reason="AdmissionCheck")
    assert ["back"] == first(KUEUE, reason="Preempted")


def test_who_was_reclaimed_from_by_a_borrower_waits_anew_where_the_policy_says_so() -> None:
    anew = msgspec.structs.replace(KUEUE, reclaimed_waits_anew=True)

    def first(policy, reason):
        lost = WorkloadCondition("Preempted", True, reason, since_ms=10)
        line = [waiting("loser", conditions=(lost,)), waiting("winner", created_ms=10, uid="z")]
        return admitted(cycle([queue("q", f=1)], waits={"q": line}, policy=policy))

    assert ["winner"] == first(anew, "InCohortReclaimWhileBorrowing")
    assert ["loser"] == first(anew, "InClusterQueue")
    assert ["loser"] == first(KUEUE, "InCohortReclaimWhileBorrowing")


def test_the_level_of_a_preemption_in_one_queue_is_that_queue() -> None:
    decided = cycle(
        [queue("q", within="LowerPriority", f=1)],
        holds=[running("r", "q")],
        waits={"q": [waiting("w", priority=1)]},
    )
    assert TreeNode(NodeKind.QUEUE, "q") == decided.evictions[0].level


def test_a_queue_within_its_own_quota_reclaims_by_right_and_not_as_a_borrower() -> None:
    """Also from further up, though the cohort between could not hold the request."""
    decided = cycle(
        [
            queue("q", "team", reclaim="Any", borrow="LowerPriority", f=2),
            queue("near", "team", f=0),
            queue("far", "root", f=0),
        ],
        [cohort("team", "root"), cohort("root", f=3)],
        holds=[running("n", "near", 3, priority=1), running("f", "far", 2)],
        waits={"q": [waiting("w", 2, priority=5)]},
    )
    assert {"f": "reclaim"} == evicted(decided)


def test_what_a_queue_keeps_for_itself_is_not_asked_of_its_cohort() -> None:
    """It keeps 2 of the 3 that are asked for; its team has the third, so it is in its right."""
    decided = cycle(
        [
            queue("q", "team", reclaim="Any", borrow="LowerPriority", f=(2, None, 0)),
            queue("idle", "team", f=1),
            queue("far", "root", f=0),
        ],
        [cohort("team", "root"), cohort("root")],
        holds=[running("f", "far", 1)],
        waits={"q": [waiting("w", 3, priority=5)]},
    )
    assert {"f": "reclaim"} == evicted(decided)


def test_reclaiming_below_a_cohort_ends_when_the_cohort_is_within_its_quota() -> None:
    decided = cycle(
        [
            queue("q", "root", reclaim="Any", f=3),
            queue("x", "team", f=0),
            queue("y", "team", f=0),
            queue("z", "root", f=0),
        ],
        [cohort("team", "root", f=2), cohort("root")],
        holds=[
            running("y1", "y", 1, since_ms=9),
            running("x1", "x", 2, since_ms=8),
            running("z1", "z", 2, since_ms=7),
        ],
        waits={"q": [waiting("w", 3)]},
    )
    assert {"y1": "reclaim", "z1": "reclaim"} == evicted(decided)


def _fills_up(first: int, second: int, theirs: int, lender: str = "c"):
    """Quota 3 of 8; two of lower rank run in the queue, and others borrow."""
    return cycle(
        [
            queue("q", "c", within="LowerPriority", reclaim="LowerPriority", f=3),
            queue("b", lender, f=0),
            queue("idle", lender, f=5),
        ],
        [cohort("c"), cohort("within", "c")],
        holds=[
            running("first", "q", first, since_ms=9),
            running("second", "q", second, since_ms=8),
            running("theirs", "b", theirs),
        ],
        waits={"q": [waiting("w", 3, priority=5)]},
    )


def test_a_queue_below_its_quota_first_tries_to_stay_within_it() -> None:
    """By borrowing one victim would be enough."""
    assert {"first": "preempt", "second": "preempt"} == evicted(_fills_up(1, 1, theirs=4))


def test_a_queue_at_its_quota_tries_with_borrowing_only() -> None:
    assert {"first": "preempt"} == evicted(_fills_up(1, 2, theirs=3))


def test_a_queue_below_its_quota_borrows_at_once_where_no_other_could_give_anything() -> None:
    """The others borrow only within a cohort which is within its quota."""
    assert {"first": "preempt"} == evicted(_fills_up(1, 1, theirs=4, lender="within"))


def test_what_only_the_whole_tree_could_hold_is_not_preempted_for() -> None:
    def decided(**rules: object):
        return cycle(
            [queue("q", "c", within="LowerPriority", f=(1, 3), **rules)],
            [cohort("c", f=8)],
            holds=[running("low", "q", 2)],
            waits={"q": [waiting("w", 3, priority=5)]},
        )

    assert {} == evicted(decided())
    assert {"low": "preempt"} == evicted(decided(reclaim="Any", borrow="LowerPriority"))


def test_while_victims_run_no_room_is_kept_beyond_the_borrowing_limit() -> None:
    """Until its victim has ended, queue a uses all that it may; so others need not hold back."""
    decided = cycle(
        [queue("a", "c", f=(2, 1)), queue("b", "c", reclaim="Any", f=2), queue("d", "c", f=0)],
        holds=[running("a1", "a", 1), running("a2", "a", 2, since_ms=9)],
        waits={
            "a": [waiting("wa", 1, priority=1)],
            "b": [waiting("wb", 2)],
            "d": [waiting("wd", 1)],
        },
    )
    assert {"a2": "reclaim"} == evicted(decided)
    assert ["wd"] == admitted(decided)


def test_what_a_victim_has_is_not_handed_on_before_it_has_ended() -> None:
    queues = [queue("q", "c", within="LowerPriority", f=10), queue("b", "c", f=0)]
    waits = {"q": [waiting("p", 5, priority=1)], "b": [waiting("w", 2)], "d": [waiting("x", 2)]}
    decided = cycle(
        [*queues, queue("d", "c", f=0)], holds=[running("v", "q", 8, priority=0)], waits=waits
    )
    # Until v has ended 8 of 10 are in use: w fits beside it, and x does not.
    assert {"v": "preempt"} == evicted(decided)
    assert ["w"] == admitted(decided)
    assert "nominated" == wait(decided, "x").reason
    assert [("ns/p", ("ns/v",)), ("ns/x", ("ns/v",))] == [
        (each.workload, each.waits_for) for each in decided.nominations
    ]
