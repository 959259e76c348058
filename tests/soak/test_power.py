"""As tests/e2e/test_power.py, ten times as long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.crashes import run_with_disks, seed_of_this_run

LOSSES = 200


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "supervisor"])
def test_two_hundred_losses_of_power_lose_nothing_that_was_answered(kind: str, tmp_path: Path):
    run_with_disks("tests.crash.power", kind, tmp_path, seed_of_this_run(), LOSSES)
