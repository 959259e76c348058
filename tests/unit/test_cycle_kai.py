"""The preset kai: what its values decide otherwise than the default."""

from __future__ import annotations

import pytest

from bough.core.cycle.claim import Claim
from bough.core.cycle.cycle import Cycle
from bough.core.cycle.decide_pod_gang import serve_pods
from bough.core.cycle.plan import plan
from bough.core.cycle.preemption import PreemptionSearch
from bough.core.cycle.victim import Victim
from bough.model.admission_rules import (
    AdmissionRules,
    Preemption,
    PreemptionWithinQueue,
    ReclaimWithinCohort,
)
from bough.model.gang import Gang
from bough.model.gang_rules import VictimSearch
from bough.model.plan import Plan
from bough.model.policy import KAI, KAI_FAIR, Policy
from bough.model.snapshot import Progress, Snapshot
from tests.cycle_gangs import (
    LOW,
    NORMAL,
    cluster,
    cohort,
    evicted,
    gang,
    node,
    nominated,
    queue,
    reasons,
)
from tests.simulation import Simulation, replace

MIDDLE = 75


def decide_kai(snapshot: Snapshot, **rules: object) -> Plan:
    return plan(snapshot, replace(KAI_FAIR, gangs=replace(KAI_FAIR.gangs, **rules)))


def preemptible(made: Gang, priority: int) -> Gang:
    return replace(made, priority=priority, preemptible=True)


# What a gang has beyond its minimum has the gang's own rank


def elastic_beside(waiting: Gang, running: Gang) -> Snapshot:
    return cluster([node("n", 2)], [queue("a", 2), queue("b", 0)], [running, waiting])


@pytest.mark.parametrize(("priority", "victims"), [(LOW, []), (MIDDLE, ["has"])])
def test_surplus_in_the_same_queue_goes_only_for_a_higher_priority(
    priority: int, victims: list[str]
) -> None:
    world = elastic_beside(
        preemptible(gang("new", "a", at=1), priority),
        gang("has", "a", LOW, pods=2, minimum=1, on="n"),
    )

    assert victims == evicted(decide_kai(world))


def test_surplus_of_what_is_not_preemptible_is_kept() -> None:
    world = elastic_beside(gang("new", "a", LOW, at=1), gang("has", "b", pods=2, minimum=1, on="n"))

    assert [] == evicted(decide_kai(world))
    assert ["has"] == evicted(decide_kai(world, growth_borrows=True))


@pytest.mark.parametrize(("growth_borrows", "victims"), [(False, ["lower"]), (True, ["has"])])
@pytest.mark.parametrize("where", ["a", "b"])
def test_surplus_goes_after_gangs_of_a_lower_priority(
    where: str, growth_borrows: bool, victims: list[str]
) -> None:
    """In the own queue, where the gang preempts, as in another, from which it reclaims."""
    world = cluster(
        [node("n", 3)],
        [queue("a", 1), queue("b", 0)],
        [
            preemptible(gang("has", where, pods=2, minimum=1, on="n"), MIDDLE),
            gang("lower", where, LOW, on="n"),
            preemptible(gang("new", "a", at=1), 90),
        ],
    )

    assert victims == evicted(decide_kai(world, growth_borrows=growth_borrows))


def test_of_one_priority_surplus_goes_before_gangs() -> None:
    world = cluster(
        [node("n", 3)],
        [queue("a", 3)],
        [
            gang("has", "a", LOW, pods=2, minimum=1, on="n"),
            gang("newer", "a", LOW, on="n", at=1),
            preemptible(gang("new", "a", at=2), MIDDLE),
        ],
    )

    decided = decide_kai(world)

    assert [("has", 1)] == [(each.workload, len(each.pods)) for each in decided.evictions]


# What gave way does not take back


