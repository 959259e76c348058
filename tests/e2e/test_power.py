"""The power fails under load, again and again, and nothing that was answered is lost.

`BOUGH_CRASH_SEED=N` repeats the requests and the moments of a run whose seed was printed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.crashes import run_with_disks, seed_of_this_run

LOSSES = 20


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_server_whose_power_fails_under_load_loses_nothing_that_it_answered(
    database: str, tmp_path: Path
):
    run_with_disks("tests.crash.power", database, tmp_path, seed_of_this_run(), LOSSES)


def test_the_end_of_a_task_its_log_and_its_results_outlive_a_loss_of_power(tmp_path: Path):
    run_with_disks("tests.crash.power", "supervisor", tmp_path, seed_of_this_run(), LOSSES)
