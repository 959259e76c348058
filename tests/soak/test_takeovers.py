"""As tests/e2e/test_takeovers.py, ten times as long."""

from __future__ import annotations

from pathlib import Path

from tests.crash.crashes import seed_of_this_run
from tests.crash.postgres import durable_postgres
from tests.crash.takeovers import exchange, pair

TAKEOVERS = 200
BUDGET_S = 7_200


def test_servers_that_take_over_two_hundred_times_lose_nothing_and_run_nothing_twice(
    tmp_path: Path,
):
    with (
        durable_postgres() as postgres,
        pair(tmp_path, seed_of_this_run(), postgres.url) as servers,
    ):
        assert TAKEOVERS == exchange(servers, TAKEOVERS, BUDGET_S)
        servers.scene.settle()
