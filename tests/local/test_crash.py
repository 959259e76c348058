"""A server is killed under load, and nothing is lost, none runs twice.

Many kills, and those of databases and supervisors, are in tests/e2e and in the soak.
`BOUGH_CRASH_SEED=N` repeats the requests and the moments of a run whose seed was printed.
"""

from __future__ import annotations

from pathlib import Path

from tests.crash.crashes import crash, scene, seed_of_this_run
from tests.crash.jobs import GroupPlan, Job, TaskPlan
from tests.crash.load import POOL

KILLS = 1
BUDGET_S = 600


def test_a_server_that_is_killed_under_load_loses_nothing(tmp_path: Path):
    first = Job("first", POOL, "NORMAL", (GroupPlan("all", (TaskPlan("rank-0", lines=20),)),))
    with scene(tmp_path, seed_of_this_run(), most_jobs=24) as now:
        assert "done" == now.load.submit(now.server.client(), first).kind
        assert KILLS == crash(now, KILLS, BUDGET_S)
        assert "first" in now.load.accepted
        now.settle()
