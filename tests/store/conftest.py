"""Every test that asks for a store runs on SQLite and, here or in CI, on PostgreSQL."""

from __future__ import annotations

import pytest

from bough.store import Store
from tests.store.databases import KINDS, SqliteFiles
from tests.store.world import Names, World


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


def _prepare_team(store: Store) -> int:
    world = World(store)
    world.pool("team", 100)
    world.settle()
    world.close()
    return world.names.given()


def _prepare_divided(store: Store) -> int:
    world = World(store, names=Names(_prepare_team(store)))
    world.split(a=30, b=40, c=20)
    return world.names.given()


_PREPARED = {"divided": _prepare_divided, "team": _prepare_team}


@pytest.fixture
def prepared(request, databases):
    """The URL of a fresh, migrated database, what is in it, and how many names that has."""
    wanted = next((each for each in _PREPARED if each in request.fixturenames), None)
    if wanted is None or not isinstance(databases, SqliteFiles):
        yield databases.make(), None, 0
        return
    address, given = databases.make_prepared(f"world-{wanted}", _PREPARED[wanted])
    yield address, wanted, given


@pytest.fixture
def database(databases, prepared):
    """The URL of a fresh, migrated database; `team` and `divided` may be in it already."""
    yield prepared[0]
    databases.give_back(prepared[0])


@pytest.fixture
def store(databases, database):
    return databases.open(database)


@pytest.fixture
def world(store, prepared):
    """An empty site with 100 GPUs."""
    made = World(store, names=Names(prepared[2]))
    yield made
    made.close()


@pytest.fixture
def team(world, prepared):
    """`T0`: pool `team` with all 100 GPUs."""
    if prepared[1] is None:
        world.pool("team", 100)
        world.settle()
    return world


@pytest.fixture
def divided(team, prepared):
    """`T3`: `a` has 30, `b` 40, `c` 20, and 10 are left."""
    if prepared[1] is None:
        team.split(a=30, b=40, c=20)
    return team
