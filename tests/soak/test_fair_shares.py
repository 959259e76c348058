"""The laws of fair shares, in many worlds."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, Phase, given, settings

from tests import laws_fair_shares as laws
from tests.strategies_cycle import seeds

many = settings(
    settings.get_profile("soak"),
    max_examples=10_000,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@many
@given(seeds())
def test_all_comes_to_rest_and_nothing_that_moves_is_lost(random: Random) -> None:
    laws.check_rest(random)
