"""Public bugs of other schedulers that the osmo preset does not have, each by its number.

kueue: kubernetes-sigs/kueue; kai: kai-scheduler/KAI-Scheduler; volcano: volcano-sh/volcano; grove:
ai-dynamo/grove; yunikorn: the tracker of Apache YuniKorn.
"""

from __future__ import annotations

from bough.model.gang import PodState
from bough.model.plan import EvictionRule
from bough.model.quota import (
    FlavorResource,
    NodeKind,
    Queue,
    TreeNode,
)
from tests.cycle_gangs import (
    HIGH,
    LOW,
    cluster,
    cohort,
    evicted,
    gang,
    node,
    nominated,
    queue,
    reasons,
)
from tests.deciding import decide
from tests.simulation import Simulation, changes, replace, started

GPU = FlavorResource("any", "gpu")

# Preemption without end


def test_kueue_3779_a_victim_is_not_admitted_again_before_its_preemptor() -> None:
    """Two owners and one that only borrows: its share is the lowest, and yet it waits."""
    simulation = Simulation(
        cluster(
            [node("n", 6)],
            [queue("a", 3), queue("b", 3), queue("best", 0)],
            [
                gang("a1", "a", pods=2, on="n"),
                gang("a-low", "a", LOW, pods=3, on="n", at=1),
                gang("best1", "best", LOW, on="n", at=2),
            ],
        )
    )
    simulation.submit(gang("a2", "a", at=3))

    plans = simulation.settle()

    assert [["best1"], [], []] == [evicted(each) for each in plans]
    assert "a2" in simulation.running
    assert "best1" not in simulation.running


def test_kueue_2821_who_lost_its_place_does_not_take_it_back() -> None:
    """The victim was submitted first, and is first in its own line: it still goes after NORMAL."""
    simulation = Simulation(
        cluster(
            [node("n", 2)],
            [queue("a", 1), queue("b", 1)],
            [gang("b-low", "b", LOW, pods=2, on="n"), gang("a1", "a", at=5)],
        )
    )

    plans = simulation.settle()

    assert ["b-low"] == [name for each in plans for name in evicted(each)]
    assert ["a1"] == simulation.running


def test_kueue_6947_a_head_that_can_never_start_evicts_nothing_and_starves_nothing() -> None:
    decided = decide(
        cluster(
            [node("n", 4)],
            [queue("q", 3)],
            [
                gang("low", "q", LOW, on="n"),
                gang("never", "q", HIGH, pods=5),
                gang("fits", "q", at=1),
            ],
        )
    )

    assert [] == evicted(decided)
    assert ["fits"] == started(decided)
    assert {"never": "quota"} == reasons(decided)


def test_kueue_13662_room_that_is_freed_piece_by_piece_is_not_stolen() -> None:
    """One victim ends early. Neither LOW nor a HIGH that comes meanwhile takes its room."""
    simulation = Simulation(
        cluster(
            [node("n", 4)],
            [queue("a", 2), queue("b", 2), queue("c", 0)],
            [
                gang("low1", "c", LOW, pods=2, on="n"),
                gang("low2", "c", LOW, pods=2, on="n", at=1),
                gang("want", "a", pods=2, gpus=1, at=2, minimum=2),
            ],
        )
    )
    simulation.declare(queue("a", 4), queue("b", 0))
    simulation.submit(gang("more", "a", pods=2, at=3))
    assert ["low2", "low1"] == evicted(simulation.step())
    simulation.end_evicted(["low1"])
    simulation.submit(gang("thief", "c", LOW, at=0))
    simulation.submit(gang("high", "a", HIGH, pods=2, at=9))

    decided = simulation.step()

    assert [] == evicted(decided)
    assert ["want"] == started(decided)
    assert ["more"] == nominated(decided)
    assert {"low1": "limit", "thief": "limit", "high": "quota"} == reasons(decided)


