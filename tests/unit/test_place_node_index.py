from __future__ import annotations

import pytest

from bough.core.gang.demand import needed
from bough.core.gang.tree import GangTree
from bough.core.place import node_changes, pod_shapes
from bough.core.place.demand_parts import Part
from bough.core.place.node_choice import NOWHERE, Chooser
from bough.core.place.node_index import Index
from bough.core.place.placer import Placer
from bough.core.place.pruning import Kinds, Layout
from bough.core.undo import UndoLog
from bough.errors import Broken
from bough.model.cluster import Node, Resources
from bough.model.place_policy import NodeOrder, PlacePolicy
from tests.places import RACK, TOPOLOGY, gang, node, pod


def index_of(*nodes: Node, policy: PlacePolicy | None = None) -> Index:
    return Index(nodes, policy or PlacePolicy(), UndoLog())


def test_ties_are_broken_by_name_or_by_the_given_order() -> None:
    nodes = [node("b"), node("a10"), node("a2")]
    assert ["a10", "a2", "b"] == [each.name for each in index_of(*nodes).nodes]
    given = index_of(*nodes, policy=PlacePolicy(order=NodeOrder.GIVEN))
    assert ["b", "a10", "a2"] == [each.name for each in given.nodes]


def test_room_that_is_taken_is_free_neither_now_nor_later() -> None:
    index = index_of(node("n", 4))
    shape = index.shapes.of(pod("p", 3))
    index.take(0, shape.request)
    assert not index.fits(0, shape)
    assert not index.fits(0, shape, later=True)
    assert 0 == index.copies(0, shape)
    index.free(0, shape.request)
    assert 1 == index.copies(0, shape)


def test_room_of_a_pod_that_is_ending_is_free_later_only() -> None:
    index = index_of(node("n", 4))
    shape = index.shapes.of(pod("p", 3))
    index.take(0, shape.request)
    index.promise(0, shape.request)
    assert not index.fits(0, shape)
    assert index.fits(0, shape, later=True)
    index.vacate(0, shape.request)
    assert index.fits(0, shape)


def test_what_is_promised_to_a_waiting_pod_is_not_given_away() -> None:
    index = index_of(node("n", 4))
    two, four, one = (index.shapes.of(pod("p", gpus)) for gpus in (2, 4, 1))
    index.take(0, two.request)
    index.promise(0, two.request)
    index.take(0, four.request, waits=True)
    assert 2 == index.idle[0][0]
    assert not index.fits(0, one)


def test_a_node_that_gets_more_back_than_it_had_is_a_bug() -> None:
    index = index_of(node("n", 4))
    with pytest.raises(Broken):
        index.free(0, index.shapes.of(pod("p", 1)).request)


def test_a_node_may_be_overcommitted_already() -> None:
    index = index_of(node("n", 2))
    shape = index.shapes.of(pod("p", 3))
    index.take(0, shape.request)
    assert -1 == index.later[0][0]
    assert not index.fits(0, index.shapes.of(pod("p", 1)))
    index.free(0, shape.request)
    assert 0b1 == index.by_gpus[2]


def test_every_pod_takes_a_slot_and_resources_of_any_name_are_counted() -> None:
    capacity = Resources(8, 8_000, 1 << 30, 2, (("rdma/hca", 3),))
    index = index_of(node("n", capacity=capacity))
    shape = index.shapes.of(pod("p", requests=Resources(other=(("rdma/hca", 2),))))
    assert 1 == index.copies(0, shape)
    plain = index.shapes.of(pod("p", requests=Resources(gpus=1)))
    assert 2 == index.copies(0, plain)


def test_a_resource_that_no_node_has_fits_nowhere() -> None:
    index = index_of(node("n"))
    shape = index.shapes.of(pod("p", requests=Resources(other=(("moon/dust", 1),))))
    assert (("moon/dust",), 0) == (shape.unknown, shape.possible)
    assert 0 == index.count(shape, index.everything)


def test_pods_that_ask_for_the_same_have_one_shape() -> None:
    index = index_of(node("n"))
    assert index.shapes.of(pod("a", 2)) is index.shapes.of(pod("b", 2))
    assert index.shapes.of(pod("a", 2)) is not index.shapes.of(pod("a", 3))
    assert index.shapes.of(pod("a", 2)) is not index.shapes.of(
        pod("a", 2, node_selector={"disk": "fast"})
    )


