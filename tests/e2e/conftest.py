"""Every test has a server of its own, once on SQLite and once on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.local import Hosting, Local, hosting, serving_locally
from tests.e2e.served import Served, serving


@pytest.fixture(params=["sqlite", "postgresql"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    database = None
    if request.param == "postgresql":
        database = request.getfixturevalue("postgres").make(migrated=False)
    with serving(tmp_path, database) as served:
        yield served


@pytest.fixture
def team(server: Served) -> Served:
    """A pool `team` with all 100 GPUs."""
    server.done("pool", "create", "team", "--quota", "100")
    return server


@pytest.fixture
def divided(team: Served) -> Served:
    """`a` has 30, `b` 40, `c` 20, and 10 are left."""
    for name, quota in (("a", "30"), ("b", "40"), ("c", "20")):
        team.done("pool", "subpool", "create", "team", name, "--quota", quota)
    return team


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def small_host(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Local]:
    database = None
    if request.param == "postgresql":
        database = request.getfixturevalue("postgres").make(migrated=False)
    with serving_locally(tmp_path_factory.mktemp("small"), 4, database) as local:
        yield local


@pytest.fixture
def small(small_host: Local) -> Iterator[Local]:
    """Four GPUs and nothing else; tasks are processes."""
    yield small_host
    small_host.clear()


@pytest.fixture(scope="module")
def large_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with serving_locally(tmp_path_factory.mktemp("large"), 100) as local:
        yield local


@pytest.fixture
def large(large_host: Local) -> Iterator[Local]:
    """A hundred GPUs and nothing else; tasks are processes."""
    yield large_host
    large_host.clear()


@pytest.fixture(params=["sqlite", "postgresql"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hosting]:
    """A server of one test alone, with a hundred GPUs; it is started by the test."""
    database = None
    if request.param == "postgresql":
        database = request.getfixturevalue("postgres").make(migrated=False)
    with hosting(tmp_path, 100, database=database) as found:
        yield found
