"""The cycle over gangs: protection of what runs, growth, flavors."""

from __future__ import annotations

import pytest

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.model.cluster import Resources
from bough.model.gang import Gang, Pod, PodState
from bough.model.gang_rules import GangRules
from bough.model.plan import EvictionRule
from bough.model.policy import OSMO
from bough.model.quota import FlavorQuotas, Queue, Quota, ResourceGroup
from bough.model.snapshot import Snapshot
from tests.cycle_gangs import (
    LOW,
    NORMAL,
    RACK,
    cluster,
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

# Protection of what runs


def reclaimable(started_ms: int) -> Snapshot:
    return cluster(
        [node("n", 2)],
        [queue("a", 2), queue("b", 0)],
        [
            gang("low", "b", LOW, pods=2, minimum=1, on="n", started=started_ms),
            gang("want", "a", pods=2, at=9),
        ],
        now_ms=10_000,
    )


@pytest.mark.parametrize(("started_ms", "victims"), [(5_000, ["low"]), (5_001, [])])
def test_a_gang_is_not_broken_before_it_has_run_for_the_minimum(
    started_ms: int, victims: list[str]
) -> None:
    assert victims == evicted(decide(reclaimable(started_ms), minimum_runtime_ms=5_000))


def test_surplus_is_given_back_at_any_time() -> None:
    world = reclaimable(9_999)
    world = replace(world, gangs={**world.gangs, "a": (gang("want", "a", at=9),)})

    (eviction,) = decide(world, minimum_runtime_ms=5_000).evictions

    assert ("low-1",) == eviction.pods


def test_the_clock_is_news_for_a_memo_only_where_it_matters() -> None:
    policy = replace(OSMO, gangs=GangRules(minimum_runtime_ms=5_000))
    memo = Memo()
    world = reclaimable(5_001)
    assert [] == evicted(plan(world, policy, memo))

    later = replace(world, now_ms=10_001)

    assert ["low"] == evicted(plan(later, policy, memo))


def many_low() -> Snapshot:
    return cluster(
        [node("n1", 4, "x"), node("n2", 4, "y")],
        [queue("a", 8), queue("b", 0)],
        [
            *(gang(f"x{at}", "b", LOW, on="n1", at=at) for at in range(4)),
            *(gang(f"y{at}", "b", LOW, on="n2", at=10 + at) for at in range(4)),
            gang("two", "a", pods=2, gpus=1, constraint=RACK, at=20),
            gang("one", "a", at=21),
        ],
    )


@pytest.mark.parametrize(
    ("limit", "victims"),
    [(None, ["y3", "y2", "y1"]), (3, ["y3", "y2", "y1"]), (2, ["y3", "y2"]), (1, ["y3"]), (0, [])],
)
def test_a_cycle_evicts_no_more_workloads_than_it_may(
    limit: int | None, victims: list[str]
) -> None:
    assert victims == evicted(decide(many_low(), eviction_limit=limit))


def test_the_limit_counts_only_those_that_are_really_evicted() -> None:
    """The newest is on a node that is of no use: trying it takes nothing from the limit."""
    world = cluster(
        [node("n1", 4, "x"), node("n2", 1, "y")],
        [queue("a", 4), queue("b", 0)],
        [
            gang("old", "b", LOW, pods=4, on="n1"),
            gang("new", "b", LOW, on="n2", at=1),
            gang("want", "a", pods=4, constraint=RACK, at=2),
        ],
    )

    assert ["old"] == evicted(decide(world, eviction_limit=1))


def test_a_queue_is_not_brought_down_to_its_quota_by_those_that_are_of_no_use() -> None:
    """b is 2 above its quota. The newest of it would use that up, and frees no node with 2 GPUs."""
    world = cluster(
        [node("n0", 4), node("n1", 2)],
        [queue("a", 2), queue("b", 4)],
        [
            gang("old", "b", LOW, pods=4, on=("n1", "n0", "n0", "n0")),
            gang("new", "b", LOW, pods=2, on=("n0", "n1"), at=1),
            gang("want", "a", gpus=2, at=2),
        ],
    )

    assert ["old"] == evicted(decide(world))


# Stale gangs


def stale(since: int | None) -> Snapshot:
    """A gang that needs 2 pods and runs with 1; the other has failed."""
    made = gang("stale", "q", LOW, pods=2, on=("n",))
    pods = (made.pods[0], replace(made.pods[1], state=PodState.FAILED))
    return cluster(
        [node("n", 2)],
        [queue("q", 2)],
        [replace(made, pods=pods, stale_since_ms=since)],
        now_ms=100_000,
    )


@pytest.mark.parametrize(
    ("since", "grace", "victims"),
    [
        (40_000, 60_000, ["stale"]),
        (40_001, 60_000, []),
        (None, 60_000, []),
        (99_999, 0, ["stale"]),
        (0, None, []),
    ],
)
def test_a_gang_that_lacks_something_is_ended_after_its_grace(
    since: int | None, grace: int | None, victims: list[str]
) -> None:
    decided = decide(stale(since), staleness_grace_ms=grace)

    assert victims == evicted(decided)
    assert {EvictionRule.STALE} >= {each.rule for each in decided.evictions}


def test_a_stale_gang_that_is_a_victim_is_told_once() -> None:
    world = stale(0)
    world = replace(
        world, gangs={"q": (*world.gangs["q"], gang("want", "q", pods=2, gpus=1, at=1))}
    )

    decided = decide(world)

    assert [("stale", EvictionRule.PREEMPT)] == [(e.workload, e.rule) for e in decided.evictions]


def test_a_stale_gang_that_can_be_completed_is() -> None:
    made = gang("g", "q", pods=2, on=("n",))
    world = cluster([node("n", 2)], [queue("q", 2)], [replace(made, stale_since_ms=0)])

    assert ["g"] == started(decide(world))


# Victims and cores


def test_an_elastic_victim_is_not_restarted_in_the_cycle_that_breaks_it() -> None:
    """Its pods that wait would fit into what it leaves behind."""
    world = cluster(
        [node("n", 4)],
        [queue("q", 4)],
        [
            gang("low", "q", LOW, pods=4, gpus=2, minimum=2, on=("n", "n")),
            gang("want", "q", pods=3, at=1),
        ],
    )

    decided = decide(world)

    assert ["low"] == evicted(decided)
    assert ["want"] == nominated(decided)


def test_growth_that_would_make_a_larger_core_needs_the_quota_for_it() -> None:
    """The small replica started within quota; the large one, first in the spec, would be core."""
    made = replicas("g", "q", {"large": 3, "small": 1}, needed=1, on={"small": "n"})
    within = cluster([node("n", 4)], [queue("q", 3), queue("r", 1)], [made])
    beyond = cluster([node("n", 4)], [queue("q", 2), queue("r", 2)], [made])

    assert 3 == len(decide(within).binds)
    assert 0 == len(decide(beyond).binds)


def test_what_a_gang_gets_beyond_its_minimum_may_exceed_its_quota() -> None:
    world = cluster(
        [node("n", 4)], [queue("q", 2), queue("r", 2)], [gang("g", "q", pods=4, minimum=2)]
    )

    assert [False, False, True, True] == [bind.growth for bind in decide(world).binds]


def test_growth_goes_to_who_has_grown_least() -> None:
    world = cluster(
        [node("n", 7)],
        [queue("q", 7)],
        [
            gang("grown", "q", pods=6, minimum=1, on=("n", "n", "n")),
            gang("fresh", "q", pods=6, minimum=1, at=1),
        ],
    )

    decided = decide(world)

    assert ["fresh", "fresh", "fresh", "grown"] == [bind.workload for bind in decided.binds]


# Flavors


def two_flavors(big: int, small: int) -> Queue:
    quotas = (
        FlavorQuotas("big", {"gpu": Quota(big)}),
        FlavorQuotas("small", {"gpu": Quota(small)}),
    )
    return Queue("q", None, (ResourceGroup(("gpu",), quotas),))


def flavored(name: str, flavor: str | None) -> object:
    return replace(node(name, 2), flavor=flavor)


def test_the_second_flavor_is_used_where_the_first_has_no_quota() -> None:
    world = cluster([node("n", 1)], [], [])
    world = replace(
        world,
        cohorts=(),
        queues=(two_flavors(1, 2),),
        nodes=(flavored("n1", "big"), flavored("n2", "small")),
        gangs={"q": (gang("pair", "q", pods=2),)},
    )

    assert ["n2", "n2"] == [bind.node for bind in decide(world).binds]


def test_a_node_without_flavor_counts_as_the_first_and_only_as_that() -> None:
    """Else what was admitted as the second flavor would be counted as the first ever after."""
    world = cluster([node("n", 1)], [], [])
    world = replace(
        world,
        cohorts=(),
        queues=(two_flavors(1, 2),),
        nodes=(flavored("n1", None),),
        gangs={"q": (gang("pair", "q", pods=2), gang("one", "q", at=1))},
    )

    assert ["one"] == started(decide(world))


def test_a_queue_without_quota_of_gpus_has_none_where_others_have() -> None:
    world = cluster([node("n", 4)], [queue("q", 2), Queue("bare", "root")], [gang("g", "bare")])
    world = replace(
        world,
        gangs={
            "bare": (gang("g", "bare"), gang("low", "bare", LOW), gang("cpu", "bare", gpus=0, at=1))
        },
    )

    decided = decide(world)

    assert ["cpu"] == started(decided)
    assert {"g", "low"} == set(reasons(decided))


def test_no_queue_counts_gpus_so_none_is_short_of_them() -> None:
    world = replace(cluster([node("n", 4)], [], []), cohorts=(), queues=(Queue("bare"),))
    world = replace(world, gangs={"bare": (gang("g", "bare", pods=4),)})

    assert ["g"] == started(plan(world, OSMO))


# The memo


def test_a_memo_answers_at_once_where_nothing_has_changed() -> None:
    world = cluster([node("n", 1)], [queue("q", 1)], [gang("g", "q", pods=2)])
    memo = Memo()
    first = plan(world, OSMO, memo)

    second = plan(replace(world, version=7), OSMO, memo)

    assert replace(first, version=7) == second
    assert second.waits is first.waits


def test_pods_of_different_sizes_count_what_was_really_chosen() -> None:
    """The first candidate needs a node that there is not; the second, larger, exceeds the quota."""
    pods = (
        Pod("small", None, Resources(gpus=1), node_selector={"disk": "fast"}),
        Pod("large", None, Resources(gpus=3)),
    )
    world = cluster([node("n", 4)], [queue("q", 2)], [Gang("g", "q", pods, minimum=1)])

    decided = decide(world)

    assert not changes(decided)
    assert ["g"] == list(reasons(decided))


def test_a_gang_gives_back_only_what_is_needed() -> None:
    simulation = Simulation(
        cluster(
            [node("n", 4)],
            [queue("a", 2), queue("b", 2)],
            [gang("low", "b", LOW, pods=4, minimum=1, on="n"), gang("one", "a", NORMAL, at=1)],
        )
    )

    simulation.settle()

    assert 3 == len(pods_in(simulation.gangs["low"], PodState.RUNNING))