def starved(*, remember: bool = True) -> tuple[Index, Chooser]:
    """Ten nodes with GPUs; all but the last have no CPU left."""
    nodes = [
        node(f"n{number}", capacity=Resources(8, 64_000 if number == 9 else 600, 1 << 40, 110))
        for number in range(10)
    ]
    index = index_of(*nodes, policy=PlacePolicy(remember=remember))
    return index, Chooser(index)


def test_nodes_that_do_not_fit_are_remembered_by_shape() -> None:
    index, chooser = starved()
    shape = index.shapes.of(pod("p", 1))
    assert 9 == chooser.pick(shape, index.everything)
    assert 1 << 9 == index.may_fit(shape, index.everything)
    assert (1 << 10) - 1 == shape.possible


def test_a_node_that_gets_something_back_is_looked_at_again() -> None:
    index, chooser = starved()
    shape = index.shapes.of(pod("p", 1))
    index.take(9, index.columns.request(Resources(cpu_milli=64_000)))
    assert NOWHERE == chooser.pick(shape, index.everything)
    index.free(9, index.columns.request(Resources(cpu_milli=64_000)))
    assert 9 == chooser.pick(shape, index.everything)


def test_undo_gives_nodes_back_to_the_memory_of_every_shape() -> None:
    index, chooser = starved()
    some = [index.shapes.of(pod("p", gpus)) for gpus in (1, 2, 3)]
    mark = index.log.mark()
    index.take(9, index.columns.request(Resources(cpu_milli=64_000)))
    assert [NOWHERE] * 3 == [chooser.pick(shape, index.everything) for shape in some]
    index.log.undo(mark)
    assert [9] * 3 == [chooser.pick(shape, index.everything) for shape in some]


def test_without_memory_the_answers_are_the_same() -> None:
    index, chooser = starved(remember=False)
    shape = index.shapes.of(pod("p", 1))
    assert 9 == chooser.pick(shape, index.everything)
    assert index.everything == index.may_fit(shape, index.everything)


def test_more_returns_than_are_kept_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_changes, "MAXIMUM_RETURNS", 3)
    index, chooser = starved()
    shape = index.shapes.of(pod("p", 1))
    everything = index.columns.request(Resources(cpu_milli=64_000))
    index.take(9, everything)
    assert NOWHERE == chooser.pick(shape, index.everything)
    index.free(9, everything)
    other = index.shapes.of(pod("p", 2))
    for _ in range(4):
        index.take(8, other.request)
        index.free(8, other.request)
        chooser.pick(other, index.everything)
    assert 9 == chooser.pick(shape, index.everything)


def test_the_number_of_remembered_shapes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_shapes, "MAXIMUM_SHAPES", 10)
    index = index_of(node("n"))
    for cpu in range(25):
        index.shapes.forget_some()
        index.shapes.of(pod("p", requests=Resources(cpu_milli=cpu)))
    assert len(index.shapes) <= 11


def test_room_counts_gpus_and_stops_when_it_is_enough() -> None:
    index = index_of(node("a", 8), node("b", 3), node("c", 8, cordoned=True))
    shape = index.shapes.of(pod("p", 2))
    assert 5 == index.room(shape, index.everything, 99)
    assert index.has_room(shape, index.everything, 5)
    assert not index.has_room(shape, index.everything, 6)
    assert 1 == index.room(shape, 0b010, 99)


def test_of_nodes_that_are_alike_only_the_first_is_tried() -> None:
    nodes = [node("a", 4), node("b", 4), node("c", 4, rack="z.x"), node("d", 8), node("e", 1)]
    placer = Placer(nodes, [TOPOLOGY])
    tree = GangTree.of(gang(pod("p", 2), constraint=RACK))
    demand = needed(tree, tree.held)
    assert demand is not None
    part = placer.compile(tree, demand, tree.held)
    assert isinstance(part, Part)
    kinds = Kinds(placer.index, Layout.of(part))
    shape = part.runs[0].shape
    everything = placer.index.everything
    assert [0, 2, 3] == list(kinds.different(shape, everything, 0, later=False))
    assert [1, 2, 3] == list(kinds.different(shape, everything, 1, later=False))