@pytest.mark.parametrize("policy", [KAI, KAI_FAIR], ids=lambda each: each.name)
def test_a_gang_takes_nothing_from_the_one_that_it_gave_way_to(policy: Policy) -> None:
    world = cluster(
        [node("n", 2)],
        [queue("a", 2), queue("b", 0)],
        [gang("has", "b", LOW, pods=2, on="n"), preemptible(gang("new", "a", pods=2, at=1), LOW)],
    )
    gave_way = replace(world, progress={"new": Progress(gave_way_to=("has",))})

    assert ["has"] == evicted(plan(world, policy))
    assert [] == evicted(plan(gave_way, policy))


# What is idle is not given away


def test_nothing_starts_in_idle_room_where_that_is_not_given_away() -> None:
    world = cluster([node("n", 2)], [queue("a", 2)], [gang("new", "a", pods=2, minimum=1)])

    assert 2 == len(decide_kai(world).binds)
    decided = decide_kai(world, allocate=False, consolidation=0, move_victims=False)
    assert ((), {"new": "place"}) == (decided.binds, reasons(decided))
    (wait,) = decided.waits
    told = "the policy gives no free room away (gangs.allocate), and no others make room for 1 pod"
    assert f"{told} of 1 GPU" == wait.message


def test_what_victims_are_taken_for_starts_all_the_same() -> None:
    """It gets what it needs; what else was freed with that is not given away."""
    world = cluster(
        [node("n", 2)],
        [queue("a", 2), queue("b", 0)],
        [
            gang("has", "b", LOW, gpus=2, on="n"),
            gang("new", "a", pods=2, minimum=1, at=1),
            gang("late", "a", at=2),
        ],
    )

    decided = decide_kai(world, allocate=False, consolidation=0, move_victims=False)
    (nomination,) = decided.nominations

    assert {"new-0": "n"} == nomination.pods


def test_nothing_ends_for_what_would_fit_without_that() -> None:
    gangs = [gang("has", "b", LOW, on="n"), gang("new", "a", at=1)]
    world = cluster([node("n", 2)], [queue("a", 2), queue("b", 0)], gangs)

    assert [] == evicted(decide_kai(world, allocate=False))


# Growth takes victims as the gang may


def growing(quota: int, minimum: int = 1) -> Snapshot:
    return cluster(
        [node("n", 4)],
        [queue("a", quota), queue("b", 0)],
        [
            gang("grows", "a", LOW, pods=4, minimum=minimum, on=("n",)),
            gang("has", "b", LOW, pods=3, minimum=1, on="n", at=1),
        ],
    )


@pytest.mark.parametrize(("quota", "pods"), [(1, [("has-2",)]), (4, [("has-2",)])])
def test_one_optional_pod_is_reclaimed_in_a_cycle_up_to_the_fair_share(
    quota: int, pods: list[tuple[str, ...]]
) -> None:
    assert pods == [each.pods for each in decide_kai(growing(quota)).evictions]


def test_a_gang_that_was_just_given_room_takes_no_more_for_growth() -> None:
    """It lacks one pod that it needs, and wants two more."""
    (nomination,) = decide_kai(growing(4, minimum=2)).nominations

    assert {"grows-1": "n"} == nomination.pods


def test_growth_that_borrows_takes_no_victims() -> None:
    assert [] == evicted(decide_kai(growing(4), growth_borrows=True))


# The priority of queues


def test_of_two_queues_within_their_quota_the_one_of_higher_priority_goes_first() -> None:
    queues = [queue("a", 1), replace(queue("b", 1), priority=101)]
    gangs = [gang("old", "a"), gang("new", "b", at=1)]

    assert ["old"] == [*reasons(decide_kai(cluster([node("n", 1)], queues, gangs)))]


def test_a_queue_that_borrows_waits_for_one_of_lower_priority_that_does_not() -> None:
    queues = [queue("a", 1), replace(queue("b", 0), priority=101)]
    gangs = [gang("within", "a", LOW, at=1), gang("beyond", "b", LOW)]

    assert ["beyond"] == [*reasons(decide_kai(cluster([node("n", 1)], queues, gangs)))]


# What is preemptible takes back only what each node above it has room for


