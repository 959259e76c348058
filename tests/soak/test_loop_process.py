"""As tests/e2e/test_loop_process.py, five times as long."""

from __future__ import annotations

from pathlib import Path

from tests.crash.crashes import scene, seed_of_this_run
from tests.crash.loops import crash_loops
from tests.crash.postgres import durable_postgres

KILLS = 100
BUDGET_S = 3_600


def test_a_loop_that_is_killed_a_hundred_times_loses_nothing_on_sqlite(tmp_path: Path):
    with scene(tmp_path, seed_of_this_run()) as now:
        assert KILLS == crash_loops(now, KILLS, BUDGET_S)
        now.settle()


def test_a_loop_that_is_killed_a_hundred_times_loses_nothing_on_postgresql(tmp_path: Path):
    with durable_postgres() as postgres, scene(tmp_path, seed_of_this_run(), postgres.url) as now:
        assert KILLS == crash_loops(now, KILLS, BUDGET_S)
        now.settle()
