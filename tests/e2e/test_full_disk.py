"""A disk is full to the last byte: what is there can be ended and deleted, and it is said why."""

from __future__ import annotations

from pathlib import Path

from tests.crash.crashes import run_with_disks, seed_of_this_run


def test_on_a_full_disk_of_the_database_cancel_delete_and_login_work_and_health_is_degraded(
    tmp_path: Path,
):
    run_with_disks("tests.crash.full", "database", tmp_path)


def test_a_task_that_fills_the_disk_of_the_tasks_leaves_the_database_alone(tmp_path: Path):
    run_with_disks("tests.crash.full", "tasks", tmp_path)


def test_data_of_pools_that_fills_the_disk_is_listed_read_and_deleted(tmp_path: Path):
    run_with_disks("tests.crash.full", "data", tmp_path)


def test_a_disk_that_becomes_full_under_load_takes_nothing_on_and_loses_nothing(tmp_path: Path):
    run_with_disks("tests.crash.full", "load", tmp_path, seed_of_this_run())
