"""Scenarios 99 to 107 over and over, on both databases."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.store.racers import at_once, create_in_processes, race_deletes_with_submissions
from tests.store.usecases import pools
from tests.store.world import World

pytestmark = pytest.mark.postgresql

INTERLEAVINGS = 4_000
ROUNDS = 100


def test_scenario_104_thousands_of_deletes_race_with_submissions(team):
    refused = race_deletes_with_submissions(team, INTERLEAVINGS)

    # Both ends were seen, or nothing raced.
    assert 0 < refused < INTERLEAVINGS


def test_scenarios_100_and_102_creates_race_over_and_over(team):
    for _ in range(ROUNDS):
        results = at_once(
            lambda: team.create("a", 60).quota,
            lambda: team.create("b", 60).quota,
            *[lambda: team.create("c", 1).quota] * 4,
        )

        assert sorted([60, 409, 1, 409, 409, 409]) == sorted(results)
        assert {1, 39, 60} == set(team.leaf_quotas().values())
        for name in team.leaf_quotas():
            if name != "_shared":
                team.delete(name)


def test_scenario_101_fifty_at_once_from_several_processes_over_and_over(team, database):
    for turn in range(5):
        names = [f"t{turn}-{number}" for number in range(50)]

        results = create_in_processes(database, names, quota=3, processes=3)

        assert (33, 17) == (results.count("created"), results.count(409))
        assert 1 == team.leaf_quotas()["_shared"]
        assert team.invariant_holds()
        for name in names:
            if name in team.leaf_quotas():
                team.delete(name)


def test_scenario_103_quotas_move_at_once(divided):
    for _ in range(ROUNDS):
        updated, deleted, resized = at_once(
            lambda: divided.update("b", 60).quota,
            lambda: divided.delete("a").state.value,
            _resize(divided, 99),
        )

        left = (updated, divided.leaf_quotas()["_shared"])
        assert left in [(60, 19), (409, 39)]
        assert ("ARCHIVED", 1) == (deleted, resized)
        assert divided.invariant_holds()
        divided.update("b", 40)
        divided.create("a", 30)
        _resize(divided, 100)()


def test_scenario_107_a_pool_shrinks_while_it_is_divided_over_and_over(team):
    team.split(a=30, b=40)
    for _ in range(ROUNDS):
        assert [1, 20] == at_once(_resize(team, 90), lambda: team.create("c", 20).quota)
        assert 0 == team.leaf_quotas()["_shared"]
        team.delete("c")
        _resize(team, 100)()

        results = at_once(_resize(team, 89), lambda: team.create("c", 20).quota)

        left = (*results, team.leaf_quotas()["_shared"])
        assert left in [(400, 20, 10), (1, 409, 19)]
        if left[0] == 400:
            team.delete("c")
        _resize(team, 100)()


def _resize(world: World, guarantee: int) -> Callable[[], object]:
    changes = {"resources": {"gpu": {"guarantee": guarantee}}}
    return lambda: len(pools.patch_pool(world.site, world.admin, "team", changes).views)