def test_yunikorn_2761_no_storm_while_victims_are_ending() -> None:
    simulation = Simulation(
        cluster(
            [node("n", 8)],
            [queue("a", 4), queue("b", 0)],
            [
                *(gang(f"low{i}", "b", LOW, on="n", at=i) for i in range(8)),
                gang("want", "a", pods=2, at=9),
            ],
        )
    )

    plans = [simulation.step() for _ in range(5)]

    assert [["low7", "low6"], [], [], [], []] == [evicted(each) for each in plans]
    assert [["want"]] * 5 == [nominated(each) for each in plans]


# Too many victims, or the wrong ones


def test_kueue_10131_one_victim_where_one_is_enough_and_always_the_same() -> None:
    teams = [cohort("team-a"), cohort("team-b"), cohort("team-c")]
    queues = [
        queue("a", 2, "team-a"),
        queue("b", 2, "team-b"),
        queue("c", 8, "team-c"),
        *(queue(f"{name}-low", 0, f"team-{name}") for name in "abc"),
    ]
    lows = [
        gang(f"low-{name}", f"{name}-low", LOW, pods=4, on=f"n{at}", at=at)
        for at, name in enumerate("abc")
    ]
    world = cluster(
        [node(f"n{at}", 4) for at in range(3)],
        queues,
        [*lows, gang("c1", "c", pods=4, at=9)],
        teams,
    )

    assert ["low-c"] == evicted(decide(world))


def test_kueue_1974_a_queue_above_its_quota_evicts_no_more_than_is_needed() -> None:
    """The queue uses far more than its quota, by LOW. NORMAL of the size of the quota comes."""
    decided = decide(
        cluster(
            [node("n", 10)],
            [queue("q", 3), queue("other", 7)],
            [
                *(gang(f"low{i}", "q", LOW, on="n", at=i) for i in range(10)),
                gang("want", "q", pods=3, at=20),
            ],
        )
    )

    assert ["low9", "low8", "low7"] == evicted(decided)


def test_kueue_15211_what_is_ending_already_counts_before_anything_else_is_evicted() -> None:
    going = gang("going", "b", LOW, pods=2, on="n")
    pods = tuple(replace(pod, state=PodState.RELEASING) for pod in going.pods)
    decided = decide(
        cluster(
            [node("n", 4)],
            [queue("a", 2), queue("b", 0)],
            [
                replace(going, pods=pods),
                gang("low", "b", LOW, pods=2, on="n", at=5),
                gang("want", "a", pods=2, at=9),
            ],
        )
    )

    assert [] == evicted(decided)
    assert ["want"] == nominated(decided)


def test_kueue_1561_a_limit_that_is_not_set_is_no_limit() -> None:
    decided = decide(
        cluster([node("n", 4)], [queue("q", 0), queue("r", 4)], [gang("low", "q", LOW, pods=4)])
    )

    assert ["low"] == started(decided)


# Over-admission


def test_kueue_804_two_gangs_do_not_get_the_same_quota_in_one_cycle() -> None:
    decided = decide(
        cluster(
            [node("n", 8)],
            [queue("a", 2), queue("b", 2)],
            [
                gang("one", "a", pods=2),
                gang("two", "a", pods=2),
                *(gang(f"low{name}", name, LOW, pods=5) for name in "ab"),
            ],
        )
    )

    assert ["one", "lowb"] == started(decided)
    assert {"two": "quota", "lowa": "limit"} == reasons(decided)


def test_kueue_2678_a_queue_that_lost_its_quota_admits_nothing_more() -> None:
    """What runs goes on; the queue has no quota any more, and there are not 3 of 1."""
    simulation = Simulation(
        cluster([node("n", 4)], [queue("a", 2), queue("b", 0)], [gang("run", "a", pods=2, on="n")])
    )
    simulation.declare(Queue("a", "root", ()))
    simulation.submit(gang("next", "a", at=1))
    simulation.submit(gang("low", "a", LOW, at=2))

    decided = simulation.step()

    assert not changes(decided)
    assert {"next", "low"} == set(reasons(decided))


