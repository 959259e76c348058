"""Public bugs of other schedulers that the osmo preset does not have, each by its number.

kueue: kubernetes-sigs/kueue; kai: kai-scheduler/KAI-Scheduler; volcano: volcano-sh/volcano; grove:
ai-dynamo/grove; yunikorn: the tracker of Apache YuniKorn.
"""

from __future__ import annotations

from fractions import Fraction

from bough.core.cycle.plan import plan
from bough.core.gang.validation import check_pod_group
from bough.core.quota.tree import QuotaTree
from bough.model.cluster import Resources
from bough.model.gang import Gang, Pod, PodState, SubGroup, TopologyConstraint
from bough.model.plan import EvictionRule, Plan
from bough.model.podgroup import PodGroup, SubGroupSpec
from bough.model.policy import OSMO
from bough.model.quota import (
    FlavorQuotas,
    FlavorResource,
    NodeKind,
    Queue,
    Quota,
    ResourceGroup,
    TreeNode,
)
from bough.model.snapshot import Snapshot
from tests.cycle_gangs import (
    HIGH,
    LOW,
    NORMAL,
    RACK,
    cluster,
    cohort,
    evicted,
    gang,
    node,
    nominated,
    queue,
    reasons,
    replicas,
)
from tests.simulation import Simulation, changes, pods_in, replace, started

GPU = FlavorResource("any", "gpu")


def decide(snapshot: Snapshot) -> Plan:
    return plan(snapshot, OSMO)


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


def test_kueue_6947_a_head_that_can_never_start_evicts_nobody_and_starves_nobody() -> None:
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


def test_kueue_15211_what_is_ending_already_counts_before_anybody_else_is_evicted() -> None:
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
    """Nobody has to fit before it may have others evicted: there is no gate before reclaim."""
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


# Trees that others refuse, or break down on


def test_volcano_4818_quotas_that_add_up_to_more_than_the_parent_stop_nobody() -> None:
    """Oversold on purpose: everybody is served in order, and never more than there is."""
    decided = decide(
        cluster(
            [node("n", 4)],
            [queue("a", 3, "org"), queue("b", 3, "org"), queue("c", 2)],
            [
                gang("a1", "a", pods=3),
                gang("b1", "b", pods=3, at=1),
                gang("c1", "c", at=2),
                gang("c2", "c", at=3),
            ],
            [cohort("org", gpus=-2)],
        )
    )

    assert ["a1", "c1"] == started(decided)
    assert {"b1": "quota", "c2": "quota"} == reasons(decided)


def test_volcano_4363_a_child_with_more_than_its_parent_is_no_exception() -> None:
    decided = decide(
        cluster(
            [node("n", 4)],
            [queue("child", 6, "parent"), queue("other", 2)],
            [
                gang("large", "child", pods=5),
                gang("fits", "child", pods=2, at=1),
                gang("o", "other"),
            ],
            [cohort("parent", gpus=-4)],
        )
    )

    assert ["o", "fits"] == started(decided)
    assert {"large": "quota"} == reasons(decided)


def test_kai_1923_every_resource_is_counted_and_not_only_one() -> None:
    both = (
        ResourceGroup(
            ("cpu", "gpu"), (FlavorQuotas("any", {"cpu": Quota(4000), "gpu": Quota(4)}),)
        ),
    )
    world = cluster([node("n", 8)], [queue("q", 4)], [])
    world = replace(
        world,
        queues=(Queue("q", None, both),),
        gangs={"q": (gang("gpus", "q", pods=1, gpus=5), gang("cpus", "q", LOW, pods=5, gpus=0))},
    )

    decided = decide(world)

    assert {"gpus": "quota", "cpus": "limit"} == reasons(decided)


def test_kai_1881_no_limit_is_not_a_number_that_could_be_added_up() -> None:
    tree = QuotaTree.of(
        [cohort("root", None)], [queue("a", 2), queue("b", 2, borrowing=1), queue("c", 0)]
    )

    assert 4 == tree.available(TreeNode(NodeKind.QUEUE, "c"), GPU)
    assert 3 == tree.available(TreeNode(NodeKind.QUEUE, "b"), GPU)


def test_kai_2167_weights_are_exact() -> None:
    """0.1 + 0.2 is 0.3: who has a tenth and who has two tenths share 9 GPUs as 3 and 6."""
    world = cluster(
        [node("n", 9)],
        [queue("tenth", 0), queue("fifth", 0)],
        [gang(f"{name}-{at}", name, LOW) for name in ("tenth", "fifth") for at in range(9)],
    )
    weights = {"tenth": Fraction("0.1"), "fifth": Fraction("0.2")}
    world = replace(
        world, queues=tuple(replace(each, weight=weights[each.name]) for each in world.queues)
    )

    served = started(decide(world))

    assert 3 == sum(name.startswith("tenth") for name in served)
    assert 6 == sum(name.startswith("fifth") for name in served)


