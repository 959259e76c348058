"""The law of the guarantee in random histories over HTTP, on both databases."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.api.guarantee_machine import GuaranteeMachine

#: The soak has more.
EXAMPLES = 40
STEPS = 25


@pytest.fixture(params=["sqlite", "postgresql"])
def databases(request):
    name = "sqlite_files" if request.param == "sqlite" else "postgres"
    return request.getfixturevalue(name)


def test_no_start_takes_what_is_promised_and_every_head_that_fits_starts(databases):
    run_state_machine_as_test(
        lambda: GuaranteeMachine(databases),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )
