"""The gang rules against their definitions, taken literally and searched by brute force."""

from __future__ import annotations

from itertools import product
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from bough.core.gang.demand import Demand, growth, needed
from bough.core.gang.release import (
    UnitKind,
    can_spare,
    core_pods,
    next_unit,
    surplus_counts,
    surplus_pods,
    surplus_units,
)
from bough.core.gang.sufficiency import (
    can_start,
    is_complete,
    is_stale,
    is_sufficient,
    minimum_pods,
    obtainable,
    shortages,
)
from bough.core.gang.tree import Counts, GangNode, GangTree, Held, counts_of
from bough.model.gang import Pod, PodState
from tests.strategies_gang import trees

RUNS = (PodState.RUNNING, PodState.RUNNING, PodState.PENDING)
WAITS = (PodState.PENDING, PodState.PENDING, PodState.RUNNING, PodState.GATED)


@given(trees())
def test_a_gang_can_start_exactly_when_some_choice_of_its_pods_is_enough(tree: GangTree) -> None:
    choices = product(*(range(count + 1) for count in obtainable(tree)))
    expected = any(holds(tree.root, choice) for choice in choices)
    assert expected == can_start(tree)
    assert expected == (shortages(tree) == ())


@given(trees())
def test_a_gang_is_stale_exactly_when_it_runs_below_its_minimum_and_nothing_has_succeeded(
    tree: GangTree,
) -> None:
    pods = [pod for leaf in tree.leaves for pod in leaf.pods]
    running = [sum(pod.state is PodState.RUNNING for pod in leaf.pods) for leaf in tree.leaves]
    complete = holds(tree.root, running)
    succeeded = any(pod.state is PodState.SUCCEEDED for pod in pods)
    assert complete == is_complete(tree)
    assert (any(running) and not complete and not succeeded) == is_stale(tree)


@given(trees())
def test_what_is_not_preemptible_is_the_smallest_choice_that_is_enough(tree: GangTree) -> None:
    choices = product(*(range(leaf.minimum + 1) for leaf in tree.leaves))
    expected = min(sum(choice) for choice in choices if holds(tree.root, choice))
    assert expected == minimum_pods(tree)


@given(trees(WAITS), st.data())
def test_every_choice_that_a_demand_leaves_open_is_enough_and_not_too_much(
    tree: GangTree, data: st.DataObject
) -> None:
    demand = needed(tree, tree.held)
    assert (can_start(tree) and not is_complete(tree)) == (demand is not None)
    if demand is None:
        return
    chosen = choose(demand, data)
    after = tree.with_pods(tree.held, chosen)
    assert is_sufficient(tree, counts_of(after))
    assert demand.smallest <= len(chosen)
    for pod in chosen:
        assert not is_sufficient(tree, counts_of(tree.without_pods(after, [pod])))


@given(trees(WAITS), st.data())
def test_a_sufficient_set_is_found_whenever_the_pods_that_fit_are_enough(
    tree: GangTree, data: st.DataObject
) -> None:
    fits = {name for name in tree.places if data.draw(st.booleans(), label=name)}
    waiting = [
        sum(pod.state is PodState.PENDING and pod.name in fits for pod in leaf.pods)
        for leaf in tree.leaves
    ]
    reach = [held + more for held, more in zip(counts_of(tree.held), waiting, strict=True)]
    demand = needed(tree, tree.held)
    if demand is not None:
        assert holds(tree.root, reach) == (take_first(demand, fits) is not None)


@given(trees(WAITS))
def test_a_gang_grows_by_whole_units_until_no_pod_that_may_start_is_left(tree: GangTree) -> None:
    demand = needed(tree, tree.held)
    start = take_first(demand, set(tree.places)) if demand else []
    held = tree.with_pods(tree.held, start or [])
    if not is_sufficient(tree, counts_of(held)):
        assert list(growth(tree, held)) == []
        return
    while (unit := next(growth(tree, held), None)) is not None:
        pods = take_first(unit.demand, set(tree.places))
        assert pods is not None
        before = below(unit.node, held)
        held = tree.with_pods(held, pods)
        assert holds(unit.node, counts_of(held))
        grown = below(unit.node, held)
        assert len(pods) == grown - before
        assert len(pods) == 1 or not holds(unit.node, counts_of(tree.without_pods(held, pods[:1])))
    assert startable(tree.root, tree, held) == 0