def test_kueue_12570_a_negative_quota_takes_from_the_tree_and_gives_to_nobody() -> None:
    decided = decide(
        cluster(
            [node("n", 4)],
            [queue("bad", -2), queue("good", 4)],
            [gang("b", "bad"), gang("g", "good", pods=3, at=1), gang("f", "good", pods=2, at=2)],
            root=0,
        )
    )

    assert {"b": "quota", "g": "quota"} == reasons(decided)
    assert ["f"] == started(decided)


def test_kueue_4392_the_reason_names_the_node_and_the_numbers() -> None:
    decided = decide(
        cluster(
            [node("n", 4)],
            [queue("a", 2, "org"), queue("b", 2, "org")],
            [gang("run", "a", LOW, pods=3, on="n"), gang("low", "b", LOW, pods=2, at=1)],
            [cohort("org", borrowing=0)],
        )
    )

    (wait,) = decided.waits
    assert wait.refusal is not None
    assert TreeNode(NodeKind.COHORT, "org") == wait.refusal.node
    assert (1, 2, 1) == (wait.refusal.balance, wait.refusal.requested, wait.refusal.deficit)


# Placement and priority


def test_kueue_10815_nobody_is_evicted_for_quota_that_has_no_place() -> None:
    """A rack is needed whole. LOW, spread over both, could free quota, but no rack."""
    decided = decide(
        cluster(
            [node("n1", 4, "x"), node("n2", 4, "y")],
            [queue("a", 4), queue("b", 4), queue("c", 0)],
            [
                gang("b1", "b", pods=2, on="n1"),
                gang("b2", "b", pods=2, on="n2"),
                gang("low1", "c", LOW, pods=2, on="n1", at=1),
                gang("low2", "c", LOW, pods=2, on="n2", at=2),
                gang("want", "a", pods=4, constraint=RACK, at=3),
            ],
        )
    )

    assert [] == evicted(decided)
    assert {"want": "limit"} == reasons(decided)
    assert "nothing that may be evicted is enough" in decided.waits[0].message


def test_kueue_6972_topology_is_looked_at_before_victims_are_chosen() -> None:
    """The newest LOW is in the wrong rack: it stays, and the older one goes."""
    decided = decide(
        cluster(
            [node("n1", 4, "x"), node("n2", 4, "y")],
            [queue("a", 4), queue("b", 2), queue("c", 0)],
            [
                gang("b1", "b", pods=2, on="n2"),
                gang("old", "c", LOW, pods=4, on="n1", at=1),
                gang("new", "c", LOW, pods=2, on="n2", at=2),
                gang("want", "a", pods=4, constraint=RACK, at=3),
            ],
        )
    )

    assert ["old"] == evicted(decided)


def test_kai_2092_a_higher_priority_takes_nothing_that_is_within_another_quota() -> None:
    decided = decide(
        cluster(
            [node("n", 4)],
            [queue("a", 2), queue("b", 3)],
            [
                gang("a-low", "a", LOW, pods=2, on="n"),
                gang("b1", "b", pods=2, on="n"),
                gang("high", "b", HIGH, at=1),
            ],
            root=-1,
        )
    )

    assert [] == evicted(decided)
    assert {"high": "limit"} == reasons(decided)


def test_kai_1833_where_quotas_are_larger_than_the_cluster_priority_decides() -> None:
    """A node was lost: not everything within quota fits. HIGH starts before NORMAL."""
    decided = decide(
        cluster(
            [node("n", 2)],
            [queue("a", 2), queue("b", 2)],
            [gang("normal", "a", NORMAL, pods=2), gang("high", "b", HIGH, pods=2, at=9)],
            root=-2,
        )
    )

    assert ["high"] == started(decided)
    assert {"normal": "quota"} == reasons(decided)


# Subgroups and elasticity


def test_kai_1407_a_minimum_that_is_not_said_is_no_crash() -> None:
    world = cluster([node("n", 4)], [queue("q", 4)], [])
    pods = tuple(Pod(f"p{at}", "s", Resources(gpus=1)) for at in range(2))
    silent = Gang("silent", "q", pods, (SubGroup("s"),))

    decided = decide(replace(world, gangs={"q": (silent,)}))

    assert ["silent"] == started(decided)


def test_kai_1512_a_minimum_of_nothing_is_refused() -> None:
    assert ["spec.minMember"] == [
        each.field for each in check_pod_group(PodGroup("g", min_member=0))
    ]


def test_kai_1224_a_subgroup_that_needs_nothing_is_refused() -> None:
    made = PodGroup("g", min_sub_group=1, subgroups=(SubGroupSpec("r", min_member=0),))

    assert ["spec.subGroups[0].minMember"] == [each.field for each in check_pod_group(made)]


def test_kai_457_pods_beyond_the_minimum_are_started_too() -> None:
    decided = decide(
        cluster([node("n", 4)], [queue("q", 4)], [gang("elastic", "q", pods=4, minimum=2)])
    )

    assert [False, False, True, True] == [bind.growth for bind in decided.binds]


