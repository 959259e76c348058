from __future__ import annotations

from bough.core.gang.order import NAME_ORDER
from bough.core.gang.release import (
    can_spare,
    core_counts,
    core_pods,
    next_unit,
    surplus_counts,
    surplus_pods,
    surplus_units,
)
from bough.core.gang.tree import GangTree, Held
from bough.model.gang import Gang, Pod, PodState, SubGroup
from tests.gangs import replicas


def story(tree: GangTree) -> list[tuple[str, str, list[str]]]:
    """All units in the order in which they are given back."""
    held: Held = tree.held
    told: list[tuple[str, str, list[str]]] = []
    while (unit := next_unit(tree, held)) is not None:
        names = [pod.name for pod in unit.pods]
        told.append((unit.kind.value, unit.node.name, names))
        held = tree.without_pods(held, names)
    return told


def test_surplus_pods_go_one_by_one_then_a_replica_then_the_gang():
    assert [
        ("pod", "r1", ["r1-2"]),
        ("replica", "r2", ["r2-1", "r2-0"]),
        ("gang", "gang", ["r1-1", "r1-0", "r0-1", "r0-0"]),
    ] == story(replicas([2, 3, 2], size=2, minimum=2))


def test_the_leaf_with_most_above_its_minimum_gives_first_then_the_last():
    kinds = [(name, pods) for _, name, pods in story(replicas([4, 3, 3], size=2, minimum=None))]
    assert [("r0", ["r0-3"]), ("r2", ["r2-2"]), ("r1", ["r1-2"]), ("r0", ["r0-2"])] == kinds[:-1]


def test_the_last_pod_in_pod_order_goes_first():
    pods = (
        Pod("plain", state=PodState.RUNNING),
        Pod("ranked", state=PodState.RUNNING, rank=1),
        Pod("later", state=PodState.RUNNING),
    )
    tree = GangTree.of(Gang("g", "q", pods, minimum=1))
    assert [
        ("pod", "g", ["later"]),
        ("pod", "g", ["plain"]),
        ("gang", "g", ["ranked"]),
    ] == story(tree)


def test_a_surplus_replica_inside_a_replica_goes_before_the_outer_one():
    subgroups = [
        SubGroup(name, parent, minimum)
        for outer in "ab"
        for name, parent, minimum in (
            (outer, None, 1),
            (f"{outer}1", outer, 1),
            (f"{outer}2", outer, 1),
        )
    ]
    pods = [
        Pod(f"{leaf}-pod", subgroup=leaf, state=PodState.RUNNING)
        for leaf in ("a1", "a2", "b1", "b2")
    ]
    tree = GangTree.of(Gang("g", "q", tuple(pods), tuple(subgroups), 1))
    assert [
        ("replica", "b2", ["b2-pod"]),
        ("replica", "a2", ["a2-pod"]),
        ("replica", "b", ["b1-pod"]),
        ("gang", "g", ["a1-pod"]),
    ] == story(tree)


def test_a_replica_in_pieces_goes_as_a_whole_before_one_that_runs():
    assert [
        ("replica", "r0", ["r0-1", "r0-0"]),
        ("replica", "r2", ["r2-2", "r2-1", "r2-0"]),
        ("gang", "gang", ["r1-2", "r1-1", "r1-0"]),
    ] == story(replicas([2, 3, 3], size=3, minimum=1))


def test_of_two_replicas_in_pieces_the_last_goes_first():
    assert ["r2", "r0", "gang"] == [
        node for _, node, _ in story(replicas([1, 2, 1], size=2, minimum=1))
    ]


def test_a_stale_gang_gives_back_surplus_pods_and_then_everything():
    assert [
        ("pod", "r0", ["r0-2"]),
        ("gang", "gang", ["r1-0", "r0-1", "r0-0"]),
    ] == story(replicas([3, 1, 0], size=2, minimum=2))


def test_nothing_is_given_back_by_a_gang_that_holds_nothing():
    assert [] == story(replicas([0, 0], size=1, minimum=1, waiting=1))


def test_ties_go_by_name_where_the_order_says_so():
    pods = tuple(Pod(f"{name}-pod", subgroup=name, state=PodState.RUNNING) for name in ("z", "a"))
    gang = Gang("g", "q", pods, (SubGroup("z", minimum=1), SubGroup("a", minimum=1)), 1)
    assert "a" == story(GangTree.of(gang))[0][1]
    assert "z" == story(GangTree.of(gang, NAME_ORDER))[0][1]


def test_the_core_of_a_running_gang_is_its_first_replicas_in_order():
    tree = replicas([2, 3, 2, 1], size=2, minimum=2)
    counts = [2, 3, 2, 1]
    assert (2, 2, 0, 0) == core_counts(tree, counts)
    assert (0, 1, 2, 1) == surplus_counts(tree, counts)
    assert ["r0-0", "r0-1", "r1-0", "r1-1"] == [pod.name for pod in core_pods(tree, tree.held)]
    surplus = [pod.name for pod in surplus_pods(tree, tree.held)]
    assert ["r1-2", "r2-0", "r2-1", "r3-0"] == surplus


def choices(tree: GangTree, held: Held) -> list[tuple[str, list[str]]]:
    """Everything that may be given back now, each on its own."""
    units = surplus_units(tree, held)
    return [(unit.kind.value, [pod.name for pod in unit.pods]) for unit in units]


def test_any_pod_of_a_leaf_with_surplus_may_be_given_back_the_last_first():
    tree = replicas([2, 4], size=2, minimum=None)

    assert [("pod", [f"r1-{number}"]) for number in (3, 2, 1, 0)] == choices(tree, tree.held)


def test_a_leaf_that_gave_its_surplus_back_gives_no_other_pod():
    tree = replicas([3], size=2, minimum=None)

    assert [] == choices(tree, tree.without_pods(tree.held, ["r0-0"]))


def test_any_replica_may_be_given_back_where_there_is_one_too_many():
    tree = replicas([2, 2, 2], size=2, minimum=2)

    assert [("replica", [f"r{at}-1", f"r{at}-0"]) for at in (2, 1, 0)] == choices(tree, tree.held)
    assert [] == choices(tree, tree.without_pods(tree.held, ["r0-0", "r0-1"]))


def test_a_unit_can_be_spared_as_long_as_something_is_surplus():
    tree = replicas([3, 2], size=2, minimum=1)
    units = {unit.pods[-1].name: unit for unit in surplus_units(tree, tree.held)}
    pod = next(surplus_units(tree, tree.held))
    after_pod = tree.without_pods(tree.held, ["r0-2"])
    after_replica = tree.without_pods(tree.held, ["r1-0", "r1-1"])

    assert not can_spare(tree, after_pod, pod)
    assert can_spare(tree, after_pod, units["r1-0"])
    assert can_spare(tree, after_replica, pod)
    assert not can_spare(tree, after_replica, units["r0-0"])
