"""The victims of plans in small worlds, against all sets that may be taken."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given

from tests.strategies_cycle import seeds
from tests.worlds_victims import check


@given(seeds())
def test_no_set_of_victims_is_missed_or_better_than_the_one_that_is_taken(random: Random) -> None:
    check(random, Counter())


def test_the_worlds_ask_about_surplus_and_gangs_and_queues_that_must_be_spared() -> None:
    told = Counter[str]()
    for seed in range(200):
        check(Random(seed), told)

    assert 50 < told["asked"]
    assert 30 < told["served"] < told["asked"]
    assert 10 < told["with surplus"]
    assert 10 < told["broken"]