@given(trees(RUNS))
def test_giving_back_never_breaks_a_gang_before_its_last_unit_takes_the_whole(
    tree: GangTree,
) -> None:
    held = tree.held
    surplus = surplus_counts(tree, counts_of(held))
    core = [pod.name for pod in core_pods(tree, held)]
    spare = {pod.name for pod in surplus_pods(tree, held)}
    complete = is_complete(tree)
    given_back: list[str] = []
    while (unit := next_unit(tree, held)) is not None and unit.kind is not UnitKind.GANG:
        names = [pod.name for pod in unit.pods]
        held = tree.without_pods(held, names)
        given_back += names
        assert names
        assert complete == is_sufficient(tree, counts_of(held))
    assert sum(surplus) == len(given_back)
    assert spare == set(given_back)
    last = [pod.name for pod in unit.pods] if unit else []
    assert sorted(core) == sorted(last)
    assert set(last).isdisjoint(given_back)


@given(trees(RUNS), st.randoms(use_true_random=False))
def test_a_gang_that_gives_back_any_surplus_in_any_order_keeps_what_it_needs(
    tree: GangTree, random: Random
) -> None:
    held = tree.held
    complete = is_complete(tree)
    first = list(surplus_units(tree, held))
    while units := list(surplus_units(tree, held)):
        assert all(can_spare(tree, held, unit) for unit in units)
        known = {(each.node.position, pod.name) for each in first for pod in each.pods}
        now = {(each.node.position, pod.name) for each in units for pod in each.pods}
        assert now <= known
        unit = random.choice(units)
        held = tree.without_pods(held, [pod.name for pod in unit.pods])
        assert complete == is_sufficient(tree, counts_of(held))
    assert not any(can_spare(tree, held, unit) for unit in first)


@given(trees(RUNS))
def test_the_core_of_a_complete_gang_is_complete_and_has_no_surplus(tree: GangTree) -> None:
    core = tree.with_pods((0,) * len(tree.leaves), [pod.name for pod in core_pods(tree, tree.held)])
    if is_complete(tree):
        assert is_sufficient(tree, counts_of(core))
        assert minimum_pods(tree) <= sum(counts_of(core))
        for name in named(tree, core):
            assert not is_sufficient(tree, counts_of(tree.without_pods(core, [name])))


def holds(node: GangNode, counts: Counts) -> bool:
    """The design's definition, word by word."""
    if node.is_leaf:
        return counts[node.first_leaf] >= node.minimum
    return len([child for child in node.children if holds(child, counts)]) >= node.minimum


def choose(demand: Demand, data: st.DataObject) -> list[str]:
    """Any choice that the demand allows."""
    if demand.node.is_leaf:
        pods = data.draw(st.permutations(demand.pods))[: demand.count]
        return [pod.name for pod in pods]
    children = data.draw(st.permutations(demand.children))[: demand.count]
    return [name for child in children for name in choose(child, data)]


def take_first(demand: Demand, fits: set[str]) -> list[str] | None:
    """The first candidates that fit, as a placement does that never runs out of room."""
    if demand.node.is_leaf:
        found = [pod.name for pod in demand.pods if pod.name in fits]
        return found[: demand.count] if len(found) >= demand.count else None
    taken = [child for child in (take_first(c, fits) for c in demand.children) if child is not None]
    if len(taken) < demand.count:
        return None
    return [name for child in taken[: demand.count] for name in child]


def startable(node: GangNode, tree: GangTree, held: Held) -> int:
    """Pods below a node that wait and would not stand in a replica that lacks others."""
    reach = counts_of(tuple(a | b for a, b in zip(held, tree.waiting(held), strict=True)))
    if not holds(node, reach):
        return 0
    if node.is_leaf:
        return reach[node.first_leaf] - counts_of(held)[node.first_leaf]
    return sum(startable(child, tree, held) for child in node.children)


def below(node: GangNode, held: Held) -> int:
    return sum(counts_of(held)[node.first_leaf : node.end_leaf])


def named(tree: GangTree, held: Held) -> list[str]:
    places: list[tuple[Pod, int, int]] = [
        (pod, leaf.first_leaf, bit) for leaf in tree.leaves for bit, pod in enumerate(leaf.pods)
    ]
    return [pod.name for pod, leaf, bit in places if held[leaf] >> bit & 1]
