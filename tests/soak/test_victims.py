"""The victims of plans in many small worlds, against all sets that may be taken."""

from __future__ import annotations

import sys
from collections import Counter
from random import Random

import pytest

from tests.worlds_victims import check

WORLDS = 20_000


def test_no_set_is_missed_or_better(capsys: pytest.CaptureFixture[str]) -> None:
    told = Counter[str]()
    for seed in range(WORLDS):
        check(Random(seed), told)
    with capsys.disabled():
        sys.stdout.write(f"\nvictims: {dict(told)}\n")

    assert WORLDS == told["worlds"]
