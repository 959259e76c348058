"""The power fails: how tasks ended, what they printed and what they made is on the disk.

Many losses, and those of servers and databases, are in tests/e2e and in the soak.
"""

from __future__ import annotations

from pathlib import Path

from tests.crash.crashes import run_with_disks, seed_of_this_run


def test_the_end_of_a_task_its_log_and_its_results_outlive_a_loss_of_power(tmp_path: Path):
    run_with_disks("tests.crash.power", "supervisor", tmp_path, seed_of_this_run(), 2)
