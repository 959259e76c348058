"""One cycle under Kueue's rules: which heads, in what order, what each gets and why not."""

from __future__ import annotations

import msgspec
import pytest

from bough.core.cycle.plan import plan
from bough.model.admission_rules import AdmissionRules, QueueingStrategy, StopPolicy
from bough.model.cluster import Match
from bough.model.plan import EvictionRule
from bough.model.policy import KUEUE, Heads, OrderKey
from bough.model.quota import NodeKind, TreeNode
from bough.model.reason import WaitReason
from bough.model.snapshot import Parked, Progress
from bough.model.workload import CheckState, LocalQueue, WorkloadCondition
from tests.cycle_kueue import (
    admitted,
    cohort,
    cycle,
    evicted,
    group,
    pods,
    queue,
    running,
    snapshot,
    wait,
    waiting,
)


def test_a_workload_that_fits_is_admitted_with_its_flavors_and_totals() -> None:
    workload = waiting("w", pod_sets=(pods(3, gpu=2), pods(1, name="driver", gpu=1)))
    (admit,) = cycle([queue("q", f=8)], waits={"q": [workload]}).admits
    first, second = admit.admission.assignments
    assert "q" == admit.admission.queue
    assert ("main", {"gpu": "f"}, {"gpu": 6}, 3) == _row(first)
    assert ("driver", {"gpu": "f"}, {"gpu": 1}, 1) == _row(second)


def test_only_the_first_of_each_queue_is_looked_at() -> None:
    decided = cycle(
        [queue("a", f=9), queue("b", f=9)],
        waits={"a": [waiting("a1"), waiting("a2")], "b": [waiting("b1"), waiting("b2")]},
    )
    assert ["a1", "b1"] == admitted(decided)


def test_everyone_is_looked_at_where_the_policy_says_so() -> None:
    policy = msgspec.structs.replace(KUEUE, heads=Heads.ALL)
    line = [waiting("a2", created_ms=2), waiting("a1", created_ms=1), waiting("a3", priority=1)]
    decided = cycle([queue("a", f=2)], waits={"a": line}, policy=policy)
    assert ["a3", "a1"] == admitted(decided)
    assert WaitReason.LIMIT == wait(decided, "a2").reason


def test_the_line_goes_by_priority_then_age_then_uid() -> None:
    by_priority = [waiting("old"), waiting("urgent", priority=5, created_ms=9)]
    by_age = [waiting("new", created_ms=2), waiting("old", created_ms=1)]
    by_uid = [waiting("x", uid="2"), waiting("y", uid="1")]
    firsts = [
        admitted(cycle([queue("q", f=1)], waits={"q": line}))
        for line in (by_priority, by_age, by_uid)
    ]
    assert [["urgent"], ["old"], ["y"]] == firsts


def test_a_workload_for_which_room_is_being_freed_goes_first_in_a_best_effort_queue() -> None:
    line = [waiting("first", priority=5), waiting("promised")]
    progress = {"ns/promised": Progress(nominated=True)}
    best_effort = cycle([queue("q", f=1)], waits={"q": line}, progress=progress)
    strict = cycle([queue("q", f=1, strict=True)], waits={"q": line}, progress=progress)
    assert (["promised"], ["first"]) == (admitted(best_effort), admitted(strict))


def test_who_is_parked_is_not_looked_at() -> None:
    line = [waiting("large", 5, priority=9), waiting("larger", 5, priority=9), waiting("small")]
    first = cycle([queue("q", f=1)], waits={"q": line})
    refused = wait(first, "large")
    assert (True, True) == (refused.parked, refused.alike)
    by_key = {"q": Parked(workloads=("ns/large", "ns/larger"))}
    assert ["small"] == admitted(cycle([queue("q", f=1)], waits={"q": line}, parked=by_key))


def test_in_a_strict_queue_everyone_waits_for_the_first() -> None:
    line = [waiting("large", 5, priority=9), waiting("small")]
    decided = cycle([queue("q", f=1, strict=True)], waits={"q": line})
    assert [] == admitted(decided)
    assert not wait(decided, "large").parked