def teams(deserved: int, *gangs: Gang) -> Snapshot:
    """4 GPUs. Of team a only its first queue deserves some, and of team b none."""
    queues = [queue("a1", deserved, "a"), queue("a2", 0, "a"), queue("b1", 0, "b")]
    return cluster([node("n", 4)], queues, [*gangs], [cohort("a"), cohort("b")])


def test_a_team_beyond_its_quota_takes_up_to_its_fair_share() -> None:
    """It would have 3 of 4 GPUs, and that is fair; the other has 2, and 1 would be."""
    world = teams(
        2,
        gang("sibling", "a2", pods=2, on="n"),
        gang("other", "b1", LOW, pods=2, on="n"),
        gang("new", "a1", LOW, at=1),
    )

    assert ["other"] == evicted(decide_kai(world))


def test_what_a_sibling_gives_back_makes_room_in_the_quota_of_their_team() -> None:
    world = teams(
        4,
        gang("sibling", "a2", LOW, pods=2, on="n", at=1),
        gang("other", "b1", LOW, pods=2, on="n"),
        gang("new", "a1", LOW, pods=4, at=2),
    )

    assert ["other", "sibling"] == evicted(decide_kai(world))


def test_what_a_sibling_gives_back_in_turn_lets_others_give_too() -> None:
    """Of 16 GPUs, 8 for each team: with it the first would have 9, so the other gives nothing yet.

    The newest of the sibling goes then, though the smaller one would do, and two pods of the other.
    """
    queues = [queue("a1", 0, "a"), queue("a2", 0, "a"), queue("b1", 0, "b")]
    world = cluster(
        [node("n", 16)],
        queues,
        [
            gang("small", "a2", LOW, on="n"),
            gang("kept", "a2", LOW, pods=2, on="n"),
            gang("newest", "a2", LOW, pods=2, on="n", at=1),
            gang("other", "b1", LOW, pods=11, minimum=1, on="n"),
            gang("new", "a1", LOW, pods=4, at=2),
        ],
        [cohort("a"), cohort("b")],
    )

    decided = decide_kai(world)

    ends = {each.workload: len(each.pods) for each in decided.evictions}
    assert {"newest": 0, "other": 2} == ends
    assert ["new"] == nominated(decided)


def test_others_do_not_give_for_what_a_sibling_would_not_really_give() -> None:
    """The sibling is on a node where the gang does not go: it would stay, and the side have 10."""
    queues = [queue("a1", 0, "a"), queue("a2", 0, "a"), queue("b1", 0, "b")]
    gangs = [
        gang("kept", "a2", pods=5, on="m"),
        gang("newest", "a2", LOW, on="m", at=1),
        gang("other", "b1", LOW, pods=6, gpus=2, minimum=1, on="n"),
        gang("new", "a1", LOW, gpus=4, at=2),
    ]
    nodes = [node("m", 6), node("n", 12)]

    assert [] == evicted(decide_kai(cluster(nodes, queues, gangs, [cohort("a"), cohort("b")])))


# Minimum runtimes of queues


