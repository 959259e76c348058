"""The one search for victims, apart from quota, gangs and nodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bough.core.cycle.victims import search


class Pile:
    """Things that are taken and put back; enough is when their weights add up to so much."""

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.taken: list[tuple[str, int]] = []
        self.questions = 0

    def fits(self) -> bool:
        self.questions += 1
        return sum(weight for _, weight in self.taken) >= self.enough

    def search(
        self, candidates: list[tuple[str, int]], forbidden: str = ""
    ) -> list[tuple[str, int]] | None:
        return search(
            candidates,
            allowed=lambda candidate: candidate[0] not in forbidden,
            take=self.taken.append,
            put_back=self.taken.remove,
            fits=self.fits,
        )


def test_candidates_are_taken_in_order_until_it_fits() -> None:
    assert [("a", 1), ("b", 1)] == Pile(2).search([("a", 1), ("b", 1), ("c", 1)])


def test_what_a_later_one_makes_superfluous_is_put_back() -> None:
    pile = Pile(3)

    assert [("c", 3)] == pile.search([("a", 1), ("b", 1), ("c", 3)])
    assert [("c", 3)] == pile.taken


def test_the_latest_is_put_back_first() -> None:
    assert [("a", 1), ("c", 3)] == Pile(4).search([("a", 1), ("b", 1), ("c", 3)])


def test_nothing_changes_where_it_is_not_enough() -> None:
    pile = Pile(5)

    assert pile.search([("a", 1), ("b", 3)]) is None
    assert [] == pile.taken


def test_who_is_not_allowed_is_passed_over() -> None:
    assert [("b", 2)] == Pile(2).search([("a", 2), ("b", 2)], forbidden="a")


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 60))
def test_no_victim_is_superfluous_and_what_was_taken_is_what_is_said(
    weights: list[int], enough: int
) -> None:
    pile = Pile(enough)
    found = pile.search([(str(at), weight) for at, weight in enumerate(weights)])

    assert (sum(weights) >= enough) == (found is not None)
    assert sorted(found or []) == sorted(pile.taken)
    for _, weight in found or []:
        assert sum(each for _, each in found or []) - weight < enough


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 60))
def test_the_same_are_put_back_as_one_after_the_other_would(
    weights: list[int], enough: int
) -> None:
    candidates = [(str(at), weight) for at, weight in enumerate(weights)]
    pile = Pile(enough)
    if pile.search(candidates) is None:
        return
    total, last = 0, 0
    while total < enough:
        total += weights[last]
        last += 1
    kept = candidates[:last]
    for candidate in reversed(candidates[: last - 1]):
        if sum(weight for _, weight in kept) - candidate[1] >= enough:
            kept.remove(candidate)

    assert kept == sorted(pile.taken, key=lambda candidate: int(candidate[0]))


def test_many_superfluous_ones_are_put_back_with_few_questions() -> None:
    """A thousand that are of no use, then one that is enough."""
    pile = Pile(1)

    pile.search([*((str(at), 0) for at in range(1000)), ("one", 1)])

    assert [("one", 1)] == pile.taken
    assert pile.questions < 1001 + 30
