"""The law of the guarantee in many long histories over HTTP, on both databases."""

from __future__ import annotations

import pytest

from tests.api.guarantee_machine import check_guarantee

pytestmark = pytest.mark.postgresql

EXAMPLES = 150
STEPS = 40


def test_no_start_takes_what_is_promised_and_every_head_that_fits_starts(databases):
    check_guarantee(databases, EXAMPLES, STEPS)
