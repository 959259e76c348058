"""As tests/e2e/test_workers.py, with fifteen times as many kills."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.crashes import scene, seed_of_this_run
from tests.crash.postgres import durable_postgres
from tests.crash.workers import crash_workers

WORKERS = 2
KILLS = 60
BUDGET_S = 3_600


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest) -> Iterator[str | None]:
    if request.param == "sqlite":
        yield None
        return
    with durable_postgres() as postgres:
        yield postgres.url


def test_workers_that_are_killed_sixty_times_under_load_lose_nothing(
    address: str | None, tmp_path: Path
):
    options = ("--workers", str(WORKERS))
    with scene(tmp_path, seed_of_this_run(), address, options=options) as now:
        assert KILLS <= crash_workers(now, WORKERS, KILLS, BUDGET_S)
        now.settle()
