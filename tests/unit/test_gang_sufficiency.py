from __future__ import annotations

from bough.core.gang.sufficiency import (
    can_start,
    is_complete,
    is_stale,
    is_sufficient,
    minimum_pods,
    shortages,
)
from bough.core.gang.tree import GangTree
from bough.model.gang import Gang, Pod, PodState, SubGroup
from tests.gangs import leaders_and_workers, replicas


def test_three_of_four_replicas_are_enough_where_three_are_needed():
    tree = replicas([8, 8, 8, 0], size=8, minimum=3)
    assert is_complete(tree)
    assert not is_stale(tree)


def test_two_of_four_replicas_are_stale_where_three_are_needed():
    tree = replicas([8, 8, 7, 0], size=8, minimum=3)
    assert not is_complete(tree)
    assert is_stale(tree)


def test_all_replicas_are_needed_where_no_minimum_is_said():
    assert not is_complete(replicas([8, 8, 8, 0], size=8, minimum=None))


def test_a_gang_that_holds_nothing_is_not_stale():
    assert not is_stale(replicas([0, 0], size=1, minimum=2, waiting=1))


def test_a_gang_with_a_succeeded_pod_is_not_stale():
    pods = (Pod("a", state=PodState.RUNNING), Pod("b", state=PodState.SUCCEEDED))
    tree = GangTree.of(Gang("g", "q", pods, minimum=2))
    assert not is_complete(tree)
    assert not is_stale(tree)


def test_releasing_and_failed_pods_do_not_count():
    pods = (
        Pod("a", state=PodState.RUNNING),
        Pod("b", state=PodState.RELEASING),
        Pod("c", state=PodState.FAILED),
    )
    assert is_stale(GangTree.of(Gang("g", "q", pods, minimum=2)))


def test_gated_pods_cannot_make_a_gang_start():
    pods = (Pod("a"), Pod("b", state=PodState.GATED))
    assert not can_start(GangTree.of(Gang("g", "q", pods, minimum=2)))
    assert can_start(GangTree.of(Gang("g", "q", pods, minimum=1)))


def test_pods_of_different_replicas_do_not_add_up():
    assert not is_sufficient(replicas([0, 0, 0], size=3, minimum=1), [2, 2, 2])
    assert is_sufficient(replicas([0, 0, 0], size=3, minimum=1), [0, 3, 0])


def test_ten_pods_of_the_two_level_example_are_not_preemptible():
    subgroups = [
        SubGroup(name, parent, minimum)
        for kind in ("decode", "prefill")
        for name, parent, minimum in (
            (kind, None, 2),
            (f"{kind}-leaders", kind, 1),
            (f"{kind}-workers", kind, 4),
        )
    ]
    tree = GangTree.of(Gang("training-job", "q", (), tuple(subgroups), 2))
    assert 10 == minimum_pods(tree)


def test_the_cheapest_replicas_count_where_replicas_differ():
    subgroups = (
        SubGroup("large", minimum=5),
        SubGroup("small", minimum=2),
        SubGroup("m", minimum=3),
    )
    assert 5 == minimum_pods(GangTree.of(Gang("g", "q", (), subgroups, 2)))


def test_shortages_name_every_node_on_the_way_down_that_lacks_something():
    pods = tuple(
        pod
        for pod in leaders_and_workers().pods
        if pod.name not in ("leader-one-0", "workers-two-1")
    )
    tree = GangTree.of(leaders_and_workers(pods=pods))
    expected = [
        ("gang", 0, 1),
        ("one", 1, 2),
        ("leader-one", 0, 1),
        ("two", 1, 2),
        ("workers-two", 1, 2),
    ]
    assert expected == [
        (short.node.name, short.available, short.needed) for short in shortages(tree)
    ]


def test_a_gang_that_can_start_has_no_shortages():
    assert () == shortages(GangTree.of(leaders_and_workers()))
