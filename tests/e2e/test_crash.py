"""Servers, databases and supervisors are killed under load, and nothing is lost, none runs twice.

`BOUGH_CRASH_SEED=N` repeats the requests and the moments of a run whose seed was printed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.crash.crashes import crash, scene, seed_of_this_run
from tests.crash.jobs import GroupPlan, Job, TaskPlan
from tests.crash.laws import FOLLOWED_OR_LOST
from tests.crash.load import POOL
from tests.crash.postgres import durable_postgres
from tests.crash.server import until

KILLS = 20
BUDGET_S = 600


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[str | None]:
    if request.param == "sqlite":
        yield None
        return
    with durable_postgres() as postgres:
        yield postgres.url


def test_a_server_that_is_killed_under_load_loses_nothing(database: str | None, tmp_path: Path):
    with scene(tmp_path, seed_of_this_run(), database) as now:
        assert KILLS == crash(now, KILLS, BUDGET_S)
        now.settle()


def test_a_server_that_is_stopped_under_load_loses_nothing(database: str | None, tmp_path: Path):
    with scene(tmp_path, seed_of_this_run(), database) as now:
        with now.load.running():
            for _ in range(4):
                time.sleep(now.random.uniform(0.5, 3.0))
                assert 0 == now.server.stop()
                now.server.start()
                now.server.await_ready()
        now.settle()


def test_a_database_that_crashes_under_load_loses_nothing(tmp_path: Path):
    with durable_postgres() as postgres, scene(tmp_path, seed_of_this_run(), postgres.url) as now:
        with now.load.running():
            for _ in range(4):
                time.sleep(now.random.uniform(0.5, 3.0))
                postgres.crash()
                time.sleep(now.random.uniform(0.0, 2.0))
                postgres.resume()
            time.sleep(2.0)
        now.settle()


def test_supervisors_and_fork_servers_that_are_killed_under_load_lose_nothing(tmp_path: Path):
    with scene(tmp_path, seed_of_this_run()) as now:
        with now.load.running():
            for number in range(20):
                time.sleep(now.random.uniform(0.2, 0.8))
                found = now.server.supervisors() if number % 4 else now.server.fork_servers()
                if found:
                    with suppress(ProcessLookupError):
                        os.kill(now.random.choice(found), signal.SIGKILL)
        now.settle(FOLLOWED_OR_LOST)


def test_a_supervisor_that_is_killed_means_another_attempt_and_nothing_runs_on(tmp_path: Path):
    gang = (TaskPlan("rank-0", lines=20), TaskPlan("rank-1", lines=20, lead=False))
    job = Job("kept", POOL, "NORMAL", (GroupPlan("all", gang),))
    with scene(tmp_path, seed_of_this_run()) as now:
        answer = now.load.submit(now.server.client(), job)
        assert "done" == answer.kind, answer
        until(lambda: len(now.witness.living) == 2, "both tasks run")
        before = list(now.witness.runs)
        (supervisor,) = now.server.supervisors()
        os.kill(supervisor, signal.SIGKILL)
        until(lambda: len(now.witness.runs) == 4, "both tasks run again")
        assert all(run.over for run in before)
        now.settle(FOLLOWED_OR_LOST)
