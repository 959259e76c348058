"""An application in this process, with its own time; requests go through all of it but a socket."""

from __future__ import annotations

import pytest

from tests.api.house import House, prepare_divided, prepare_empty, prepare_team
from tests.api.tour import Visited, visit_all


@pytest.fixture
def house(request, sqlite_files):
    """An empty site with 100 GPUs and an administrator, or one that `team` or `divided` wants."""
    prepare = prepare_empty
    for name, wanted in (("team", prepare_team), ("divided", prepare_divided)):
        prepare = wanted if name in request.fixturenames else prepare
    address, secret = sqlite_files.make_prepared(prepare.__name__, prepare)
    with House(sqlite_files.open(address), secret=secret) as made:
        yield made
    sqlite_files.give_back(address)


@pytest.fixture
def team(house):
    """`T0`: pool `team` with all 100 GPUs."""
    return house


@pytest.fixture
def divided(team):
    """`T3`: `a` has 30, `b` 40, `c` 20, and 10 are left."""
    return team


@pytest.fixture(scope="session")
def visited(sqlite_files) -> list[Visited]:
    """The answers of a site that has something of everything."""
    store = sqlite_files.open(sqlite_files.make())
    with House(store) as house:
        found = visit_all(house)
    store.close()
    return found
