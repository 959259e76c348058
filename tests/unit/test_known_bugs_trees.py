"""Public bugs of other schedulers, continued: trees, topology, subgroups, elasticity."""

from __future__ import annotations

from fractions import Fraction

from bough.core.quota.tree import QuotaTree
from bough.model.cluster import Resources
from bough.model.gang import Gang, Pod, PodState, SubGroup, TopologyConstraint
from bough.model.pod_group import PodGroup, SubGroupSpec
from bough.model.quota import (
    FlavorQuotas,
    FlavorResource,
    NodeKind,
    Queue,
    Quota,
    ResourceGroup,
    TreeNode,
)
from tests.checked import check_gangs, pod_group
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
from tests.deciding import decide
from tests.simulation import Simulation, changes, pods_in, replace, started

GPU = FlavorResource("any", "gpu")

# Trees that others refuse, or break down on


def test_volcano_4818_quotas_that_add_up_to_more_than_the_parent_stop_nothing() -> None:
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


def test_kueue_12570_a_negative_quota_takes_from_the_tree_and_gives_nothing() -> None:
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


def test_kueue_10815_nothing_is_evicted_for_quota_that_has_no_place() -> None:
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
        each.field for each in check_gangs(pod_group(PodGroup("g", min_member=0)))
    ]


def test_kai_1224_a_subgroup_that_needs_nothing_is_refused() -> None:
    made = PodGroup("g", min_sub_group=1, subgroups=(SubGroupSpec("r", min_member=0),))

    assert ["spec.subGroups[0].minMember"] == [each.field for each in check_gangs(pod_group(made))]


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
