from __future__ import annotations

from bough.core.gang.demand import Demand, growth, needed
from bough.core.gang.order import NAME_ORDER, Order
from bough.core.gang.tree import GangTree
from bough.model.gang import Gang, Pod, PodState, SubGroup
from tests.gangs import leaders_and_workers, replicas


def shape(demand: Demand | None) -> object:
    """A demand as nested tuples: name, how many, of what."""
    assert demand is not None
    if demand.node.is_leaf:
        return (demand.node.name, demand.count, [pod.name for pod in demand.pods])
    return (demand.node.name, demand.count, [shape(child) for child in demand.children])


def units(tree: GangTree, held: tuple[int, ...]) -> list[tuple[str, int]]:
    return [(unit.node.name, unit.demand.smallest) for unit in growth(tree, held)]


def test_a_gang_without_subgroups_asks_for_its_minimum():
    tree = GangTree.of(Gang("g", "q", tuple(Pod(str(i)) for i in range(3)), minimum=2))
    assert ("g", 2, ["0", "1", "2"]) == shape(needed(tree, tree.held))


def test_all_replicas_that_have_their_pods_are_candidates_in_spec_order():
    tree = replicas([0, 0, 0, 0], size=2, minimum=3, waiting=2)
    demand = needed(tree, tree.held)
    assert demand is not None
    assert (3, ["r0", "r1", "r2", "r3"]) == (
        demand.count,
        [child.node.name for child in demand.children],
    )
    assert 6 == demand.smallest


def test_a_replica_that_lacks_pods_is_no_candidate():
    pods = tuple(Pod(name, subgroup=name[0]) for name in ("a0", "b0", "b1", "c0", "c1"))
    subgroups = tuple(SubGroup(name, minimum=2) for name in "abc")
    tree = GangTree.of(Gang("g", "q", pods, subgroups, 2))
    expected = ("g", 2, [("b", 2, ["b0", "b1"]), ("c", 2, ["c0", "c1"])])
    assert expected == shape(needed(tree, tree.held))


def test_what_is_held_is_not_asked_for_again():
    tree = GangTree.of(leaders_and_workers(minimum=2))
    held = tree.with_pods(tree.held, ["leader-one-0", "workers-one-0", "workers-one-1"])
    held = tree.with_pods(held, ["workers-two-0"])
    expected = (
        "gang",
        1,
        [
            (
                "two",
                2,
                [
                    ("workers-two", 1, ["workers-two-1"]),
                    ("leader-two", 1, ["leader-two-0"]),
                ],
            )
        ],
    )
    assert expected == shape(needed(tree, held))


def test_a_replica_that_was_started_is_completed_before_another_is_begun():
    tree = replicas([0, 3, 2], size=3, minimum=2, waiting=3)
    demand = needed(tree, tree.held)
    assert demand is not None
    assert [("r2", 1), ("r0", 3)] == [(child.node.name, child.count) for child in demand.children]


def test_the_order_by_name_begins_with_the_first_name():
    pods = tuple(
        Pod(f"{name}{index}", subgroup=name, state=state)
        for name, state in (
            ("z", PodState.PENDING),
            ("m", PodState.PENDING),
            ("a", PodState.PENDING),
        )
        for index in range(2)
    )
    gang = Gang("g", "q", pods, tuple(SubGroup(name, minimum=2) for name in "zma"), 2)
    orders: dict[str, Order | None] = {"zma": None, "amz": NAME_ORDER}
    for expected, order in orders.items():
        tree = GangTree.of(gang, order) if order else GangTree.of(gang)
        demand = needed(tree, tree.held)
        assert demand is not None
        assert expected == "".join(child.node.name for child in demand.children)


def test_nothing_is_needed_by_a_complete_gang_nor_had_by_one_that_lacks_pods():
    for tree in (replicas([2, 2], size=2, minimum=2), replicas([1, 2], size=2, minimum=2)):
        assert needed(tree, tree.held) is None


def test_the_cheapest_choice_is_known_although_order_goes_by_the_spec():
    pods = tuple(Pod(f"{name}{i}", subgroup=name) for name in "ab" for i in range(4))
    tree = GangTree.of(
        Gang("g", "q", pods, (SubGroup("a", minimum=4), SubGroup("b", minimum=2)), 1)
    )
    demand = needed(tree, tree.held)
    assert demand is not None
    assert (["a", "b"], 2) == ([child.node.name for child in demand.children], demand.smallest)


def test_an_optional_replica_starts_whole_before_satisfied_ones_grow():
    tree = replicas([2, 2, 0], size=2, minimum=2, waiting=2)
    assert [("r2", 2), ("r0", 1), ("r1", 1)] == units(tree, tree.held)


def test_the_leaf_that_is_nearer_to_its_minimum_grows_first():
    tree = replicas([3, 2, 2], size=2, minimum=None, waiting=1)
    assert [("r1", 1), ("r2", 1), ("r0", 1)] == units(tree, tree.held)


def test_an_optional_replica_that_lacks_pods_never_starts_in_part():
    pods = tuple(
        Pod(f"r{n}-{i}", subgroup=f"r{n}") for n, size in enumerate((2, 1)) for i in range(size)
    )
    tree = GangTree.of(
        Gang("g", "q", pods, (SubGroup("r0", minimum=2), SubGroup("r1", minimum=2)), 1)
    )
    held = tree.with_pods(tree.held, ["r0-0", "r0-1"])
    assert [] == units(tree, held)


def test_a_gang_that_is_not_complete_does_not_grow():
    tree = replicas([2, 0], size=2, minimum=2, waiting=2)
    assert [] == units(tree, tree.held)


def test_a_unit_comes_with_the_way_down_to_it():
    tree = GangTree.of(leaders_and_workers())
    held = tree.with_pods(tree.held, ["leader-one-0", "workers-one-0", "workers-one-1"])
    (unit,) = growth(tree, held)
    expected = (
        "gang",
        1,
        [
            (
                "two",
                2,
                [
                    ("leader-two", 1, ["leader-two-0"]),
                    ("workers-two", 2, ["workers-two-0", "workers-two-1"]),
                ],
            )
        ],
    )
    assert expected == shape(unit.demand)
    assert "two" == unit.node.name


def test_what_is_closed_is_not_offered_again():
    tree = replicas([2, 2, 0], size=2, minimum=2, waiting=2)
    first, second, third = growth(tree, tree.held)
    closed = {first.node.position, third.node.position}
    assert [second] == list(growth(tree, tree.held, closed))