def test_who_borrows_less_of_the_tree_goes_first_whatever_its_priority() -> None:
    decided = cycle(
        [queue("a", "c", f=0), queue("b", "c", f=2)],
        waits={"a": [waiting("borrower", 2, priority=9)], "b": [waiting("owner", 2)]},
    )
    assert ["owner"] == admitted(decided)
    assert "another" in wait(decided, "borrower").message


def test_among_those_that_borrow_the_higher_priority_goes_first_then_the_older() -> None:
    queues = [queue("a", "c", f=0), queue("b", "c", f=0)]
    spare = [cohort("c", f=1)]
    by_priority = cycle(queues, spare, waits={"a": [waiting("x")], "b": [waiting("y", priority=1)]})
    by_age = cycle(
        queues, spare, waits={"a": [waiting("x", created_ms=2)], "b": [waiting("y", created_ms=1)]}
    )
    assert [["y"], ["y"]] == [admitted(by_priority), admitted(by_age)]


def test_without_priority_as_a_criterion_the_older_goes_first() -> None:
    policy = msgspec.structs.replace(KUEUE, order=(OrderKey.BORROWING_HEIGHT, OrderKey.TIMESTAMP))
    decided = cycle(
        [queue("a", "c", f=0), queue("b", "c", f=0)],
        [cohort("c", f=1)],
        waits={"a": [waiting("old")], "b": [waiting("urgent", priority=9, created_ms=1)]},
        policy=policy,
    )
    assert ["old"] == admitted(decided)


def test_several_that_borrow_are_admitted_in_one_cycle_as_long_as_each_fits() -> None:
    decided = cycle(
        [queue("a", "c", f=0), queue("b", "c", f=0), queue("d", "c", f=0)],
        [cohort("c", f=2)],
        waits={name: [waiting(f"w{name}")] for name in "abd"},
    )
    assert ["wa", "wb"] == admitted(decided)


def test_what_no_longer_fits_in_the_cycle_is_passed_over_and_not_parked() -> None:
    decided = cycle(
        [queue("a", "c", f=0), queue("b", "c", f=0)],
        [cohort("c", f=1)],
        waits={"a": [waiting("x")], "b": [waiting("y")]},
    )
    assert not wait(decided, "y").parked


def test_a_preemptor_waits_for_its_victims_and_is_not_admitted_in_the_same_cycle() -> None:
    decided = cycle(
        [queue("q", within="LowerPriority", f=2)],
        holds=[running("low", "q", 2)],
        waits={"q": [waiting("high", 1, priority=1)]},
    )
    assert ([], {"low": "preempt"}) == (admitted(decided), evicted(decided))
    (nomination,) = decided.nominations
    assert ("ns/high", ("ns/low",)) == (nomination.workload, nomination.waits_for)
    assert WaitReason.NOMINATED == wait(decided, "high").reason
    assert not wait(decided, "high").parked


def test_an_eviction_names_its_preemptor_rule_and_level() -> None:
    decided = cycle(
        [queue("a", "left", reclaim="Any", f=2), queue("b", "right", f=0)],
        [cohort("left", "root"), cohort("right", "root"), cohort("root")],
        holds=[running("borrower", "b", 2)],
        waits={"a": [waiting("owner", 1)]},
    )
    (eviction,) = decided.evictions
    expected = ("ns/borrower", EvictionRule.RECLAIM, "ns/owner", _cohort("root"))
    assert expected == (eviction.workload, eviction.rule, eviction.preemptor, eviction.level)


def test_a_victim_that_was_told_to_end_is_waited_for_but_not_told_again() -> None:
    decided = cycle(
        [queue("q", within="LowerPriority", f=2)],
        holds=[running("low", "q", 2, evicted=True)],
        waits={"q": [waiting("high", 1, priority=1)]},
    )
    assert {} == evicted(decided)
    assert ("ns/low",) == decided.nominations[0].waits_for