def test_kai_585_a_constraint_of_the_gang_holds_for_its_subgroups() -> None:
    decided = decide(
        cluster(
            [node("n1", 3, "x"), node("n2", 3, "y"), node("n3", 3, "y")],
            [queue("q", 9)],
            [replicas("g", "q", {"a": 3, "b": 3}, needed=2, constraint=RACK)],
        )
    )

    assert {"n2", "n3"} == {bind.node for bind in decided.binds}


def test_kai_443_what_is_below_its_minimum_comes_before_what_has_it() -> None:
    """One replica has all it needs and could have more, the other lacks a pod: that comes first."""
    made = Gang(
        "g",
        "q",
        (
            Pod("a-0", "a", Resources(gpus=1), PodState.RUNNING, "n"),
            Pod("a-1", "a", Resources(gpus=1)),
            Pod("b-0", "b", Resources(gpus=1)),
        ),
        (SubGroup("a", minimum=1), SubGroup("b", minimum=1)),
    )

    decided = decide(cluster([node("n", 2)], [queue("q", 4)], [made]))

    assert ["b-0"] == [bind.pod for bind in decided.binds]


def test_volcano_4871_subgroups_with_a_preferred_topology_do_start() -> None:
    near = TopologyConstraint(preferred="rack")
    made = replicas("g", "q", {"a": 2, "b": 2}, needed=2)
    subgroups = tuple(replace(each, constraint=near) for each in made.subgroups)

    decided = decide(
        cluster(
            [node("n1", 3, "x"), node("n2", 1, "y")],
            [queue("q", 4)],
            [replace(made, subgroups=subgroups)],
        )
    )

    assert ["g"] == started(decided)


def test_grove_809_a_gang_that_had_nothing_starts_when_its_pods_come_back() -> None:
    none = replace(gang("g", "q", pods=2), pods=())
    simulation = Simulation(cluster([node("n", 2)], [queue("q", 2)], [none]))
    assert {"g": "pods"} == reasons(simulation.step())

    simulation.end("g")
    simulation.submit(gang("g", "q", pods=2))

    assert ["g"] == started(simulation.step())


def test_grove_847_a_running_gang_survives_what_an_optional_replica_lacks() -> None:
    """The optional replica has lost a pod for good: the gang goes on, nothing starts in part."""
    made = replicas("g", "q", {"base": 2, "extra": 2}, needed=1, on={"base": "n"})
    pods = tuple(
        replace(pod, state=PodState.FAILED) if pod.name == "extra-1" else pod for pod in made.pods
    )

    decided = decide(cluster([node("n", 4)], [queue("q", 4)], [replace(made, pods=pods)]))

    assert not changes(decided)
    assert not decided.waits


def test_kueue_9891_a_gang_grows_while_quota_is_idle_and_gives_back_first() -> None:
    simulation = Simulation(
        cluster(
            [node("n", 4)],
            [queue("a", 2), queue("b", 2)],
            [gang("elastic", "a", pods=4, minimum=2), gang("low", "b", LOW, at=5)],
        )
    )
    simulation.settle()
    assert 3 == len(pods_in(simulation.gangs["elastic"], PodState.RUNNING))
    simulation.submit(gang("own", "b", at=9))

    (eviction,) = simulation.step().evictions

    assert ("elastic", ("elastic-2",)) == (eviction.workload, eviction.pods)


def test_kueue_6384_who_waits_starts_in_the_cycle_after_something_shrank() -> None:
    simulation = Simulation(
        cluster(
            [node("n", 4)],
            [queue("a", 4)],
            [gang("elastic", "a", pods=4, on="n"), gang("next", "a", at=1)],
        )
    )
    assert {"next": "quota"} == reasons(simulation.step())
    smaller = simulation.gangs["elastic"]
    simulation.end("elastic")
    simulation.submit(replace(smaller, pods=smaller.pods[:3], minimum=3))

    assert ["next"] == started(simulation.step())


def test_kueue_6969_what_a_running_gang_needs_more_does_preempt() -> None:
    """A gang that runs was given a larger minimum: what it lacks evicts LOW, as any need does."""
    decided = decide(
        cluster(
            [node("n", 4)],
            [queue("a", 4), queue("b", 0)],
            [
                gang("grown", "a", pods=3, minimum=3, on=("n", "n")),
                gang("low", "b", LOW, pods=2, on="n", at=1),
            ],
        )
    )

    assert ["low"] == evicted(decided)
    assert ["grown"] == nominated(decided)


def test_kueue_13646_quota_is_not_given_away_before_the_pods_are_gone() -> None:
    """The nodes have room, but what is ending still counts against the limit."""
    simulation = Simulation(
        cluster(
            [node("n", 8)],
            [queue("a", 2, borrowing=0), queue("b", 6)],
            [gang("low", "a", LOW, pods=2, on="n"), gang("want", "a", pods=2, at=1)],
        )
    )
    first = simulation.step()
    assert (["low"], ["want"], []) == (evicted(first), nominated(first), started(first))
    second = simulation.step()
    assert (["want"], []) == (nominated(second), started(second))
    simulation.end_evicted()

    assert ["want"] == started(simulation.step())
