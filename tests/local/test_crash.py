"""A server and a supervisor are killed a few times, and nothing is lost, none runs twice.

Many kills, and those of databases, are in tests/e2e and in the soak. `BOUGH_CRASH_SEED=N` repeats
the requests and the moments of a run whose seed was printed.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.crash.crashes import crash, scene, seed_of_this_run
from tests.crash.jobs import GroupPlan, Job, TaskPlan
from tests.crash.laws import FOLLOWED_OR_LOST
from tests.crash.load import POOL
from tests.crash.server import until

KILLS = 3
BUDGET_S = 600


def test_a_server_that_is_killed_three_times_under_load_loses_nothing(tmp_path: Path):
    with scene(tmp_path, seed_of_this_run(), most_jobs=24) as now:
        assert KILLS == crash(now, KILLS, BUDGET_S)
        assert now.load.accepted
        now.settle()


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