@pytest.mark.parametrize(
    ("taker", "node_name", "field", "safe_ms", "victims"),
    [
        ("other", "team", "reclaim_min_runtime_ms", 5_001, []),
        ("other", "team", "reclaim_min_runtime_ms", 5_000, ["low"]),
        ("other", "team", "preempt_min_runtime_ms", 5_001, ["low"]),
        ("other", "queue", "reclaim_min_runtime_ms", 5_001, ["low"]),
        ("sibling", "queue", "reclaim_min_runtime_ms", 5_001, []),
        ("sibling", "team", "reclaim_min_runtime_ms", 5_001, ["low"]),
        ("queue", "queue", "preempt_min_runtime_ms", 5_001, []),
        ("queue", "queue", "reclaim_min_runtime_ms", 5_001, ["low"]),
    ],
)
def test_a_gang_is_safe_for_as_long_as_its_side_of_the_tree_says(
    taker: str, node_name: str, field: str, safe_ms: int, victims: list[str]
) -> None:
    """A queue speaks for its own work; towards others the highest node that only it is below."""
    gangs = [
        gang("low", "queue", LOW, on="n", started=5_000),
        preemptible(gang("new", taker, at=1), MIDDLE),
    ]
    cohorts = [cohort("team"), cohort("others")]
    queues = [
        queue("queue", 0, "team"),
        queue("sibling", int(taker == "sibling"), "team"),
        queue("other", int(taker == "other"), "others"),
    ]
    world = cluster([node("n", 1)], queues, gangs, cohorts, now_ms=10_000)
    safe = {
        "cohorts": tuple(
            replace(each, **{field: safe_ms}) if each.name == node_name else each
            for each in world.cohorts
        ),
        "queues": tuple(
            replace(each, **{field: safe_ms}) if each.name == node_name else each
            for each in world.queues
        ),
    }

    assert victims == evicted(decide_kai(replace(world, **safe)))


def test_a_queue_may_say_less_than_the_policy() -> None:
    queues = [queue("a", 1), replace(queue("b", 0), reclaim_min_runtime_ms=0)]
    gangs = [gang("low", "b", LOW, on="n", started=5_000), gang("new", "a", at=1)]
    world = cluster([node("n", 1)], queues, gangs, now_ms=5_001)

    assert ["low"] == evicted(decide_kai(world, minimum_runtime_ms=60_000))


@pytest.mark.parametrize(("of_team", "of_queue", "victim"), [(99, 100, "old"), (100, 99, "new")])
def test_the_lower_of_two_queues_gives_back_first(of_team: int, of_queue: int, victim: str) -> None:
    """Nodes are compared that stand beside each other below the common one."""
    newer = replace(queue("c", 0), created_ms=1)
    queues = [queue("a", 1), replace(queue("b", 0, "team"), priority=of_queue), newer]
    gangs = [
        gang("old", "b", LOW, on="n"),
        gang("new", "c", LOW, on="n", at=1),
        gang("want", "a", at=2),
    ]
    world = cluster([node("n", 2)], queues, gangs, [replace(cohort("team"), priority=of_team)])

    assert [victim] == evicted(decide_kai(world))


# What was freed for a queue is not taken away


def test_a_victim_does_not_take_its_room_back_while_its_queue_has_the_better_turn() -> None:
    """Of b stands first what is far too large, so a would have its turn before b: for ever."""
    gangs = [
        gang("stays", "a", LOW, gpus=2, on="n"),
        gang("goes", "a", LOW, on="n", at=1),
        gang("has", "b", LOW, on="n", at=2),
        gang("large", "b", LOW, gpus=3, at=3),
        gang("fits", "b", LOW, at=4),
    ]
    simulation = Simulation(
        cluster([node("n", 4)], [queue("a", 2), queue("b", 2)], gangs), KAI_FAIR
    )

    simulation.settle()

    assert ["fits", "has", "stays"] == simulation.running


def test_what_ended_for_the_growth_of_another_does_not_come_back_before_it() -> None:
    """A newer one of the same priority ends where its queue says so; it lacks more than growth."""
    newer = PreemptionWithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY
    rules = AdmissionRules(preemption=Preemption(within_queue=newer))
    gangs = [
        gang("grows", "a", pods=2, minimum=1, on=("n",)),
        preemptible(gang("newer", "a", on="n", at=1), NORMAL),
    ]
    world = cluster([node("n", 2)], [replace(queue("a", 2), rules=rules)], gangs)
    simulation = Simulation(world, KAI_FAIR)

    simulation.settle()

    assert ["grows"] == simulation.running


def test_within_the_queue_that_goes_first_for_which_others_were_told_to_end() -> None:
    """Victims of a higher rank would come back before it, and end again, for ever."""
    world = cluster(
        [node("n", 1)], [queue("a", 1)], [gang("first", "a"), gang("second", "a", at=1)]
    )

    decided = decide_kai(replace(world, progress={"second": Progress(nominated=True)}))

    assert ["second-0"] == [each.pod for each in decided.binds]