def test_volcano_1860_a_limit_counts_what_is_asked_for_and_not_only_what_is_used() -> None:
    decided = decide(
        cluster(
            [node("n", 20)],
            [queue("q", 10, borrowing=0)],
            [gang("run", "q", LOW, pods=9, on="n"), gang("large", "q", LOW, pods=10, at=1)],
        )
    )

    assert {"large": "limit"} == reasons(decided)


def test_volcano_3932_limits_hold_at_the_parents_too() -> None:
    decided = decide(
        cluster(
            [node("n", 9)],
            [queue("q11", 3, "q1"), queue("q12", 3, "q1"), queue("q2", 3)],
            [gang("a", "q11", LOW, pods=4), gang("b", "q12", LOW, pods=4)],
            [cohort("q1", borrowing=1)],
        )
    )

    assert ["a"] == started(decided)
    assert {"b": "limit"} == reasons(decided)


# Reclaim in a hierarchy


def test_kueue_3948_reclaim_reaches_a_queue_of_another_level() -> None:
    decided = decide(
        cluster(
            [node("n", 1)],
            [queue("best-effort", 0), queue("guaranteed", 1, "inner")],
            [gang("best", "best-effort", LOW, on="n"), gang("own", "guaranteed", at=1)],
            [cohort("inner")],
        )
    )

    (eviction,) = decided.evictions
    assert ("best", "own", EvictionRule.RECLAIM) == (
        eviction.workload,
        eviction.preemptor,
        eviction.rule,
    )
    assert TreeNode(NodeKind.COHORT, "root") == eviction.level


def test_volcano_4817_a_hierarchy_does_not_prevent_reclaim_on_a_full_cluster() -> None:
    tree = [cohort("a"), cohort("b")]
    queues = [queue("a1", 2, "a"), queue("a2", 2, "a"), queue("b1", 4, "b")]
    decided = decide(
        cluster(
            [node("n", 8)],
            queues,
            [gang("greedy", "a1", LOW, pods=8, minimum=2, on="n"), gang("b", "b1", pods=4, at=1)],
            tree,
        )
    )

    assert ["b"] == nominated(decided)
    assert 4 == len(decided.evictions[0].pods)


def test_volcano_4679_a_full_cluster_does_not_keep_out_who_would_reclaim() -> None:
    """No gang has to fit before it may have others evicted: there is no gate before reclaim."""
    decided = decide(
        cluster(
            [node(f"n{at}", 8) for at in range(4)],
            [queue("a1", 8, "a"), queue("a2", 8, "a"), queue("b", 16)],
            [
                *(gang(f"low{at}", "a1", LOW, gpus=8, on=f"n{at}", at=at) for at in range(4)),
                gang("want", "b", pods=2, gpus=8, at=9),
            ],
            [cohort("a")],
        )
    )

    assert ["low3", "low2"] == evicted(decided)
    assert ["want"] == nominated(decided)


def test_volcano_4658_resources_without_a_quota_do_not_stand_in_the_way_of_reclaim() -> None:
    """The pods ask for CPU and memory, too; the queues have quotas of GPUs only."""
    decided = decide(
        cluster(
            [node("n", 4)],
            [queue("q1", 2), queue("q2", 2)],
            [
                gang("one", "q2", LOW, pods=2, on="n"),
                gang("two", "q2", LOW, pods=2, on="n", at=1),
                gang("own", "q1", pods=2, at=2),
            ],
        )
    )

    assert ["two"] == evicted(decided)


def test_volcano_4808_reclaim_takes_the_last_pod_as_well() -> None:
    """The owner wants all 4 GPUs: the borrower, which runs with 1 of 4, keeps none."""
    simulation = Simulation(
        cluster(
            [node("n", 4)],
            [queue("q1", 4), queue("ql1", 0)],
            [gang("low", "ql1", LOW, pods=4, minimum=1, on="n"), gang("high", "q1", pods=4, at=1)],
        )
    )

    simulation.settle()

    assert ["high"] == simulation.running
