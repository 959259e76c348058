"""Laws of fair shares: of one division, and of the preset that decides by them."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core.quota.division import Taker, divide
from tests import laws_fair_shares as laws
from tests.strategies_cycle import seeds

few = settings(max_examples=max(5, settings().max_examples // 10))
amounts = st.integers(0, 40)
takers = st.lists(
    st.builds(
        Taker,
        name=st.just(""),
        deserved=st.none() | amounts,
        limit=st.none() | amounts,
        asked=amounts,
        weight=st.fractions(0, 5, max_denominator=3),
        priority=st.integers(0, 2),
        created_ms=st.integers(0, 3),
    ),
    max_size=6,
).map(lambda found: [each._replace(name=f"q{at}") for at, each in enumerate(found)])


@given(amounts, takers)
def test_none_gets_more_than_it_wants_nor_less_than_it_deserves(
    total: int, takers: list[Taker]
) -> None:
    shares = divide(total, takers).shares
    for each in takers:
        deserved = total if each.deserved is None else each.deserved
        assert min(deserved, each.wanted) <= shares[each.name] <= each.wanted


@given(amounts, takers)
def test_all_is_divided_that_any_with_weight_asks_for(total: int, takers: list[Taker]) -> None:
    shares, left = divide(total, takers)
    deserved = sum(
        min(total if each.deserved is None else each.deserved, each.wanted) for each in takers
    )
    assert max(total, deserved) == sum(shares.values()) + left
    hungry = [each for each in takers if each.weight and shares[each.name] < each.wanted]
    assert not (left and hungry)


@given(amounts, takers, st.randoms(use_true_random=False))
def test_the_order_in_which_nodes_are_named_does_not_matter(
    total: int, takers: list[Taker], random: Random
) -> None:
    shuffled = random.sample(takers, len(takers))
    assert divide(total, takers) == divide(total, shuffled)


@given(amounts, st.integers(1, 5), st.integers(1, 5))
def test_what_is_left_is_divided_by_weight(total: int, one: int, other: int) -> None:
    """Two that want everything differ from their parts by less than a unit."""
    pair = [
        Taker("one", 0, None, 1000, Fraction(one)),
        Taker("other", 0, None, 1000, Fraction(other)),
    ]
    shares = divide(total, pair).shares
    assert abs(shares["one"] - Fraction(total * one, one + other)) < 1


@few
@given(seeds())
def test_shares_are_those_computed_from_scratch(random: Random) -> None:
    laws.check_shares_from_scratch(random)


@few
@given(seeds())
def test_all_comes_to_rest_and_nothing_that_moves_is_lost(random: Random) -> None:
    laws.check_rest(random)
