"""The search for the best victims, apart from quota, gangs and nodes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations, permutations
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.core.cycle import best_victims
from bough.core.cycle.best_victims import Actions, cost_of, improve, maximal
from bough.core.cycle.victims import search


class Thing(NamedTuple):
    """A gang, or a part of one, of some size."""

    gang: str
    gpus: int
    priority: int = 50
    whole: bool = True
    own: bool = False
    part: str = ""

    @property
    def parts(self) -> frozenset[str]:
        return frozenset({"a", "b"} if self.whole else {self.part})

    @property
    def core(self) -> int:
        return self.gpus

    @property
    def alike(self) -> Hashable:
        return self


class Table:
    """Enough is when sizes add up to so much, or all of some names are taken.

    After `most` has been taken, nothing more may be.
    """

    def __init__(self, enough: int, names: Sequence[str] = (), most: int | None = None) -> None:
        self.enough = enough
        self.names = {*names}
        self.most = most
        self.taken: list[Thing] = []
        self.takes = 0

    def allowed(self, _thing: Thing) -> bool:
        return self.most is None or sum(each.gpus for each in self.taken) < self.most

    def take(self, thing: Thing) -> None:
        self.takes += 1
        self.taken.append(thing)

    def fits(self) -> bool:
        there = self.names <= {each.gang for each in self.taken}
        return there and sum(each.gpus for each in maximal(self.taken)) >= self.enough

    @property
    def actions(self) -> Actions[Thing]:
        return Actions(self.allowed, self.take, self.taken.remove, self.fits)

    def best(self, things: list[Thing]) -> list[Thing] | None:
        """Take them in order, and then what is better."""
        found = search(things, **self.actions._asdict())
        for thing in found or ():
            self.taken.remove(thing)
        return improve(found, things, self.actions)


def names(found: list[Thing] | None) -> list[str] | None:
    return None if found is None else [each.gang + each.part for each in found]


def test_one_gang_is_broken_rather_than_two() -> None:
    assert ["c"] == names(Table(2).best([Thing("a", 1), Thing("b", 1), Thing("c", 2)]))


def test_two_gangs_are_broken_rather_than_one_of_a_higher_priority() -> None:
    things = [Thing("a", 1), Thing("b", 1), Thing("c", 2, priority=75)]

    assert ["a", "b"] == names(Table(2).best(things))


def test_surplus_is_given_back_rather_than_a_gang_broken_whatever_its_priority() -> None:
    things = [Thing("b", 1, priority=75, whole=False, part="a"), Thing("a", 1)]

    assert ["ba"] == names(Table(1).best(things))


def test_fewer_gpus_of_the_same_priority_end() -> None:
    assert ["b"] == names(Table(1).best([Thing("a", 3), Thing("b", 1)]))


def test_more_gpus_of_a_lower_priority_end_rather_than_fewer_of_a_higher() -> None:
    things = [Thing("a", 3), Thing("b", 1, priority=75)]

    assert ["a"] == names(Table(1).best(things))


def test_another_queue_is_taken_from_before_the_own() -> None:
    assert ["b"] == names(Table(1).best([Thing("a", 1, own=True), Thing("b", 1)]))


def test_fewer_gangs_are_broken_even_in_the_own_queue() -> None:
    assert ["c"] == names(Table(2).best([Thing("a", 1), Thing("b", 1), Thing("c", 2, own=True)]))


def test_of_equals_the_first_candidate_is_taken() -> None:
    assert ["a"] == names(Table(1).best([Thing("a", 1), Thing("b", 1), Thing("c", 1)]))


def test_a_part_and_the_gang_that_it_is_part_of_are_not_both_taken() -> None:
    things = [Thing("a", 1, whole=False, part="a"), Thing("a", 2), Thing("b", 3, priority=75)]
    table = Table(2)

    assert ["a"] == names(table.best(things))
    assert [things[1]] == table.taken


def test_a_set_is_found_where_the_order_leaves_none() -> None:
    """After the first nothing more may be taken."""
    things = [Thing("a", 2), Thing("b", 1), Thing("c", 2)]
    table = Table(3, names=["b", "c"], most=2)

    assert ["b", "c"] == names(table.best(things))


def test_nothing_is_taken_where_all_of_it_is_not_enough() -> None:
    table = Table(9)

    assert table.best([Thing("a", 2), Thing("b", 1)]) is None
    assert [] == table.taken


def test_of_many_units_one_is_exchanged_for_several() -> None:
    things = [Thing(f"a{at:03}", 1) for at in range(60)]

    assert ["b"] == names(Table(8).best([*things, Thing("b", 8)]))


def test_the_work_is_bounded() -> None:
    """Many sets are nearly alike, and none is better than what was found first."""
    table = Table(300)
    table.best([Thing(f"a{at:02}", 20 + at % 7) for at in range(best_victims.MOST_UNITS)])

    assert table.takes < 3 * best_victims.MOST_TAKES


things = st.builds(
    Thing,
    gang=st.sampled_from("abcdefgh"),
    gpus=st.integers(0, 3),
    priority=st.sampled_from((25, 50)),
    own=st.booleans(),
)


@given(
    st.lists(things, max_size=6, unique_by=lambda thing: thing.gang),
    st.integers(1, 8),
    st.lists(st.sampled_from("abc"), max_size=2),
    st.one_of(st.none(), st.integers(1, 5)),
)
def test_the_best_set_is_found(
    units: list[Thing], enough: int, needed: list[str], most: int | None
) -> None:
    table = Table(enough, needed, most)
    costs = [
        cost_of(chosen, [units.index(each) for each in chosen])
        for chosen in subsets(units)
        if would_do(Table(enough, needed, most), chosen)
    ]
    found = table.best(units)
    cost = None if found is None else cost_of(found, [units.index(each) for each in found])

    assert min(costs, default=None) == cost
    assert sorted(found or []) == sorted(table.taken)


def subsets(units: list[Thing]) -> list[tuple[Thing, ...]]:
    return [each for size in range(1, len(units) + 1) for each in combinations(units, size)]


def would_do(table: Table, chosen: tuple[Thing, ...]) -> bool:
    table.taken[:] = chosen
    if not table.fits():
        return False
    return any(may_be_taken(table, order) for order in permutations(chosen))


def may_be_taken(table: Table, order: tuple[Thing, ...]) -> bool:
    table.taken.clear()
    for thing in order:
        if not table.allowed(thing):
            return False
        table.take(thing)
    return True


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ([Thing("a", 9)], [Thing("b", 1, priority=75)]),
        ([Thing("a", 1)] * 3, [Thing("b", 1, priority=75)]),
        ([Thing("a", 1)], [Thing("a", 1)] * 2),
        ([Thing("a", 9, own=True)], [Thing("a", 1)] * 2),
        ([Thing("a", 1, whole=False)] * 9, [Thing("b", 1)]),
    ],
)
def test_sets_are_compared_by_what_they_break_first(
    better: list[Thing], worse: list[Thing]
) -> None:
    assert cost_of(better, range(len(better))) < cost_of(worse, range(len(worse)))
