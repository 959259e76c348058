"""Every test that asks for a store runs on SQLite and, here or in CI, on PostgreSQL."""

from __future__ import annotations

import pytest

from tests.store.databases import KINDS
from tests.store.world import World


def pytest_generate_tests(metafunc):
    """On SQLite, and on PostgreSQL what is about the database; in CI everything runs on both."""
    if "databases" in metafunc.fixturenames:
        marked = metafunc.definition.get_closest_marker("postgresql")
        kinds = ["sqlite", "postgresql"] if marked and KINDS == ["sqlite"] else KINDS
        metafunc.parametrize("databases", kinds, indirect=True)


@pytest.fixture
def databases(request):
    """Makes databases of one kind."""
    name = "sqlite_files" if request.param == "sqlite" else "postgres"
    return request.getfixturevalue(name)


@pytest.fixture
def database(databases):
    """The URL of a fresh, migrated database."""
    made = databases.make()
    yield made
    databases.give_back(made)


@pytest.fixture
def store(databases, database):
    return databases.open(database)


@pytest.fixture
def world(store):
    """An empty site with 100 GPUs."""
    made = World(store)
    yield made
    made.close()


@pytest.fixture
def team(world):
    """`T0`: pool `team` with all 100 GPUs."""
    world.pool("team", 100)
    world.settle()
    return world


@pytest.fixture
def divided(team):
    """`T3`: `a` has 30, `b` 40, `c` 20, and 10 are left."""
    team.split(a=30, b=40, c=20)
    return team
