"""Laws of placement, on small random clusters."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from bough.core.gang.demand import needed
from bough.core.gang.predicate import is_sufficient
from bough.core.gang.tree import GangTree, counts_of
from bough.core.place.placer import Placer
from bough.core.place.policy import Packing, PlacePolicy
from bough.core.place.result import Placement, Refusal, Start
from tests.oracles.place import allows, can_start, confined, domain_of
from tests.strategies_place import TOPOLOGY, World, worlds

#: Enough for everything that is this small.
PATIENT = PlacePolicy(work=200_000)


def start(world: World, policy: PlacePolicy = PATIENT, *, later: bool = False) -> Start | Refusal:
    placer = Placer(world.nodes, [TOPOLOGY], policy)
    placer.add([*world.running, world.gang])
    tree = GangTree.of(world.gang)
    return placer.start(tree, tree.held, later=later)


def needs_places(world: World) -> bool:
    tree = GangTree.of(world.gang)
    return needed(tree, tree.held) is not None


@given(worlds(levels=("rack",), nested=False, one_shape=True))
def test_pods_of_one_shape_are_never_refused_needlessly(world: World) -> None:
    assume(needs_places(world))
    expected = can_start(world.gang, world.running, world.nodes, TOPOLOGY)
    assert expected == isinstance(start(world), Start)


@given(worlds(levels=("rack",), nested=False))
def test_pods_of_several_shapes_are_never_refused_needlessly(world: World) -> None:
    assume(needs_places(world))
    expected = can_start(world.gang, world.running, world.nodes, TOPOLOGY)
    assert expected == isinstance(start(world), Start)


@given(worlds())
def test_nested_constraints_are_never_refused_needlessly_given_enough_work(world: World) -> None:
    assume(needs_places(world))
    expected = can_start(world.gang, world.running, world.nodes, TOPOLOGY)
    assert expected == isinstance(start(world), Start)
