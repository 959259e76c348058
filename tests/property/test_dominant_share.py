"""Laws of idle capacity that goes by the largest share of GPUs, CPU and memory."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings

from bough.model.policy import KAI, Policy
from tests import laws_dominant as laws
from tests.laws_dominant import BY_DOMINANT_SHARE, IN_ONE_LINE
from tests.strategies_cycle import randoms

CYCLES = 5
few = settings(max_examples=max(5, settings().max_examples // 4))
policies = pytest.mark.parametrize(
    "policy", [BY_DOMINANT_SHARE, IN_ONE_LINE], ids=["low", "one line"]
)


@policies
@few
@given(random=randoms())
def test_shares_are_those_computed_from_scratch(random: Random, policy: Policy) -> None:
    laws.check_shares_from_scratch(random, CYCLES, policy)


@policies
@few
@given(random=randoms())
def test_whatever_a_cycle_does_is_counted_for_shares_as_for_quota(
    random: Random, policy: Policy
) -> None:
    laws.check_in_step_with_quota(random, CYCLES, policy)


@policies
@pytest.mark.parametrize("seed", [24, 54])
def test_what_a_cycle_evicts_is_counted_out_of_shares(seed: int, policy: Policy) -> None:
    """Some worlds in which gangs are evicted, which few random ones are."""
    laws.check_in_step_with_quota(Random(seed), CYCLES, policy)


@few
@given(randoms())
def test_plans_keep_the_laws_and_come_to_rest(random: Random) -> None:
    laws.check_rest(random, CYCLES, BY_DOMINANT_SHARE)


@pytest.mark.parametrize("seed", range(10))
def test_a_line_in_which_all_take_victims_comes_to_rest(seed: int) -> None:
    """Some worlds: without fair shares such a line has, very rarely, circles of its own."""
    laws.check_rest(Random(seed), CYCLES, IN_ONE_LINE)


def test_what_others_ended_for_goes_before_all_of_its_queue() -> None:
    """A history in which one of its queue took that room each time, and was evicted again."""
    laws.check_rest(Random(145), 6, KAI)


@given(randoms())
def test_none_is_passed_by_one_that_has_more_for_its_weight(random: Random) -> None:
    laws.check_none_is_passed(random)