def test_who_wants_the_same_victims_gets_what_they_leave_over_once_they_ended() -> None:
    decided = _two_owners(victim=4, first=1, second=1)
    assert {"borrower": "reclaim"} == evicted(decided)
    assert ["ns/first", "ns/second"] == [each.workload for each in decided.nominations]
    assert ("ns/borrower",) == decided.nominations[1].waits_for


def test_who_wants_the_same_victims_may_take_others_instead() -> None:
    decided = _two_owners(victim=2, first=2, second=2, others=[running("other", "b", 2)])
    assert {"borrower": "reclaim", "other": "reclaim"} == evicted(decided)


def test_who_wants_the_same_victims_is_passed_over_where_nothing_is_computed_again() -> None:
    policy = msgspec.structs.replace(KUEUE, recompute_overlap=False)
    decided = _two_owners(victim=4, first=1, second=1, policy=policy)
    assert ["ns/first"] == [each.workload for each in decided.nominations]
    assert not wait(decided, "second").parked


def _two_owners(victim: int, first: int, second: int, others=(), **fields):
    """Two queues own what a third has borrowed; what it borrowed last goes first."""
    spare = sum(each.pod_sets[0].template.requests["gpu"] for each in others) + victim
    return cycle(
        [
            queue("a", "c", reclaim="Any", f=(spare + 1) // 2),
            queue("b", "c", f=0),
            queue("d", "c", reclaim="Any", f=spare // 2),
        ],
        holds=[running("borrower", "b", victim, since_ms=9), *others],
        waits={
            "a": [waiting("first", first, priority=1)],
            "d": [waiting("second", second)],
        },
        **fields,
    )


def test_room_is_kept_for_an_owner_who_could_not_reclaim_it_later() -> None:
    kept = _owner_and_borrower(reclaim="Never")
    free = _owner_and_borrower(reclaim="Any")
    assert ([], ["b1"]) == (admitted(kept), admitted(free))


def _owner_and_borrower(reclaim: str):
    """An owner needs two of its quota of two, of which it has used one; one is free."""
    return cycle(
        [queue("a", "c", reclaim=reclaim, f=2), queue("b", "c", f=0)],
        holds=[running("a0", "a", 1)],
        waits={"a": [waiting("a1", 2)], "b": [waiting("b1", 1, created_ms=9)]},
    )


def test_a_held_queue_takes_nothing_and_says_so() -> None:
    for stop in (StopPolicy.HOLD, StopPolicy.HOLD_AND_DRAIN):
        held = queue("q", f=1, rules=AdmissionRules(namespaces=(), stop=stop))
        decided = cycle([held], waits={"q": [waiting("w")]})
        barred = wait(decided, "w")
        assert ((), WaitReason.STOPPED) == (decided.admits, barred.reason)
        assert (True, True) == (barred.parked, barred.alike)
        assert f"queue q is stopped: its stopPolicy is {stop.value}" == barred.message


def test_a_queue_that_is_drained_tells_everything_in_it_to_end_once() -> None:
    rules = AdmissionRules(stop=StopPolicy.HOLD_AND_DRAIN)
    decided = cycle(
        [queue("q", f=9, rules=rules), queue("other", f=9)],
        holds=[running("a", "q"), running("b", "q", evicted=True), running("c", "other")],
    )
    assert {"a": "drain"} == evicted(decided)
    assert TreeNode(NodeKind.QUEUE, "q") == decided.evictions[0].level


def test_what_is_drained_and_wanted_by_another_is_told_to_end_once() -> None:
    rules = AdmissionRules(stop=StopPolicy.HOLD_AND_DRAIN)
    decided = cycle(
        [queue("drained", "c", f=0, rules=rules), queue("owner", "c", reclaim="Any", f=1)],
        holds=[running("r", "drained")],
        waits={"owner": [waiting("w")]},
    )
    assert ["ns/r"] == [each.workload for each in decided.evictions]
    assert ("ns/r",) == decided.nominations[0].waits_for


def test_a_stopped_door_keeps_its_workloads_waiting_and_drains_them() -> None:
    door = LocalQueue("door", "ns", "q", StopPolicy.HOLD_AND_DRAIN)
    decided = cycle(
        [queue("q", f=9)],
        holds=[running("in", "q", local_queue="door"), running("else", "q", local_queue="b")],
        waits={"q": [waiting("w", local_queue="door"), waiting("v", created_ms=5)]},
        local_queues=(door,),
    )
    assert (["v"], {"in": "drain"}) == (admitted(decided), evicted(decided))


def test_who_is_inactive_or_finished_or_held_back_is_not_looked_at() -> None:
    line = [
        waiting("inactive", active=False),
        waiting("finished", conditions=(WorkloadCondition("Finished", True),)),
        waiting("later", requeue_at_ms=101),
        waiting("held", conditions=(WorkloadCondition("Requeued", False),)),
        waiting("last", created_ms=9),
    ]
    assert ["last"] == admitted(cycle([queue("q", f=9)], waits={"q": line}, now_ms=100))
    assert ["later"] == admitted(cycle([queue("q", f=9)], waits={"q": line}, now_ms=101))


def test_a_failed_check_bars_a_workload() -> None:
    for state in ("Retry", "Rejected"):
        workload = waiting("w", checks=(CheckState("budget", state),))
        barred = wait(cycle([queue("q", f=9)], waits={"q": [workload]}), "w")
        assert WaitReason.CHECK == barred.reason
        assert f"the admission check budget says {state}" == barred.message


def test_a_queue_on_a_cycle_of_cohorts_takes_nothing_and_says_so() -> None:
    decided = cycle(
        [queue("q", "a", f=9)],
        [cohort("a", "b"), cohort("b", "a")],
        waits={"q": [waiting("w")]},
    )
    barred = wait(decided, "w")
    assert (WaitReason.TANGLED, True) == (barred.reason, barred.parked)
    assert "queue q is stopped: its cohorts form a cycle: a → b → a" == barred.message


def test_a_queue_whose_flavor_does_not_exist_takes_nothing() -> None:
    decided = cycle([queue("q", f=9)], waits={"q": [waiting("w")]}, flavors=())
    assert "queue q is stopped: there is no flavor f" == wait(decided, "w").message


def test_a_workload_of_a_queue_that_does_not_exist_waits_with_a_reason() -> None:
    decided = cycle([], waits={"gone": [waiting("w")]})
    assert (WaitReason.QUEUE, "queue gone does not exist") == (
        wait(decided, "w").reason,
        wait(decided, "w").message,
    )


@pytest.mark.parametrize(
    ("labels", "matches", "enters"),
    [
        ({"team": "a"}, (Match("team", "In", ("a", "b")),), True),
        ({"team": "c"}, (Match("team", "In", ("a", "b")),), False),
        ({}, (Match("team", "NotIn", ("a",)),), True),
        ({"team": "a"}, (Match("team", "Exists"), Match("old", "DoesNotExist")), True),
        ({}, (), True),
        ({"team": "a"}, None, False),
        (None, (), True),
        (None, (Match("team", "DoesNotExist"),), False),
    ],
)
def test_a_queue_lets_in_the_namespaces_that_it_selects(labels, matches, enters) -> None:
    selective = queue("q", f=1, rules=AdmissionRules(namespaces=matches))
    namespaces = {} if labels is None else {"ns": labels}
    decided = cycle([selective], waits={"q": [waiting("w")]}, namespaces=namespaces)
    assert (["w"] if enters else []) == admitted(decided)
    if not enters:
        assert WaitReason.NAMESPACE == wait(decided, "w").reason


def test_a_namespace_that_is_not_let_in_does_not_block_a_strict_queue() -> None:
    rules = AdmissionRules(
        queueing=QueueingStrategy.STRICT_FIFO, namespaces=(Match("team", "Exists"),)
    )
    decided = cycle(
        [queue("q", f=1, rules=rules)], waits={"q": [waiting("w")]}, namespaces={"ns": {}}
    )
    assert wait(decided, "w").parked


def test_why_a_workload_waits_names_the_node_and_the_numbers() -> None:
    decided = cycle(
        [queue("a", "c", f=2), queue("b", "c", f=(1, 0))],
        holds=[running("r", "b", 1)],
        waits={"a": [waiting("never", 9)], "b": [waiting("now", 1)]},
    )
    assert WaitReason.TOO_LARGE == wait(decided, "never").reason
    assert (
        "cohort c is short of 7 f/gpu: 2 are left, 9 are asked for"
        == wait(decided, "never").message
    )
    assert WaitReason.LIMIT == wait(decided, "now").reason
    assert (
        "queue b is short of 1 f/gpu: none is left, 1 is asked for" == wait(decided, "now").message
    )


def test_fewer_pods_are_admitted_where_not_all_fit() -> None:
    line = {"q": [waiting("w", pod_sets=(pods(10, 2, gpu=1),))]}
    (admit,) = cycle([queue("q", f=7)], waits=line).admits
    assert ("main", {"gpu": "f"}, {"gpu": 7}, 7) == _row(admit.admission.assignments[0])
    policy = msgspec.structs.replace(KUEUE, partial_admission=False)
    assert [] == admitted(cycle([queue("q", f=7)], waits=line, policy=policy))


def test_fewer_pods_may_preempt_where_all_of_them_could_not() -> None:
    decided = cycle(
        [queue("q", within="LowerPriority", f=7)],
        holds=[running("low", "q", 3), running("high", "q", 4, priority=9)],
        waits={"q": [waiting("w", priority=1, pod_sets=(pods(10, 2, gpu=1),))]},
    )
    assert {"low": "preempt"} == evicted(decided)


def test_all_pods_by_preemption_come_before_fewer_without() -> None:
    decided = cycle(
        [queue("q", within="LowerPriority", f=4)],
        holds=[running("low", "q", 2)],
        waits={"q": [waiting("w", priority=1, pod_sets=(pods(4, 1, gpu=1),))]},
    )
    assert ([], {"low": "preempt"}) == (admitted(decided), evicted(decided))


def test_finished_pods_need_no_quota() -> None:
    workload = waiting("w", pod_sets=(pods(4, gpu=1),), reclaimable_pods={"main": 3})
    (admit,) = cycle([queue("q", f=1)], waits={"q": [workload]}).admits
    assert ("main", {"gpu": "f"}, {"gpu": 1}, 1) == _row(admit.admission.assignments[0])


def test_pods_are_counted_where_a_queue_lists_them() -> None:
    groups = (group(f=9), group("pods", p=2))
    workload = waiting("w", pod_sets=(pods(2, gpu=1),))
    (admit,) = cycle([queue("q", groups=groups)], waits={"q": [workload]}).admits
    assert {"gpu": 2, "pods": 2} == admit.admission.assignments[0].usage
    larger = waiting("w", pod_sets=(pods(3, gpu=1),))
    assert [] == admitted(cycle([queue("q", groups=groups)], waits={"q": [larger]}))


def test_a_plan_is_for_the_version_of_its_snapshot() -> None:
    assert 7 == cycle([queue("q", f=1)], version=7).version


def test_checks_that_are_still_to_pass_do_not_keep_quota_from_a_workload() -> None:
    pending = waiting("w", checks=(CheckState("budget", "Pending"),))
    assert ["w"] == admitted(cycle([queue("q", f=1)], waits={"q": [pending]}))


def test_a_snapshot_is_not_changed_by_planning() -> None:
    first, second = (
        snapshot(
            [queue("q", within="LowerPriority", f=2)],
            waits={"q": [waiting("w", 2, priority=1)]},
            holds=[running("r", "q")],
        )
        for _ in range(2)
    )
    assert plan(first, KUEUE).evictions
    assert second == first


def _row(assignment):
    return assignment.name, assignment.flavors, assignment.usage, assignment.count


def _cohort(name: str) -> TreeNode:
    return TreeNode(NodeKind.COHORT, name)
