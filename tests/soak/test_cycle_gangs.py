"""The laws of the cycle over gangs, on many long histories."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, Phase, given, settings

from tests import laws_cycle as laws
from tests.strategies_cycle import seeds

CYCLES = 12
#: Choices come from seeds, which is fast; a seed that fails is not shrunk, but can be tried again.
many = settings(
    settings.get_profile("soak"),
    max_examples=4_000,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@many
@given(seeds())
def test_no_plan_of_any_history_breaks_a_law(random: Random) -> None:
    laws.check_every_plan(random, CYCLES)


@many
@given(seeds())
def test_no_plan_with_several_flavors_breaks_a_law(random: Random) -> None:
    laws.check_every_plan(random, CYCLES, flavors=2)


@many
@given(seeds())
def test_a_fixpoint_is_reached_and_stays(random: Random) -> None:
    laws.check_fixpoint(random, CYCLES, forgets=False)


@many
@given(seeds())
def test_a_fixpoint_is_reached_although_no_nominations_are_remembered(random: Random) -> None:
    laws.check_fixpoint(random, CYCLES, forgets=True)


@many
@given(seeds())
def test_no_victim_is_superfluous(random: Random) -> None:
    laws.check_victims_needed(random, CYCLES)


@many
@given(seeds())
def test_victims_are_found_where_there_are_any(random: Random) -> None:
    laws.check_victims_found(random, CYCLES)


@many
@given(seeds())
def test_who_waits_for_quota_changes_nothing_for_others(random: Random) -> None:
    laws.check_blocked(random, CYCLES)


@many
@given(seeds())
def test_a_memo_never_changes_a_plan(random: Random) -> None:
    laws.check_memo(random, CYCLES)


@many
@given(seeds())
def test_the_order_of_what_is_declared_means_nothing(random: Random) -> None:
    laws.check_order_of_declarations(random, CYCLES)
