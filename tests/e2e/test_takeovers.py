"""The server that decides is frozen and killed under load: another goes on, and nothing runs twice.

`BOUGH_CRASH_SEED=N` repeats the requests and the moments of a run whose seed was printed.
"""

from __future__ import annotations

from pathlib import Path

from tests.crash.crashes import seed_of_this_run
from tests.crash.postgres import durable_postgres
from tests.crash.takeovers import exchange, pair

TAKEOVERS = 20
BUDGET_S = 900


def test_servers_that_take_over_from_each_other_lose_nothing_and_run_nothing_twice(tmp_path: Path):
    with (
        durable_postgres() as postgres,
        pair(tmp_path, seed_of_this_run(), postgres.url) as servers,
    ):
        assert TAKEOVERS == exchange(servers, TAKEOVERS, BUDGET_S)
        servers.scene.settle()
