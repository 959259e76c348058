from __future__ import annotations

import pytest

from bough.core.gang.order import NAME_ORDER, SPEC_ORDER, precedence
from bough.core.gang.tree import MAX_DEPTH, GangTree, LeafSet, counts_of, pods_of
from bough.errors import Broken
from bough.model.gang import (
    Gang,
    Pod,
    PodState,
    SubGroup,
    SubGroupSet,
    TopologyConstraint,
)
from tests.gangs import leaders_and_workers

BLOCK = TopologyConstraint(required="block")


def test_the_leaves_below_a_node_are_a_contiguous_part_of_the_row():
    tree = GangTree.of(leaders_and_workers())
    expected = ["leader-one", "workers-one", "leader-two", "workers-two"]
    assert expected == [leaf.name for leaf in tree.leaves]
    assert {"gang": (0, 4), "one": (0, 2), "two": (2, 4)} == {
        node.name: (node.first_leaf, node.end_leaf) for node in tree.nodes if not node.is_leaf
    }


def test_every_node_stands_at_its_position_before_its_children():
    tree = GangTree.of(leaders_and_workers())
    assert list(range(7)) == [node.position for node in tree.nodes]
    for node in tree.nodes:
        for child in node.children:
            assert node.position < child.position


def test_an_absent_minimum_means_all_children_or_all_pods():
    tree = GangTree.of(leaders_and_workers(minimum=None))
    assert 2 == tree.root.minimum
    assert 3 == GangTree.of(Gang("g", "q", tuple(Pod(str(i)) for i in range(3)))).root.minimum


def test_a_gang_without_pods_and_minimum_still_needs_one():
    assert 1 == GangTree.of(Gang("g", "q", ())).root.minimum


def test_pods_stand_by_rank_then_as_they_came():
    pods = (Pod("plain"), Pod("low", rank=1), Pod("high", rank=7), Pod("also-low", rank=1))
    tree = GangTree.of(Gang("g", "q", pods))
    assert ["high", "low", "also-low", "plain"] == [pod.name for pod in tree.root.pods]


def test_only_running_pods_hold_and_only_pending_ones_may_be_placed():
    pods = tuple(Pod(state.value, state=state) for state in PodState)
    tree = GangTree.of(Gang("g", "q", pods, minimum=1))
    assert ["running"] == [pod.name for pod in pods_of(tree.root, tree.held[0])]
    assert ["pending"] == [pod.name for pod in pods_of(tree.root, tree.pending[0])]
    assert tree.succeeded


def test_pods_that_belong_to_no_leaf_are_strays():
    pods = (Pod("none"), Pod("inner", subgroup="one"), Pod("what", subgroup="three"))
    tree = GangTree.of(leaders_and_workers(pods=pods))
    assert ["none", "inner", "what"] == [pod.name for pod in tree.strays]
    assert {} == tree.places


def test_taking_and_giving_back_pods_changes_only_their_leaves():
    tree = GangTree.of(leaders_and_workers())
    held = tree.with_pods(tree.held, ["leader-one-0", "workers-two-1"])
    assert (1, 0, 0, 1) == counts_of(held)
    assert (0, 2, 1, 1) == counts_of(tree.waiting(held))
    assert tree.held == tree.without_pods(held, ["leader-one-0", "workers-two-1"])


def test_giving_back_what_is_not_held_changes_nothing():
    tree = GangTree.of(leaders_and_workers())
    assert tree.held == tree.without_pods(tree.held, ["leader-one-0"])


def test_a_set_hangs_at_the_deepest_node_that_has_all_its_members():
    sets = (
        SubGroupSet(("leader-two", "workers-two"), BLOCK),
        SubGroupSet(("leader-one", "two"), BLOCK),
    )
    tree = GangTree.of(leaders_and_workers(sets=sets))
    assert {"two": (LeafSet(BLOCK, (2, 3)),), "gang": (LeafSet(BLOCK, (0, 2, 3)),)} == {
        node.name: node.sets for node in tree.nodes if node.sets
    }


def test_a_cycle_of_parents_is_a_broken_invariant():
    gang = Gang("g", "q", (), subgroups=(SubGroup("a", parent="b"), SubGroup("b", parent="a")))
    with pytest.raises(Broken, match="unknown or below them"):
        GangTree.of(gang)


def test_a_minimum_of_zero_is_a_broken_invariant():
    with pytest.raises(Broken, match="needs 0"):
        GangTree.of(Gang("g", "q", (), minimum=0))


def test_nesting_is_limited():
    chain = tuple(
        SubGroup(f"s{depth}", parent=f"s{depth - 1}" if depth else None)
        for depth in range(MAX_DEPTH + 1)
    )
    assert MAX_DEPTH + 1 == len(GangTree.of(Gang("g", "q", (), subgroups=chain[:-1])).nodes)
    with pytest.raises(Broken, match="nested deeper"):
        GangTree.of(Gang("g", "q", (), subgroups=chain))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((0, 2, False), (2, 2, True), id="below its minimum before satisfied"),
        pytest.param((1, 3, True), (0, 3, False), id="started before not started"),
        pytest.param((2, 2, True), (3, 2, True), id="nearer to its minimum first"),
        pytest.param((9, 4, True), (10, 2, True), id="compared by ratio, not by difference"),
        pytest.param((2, 2, True), (0, 0, False), id="what needs nothing comes last"),
    ],
)
def test_what_precedes(first: tuple[int, int, bool], second: tuple[int, int, bool]):
    ranks = [
        precedence(reached, minimum, started=started, order=SPEC_ORDER)
        for reached, minimum, started in (first, second)
    ]
    assert ranks[0] < ranks[1]


def test_the_order_by_name_takes_all_below_their_minimum_as_equal():
    started = precedence(1, 3, started=True, order=NAME_ORDER)
    assert started == precedence(0, 2, started=False, order=NAME_ORDER)
