"""Scenario 104 as often as it says: a thousand deletes race with submissions, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.store import Store
from tests.store.databases import SqliteFiles
from tests.store.racers import race_deletes_with_submissions
from tests.store.world import World

INTERLEAVINGS = 1_000


@pytest.fixture(params=["sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """`T0`: pool `team` with all 100 GPUs."""
    if request.param == "sqlite":
        store = Store.open(SqliteFiles(tmp_path).make())
    else:
        store = Store.open(request.getfixturevalue("postgres").make())
    made = World(store)
    made.pool("team", 100)
    made.settle()
    yield made
    made.close()
    store.close()


def test_scenario_104_a_thousand_deletes_race_with_submissions(world):
    refused = race_deletes_with_submissions(world, INTERLEAVINGS)

    # Both ends were seen, or nothing raced.
    assert 0 < refused < INTERLEAVINGS