@pytest.mark.parametrize(
    ("search", "ended"), [(VictimSearch.IN_ORDER, ["new", "newer"]), (VictimSearch.FEWEST, ["old"])]
)
def test_victims_are_taken_in_their_order_or_those_that_break_the_fewest_gangs(
    search: VictimSearch, ended: list[str]
) -> None:
    gangs = [
        gang("old", "b", LOW, gpus=2, on="n"),
        gang("new", "b", LOW, on="n", at=1),
        gang("newer", "b", LOW, on="n", at=2),
        gang("want", "a", gpus=2, at=3),
    ]
    world = cluster([node("n", 4)], [queue("a", 2), queue("b", 0)], gangs)

    assert ended == sorted(evicted(decide_kai(world, victim_search=search)))


# What an eviction leaves over


def test_what_an_eviction_leaves_over_goes_to_one_that_was_refused_before_it() -> None:
    """The emptier queue goes first, but takes nothing from others: the next one does."""
    never = AdmissionRules(preemption=Preemption(reclaim_within_cohort=ReclaimWithinCohort.NEVER))
    world = cluster(
        [node("n", 4)],
        [replace(queue("modest", 3), rules=never), queue("owner", 1), queue("guest", 0)],
        [
            gang("runs", "guest", LOW, pods=4, on=("n",) * 4),
            *(gang(f"m{number}", "modest", LOW, at=number) for number in range(4)),
            gang("takes", "owner", LOW),
        ],
    )

    decided = plan(world, KAI_FAIR)

    assert ["runs"] == evicted(decided)
    assert ["takes", "m0", "m1", "m2"] == nominated(decided)
    assert ["m3"] == list(reasons(decided))


# What no end of others would help


def test_no_victims_are_looked_for_where_no_node_is_large_enough(monkeypatch: pytest.MonkeyPatch):
    searched: list[str] = []

    class Counted(PreemptionSearch):
        def victims(self) -> list[Victim]:
            searched.append(self._preemptor.standing.name)
            return super().victims()

    monkeypatch.setattr("bough.core.cycle.decide_pod_gang.PreemptionSearch", Counted)
    large = preemptible(gang("large", "a", gpus=3, at=1), NORMAL)
    has = gang("has", "b", LOW, gpus=2, on="n")
    world = cluster([node(name, 2) for name in "nmk"], [queue("a", 6), queue("b", 0)], [has, large])

    decided = decide_kai(world)

    assert ({"large": "place"}, []) == (reasons(decided), searched)


# What it costs to try again


def test_what_was_refused_is_tried_again_once_however_many_take_from_others(
    monkeypatch: pytest.MonkeyPatch,
):
    served: list[str] = []

    def counting(cycle: Cycle, claim: Claim, *, takes: bool) -> bool:
        served.append(claim.name)
        return serve_pods(cycle, claim, takes=takes)

    monkeypatch.setattr("bough.core.cycle.plan.serve_pods", counting)

    def count(owners: int) -> int:
        """Each owner has a gang that fits nowhere, and then one for which others end."""
        nodes = [node(f"n{number}") for number in range(2 * owners)]
        names = [f"own-{number}" for number in range(owners)]
        runs = [
            gang(f"low-{number}", "borrower", LOW, on=f"n{number // 8}", at=number)
            for number in range(16 * owners)
        ]
        large = [
            gang(f"large-{name}", name, LOW, pods=2 * owners + number + 1, gpus=8, at=1)
            for number, name in enumerate(names)
        ]
        takes = [gang(f"takes-{name}", name, LOW, at=2) for name in names]
        queues = [queue("borrower", 0), *(queue(name, 8) for name in names)]
        served.clear()
        decided = plan(cluster(nodes, queues, [*runs, *large, *takes]), KAI_FAIR)
        assert owners == len(evicted(decided))
        return len(served)

    assert 2 * count(4) == count(8)
