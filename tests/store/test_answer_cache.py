"""Answers that are kept: the same until something changes or the second is over, never older."""

from __future__ import annotations

from itertools import count

from bough.control.pools import quotas
from tests.store.racers import at_once


def test_what_nothing_has_changed_is_not_read_again(world):
    world.pool("team", 10)
    first = quotas.pool_quotas(world.site, world.admin)

    assert first is quotas.pool_quotas(world.site, world.admin)


def test_every_change_is_in_the_next_answer(world):
    world.pool("team", 10)
    before = quotas.pool_quotas(world.site, world.admin)
    world.pool("team", 20)
    after = quotas.pool_quotas(world.site, world.admin)

    assert [10, 20] == [each.total.quota_limit for each in (before, after)]
    world.run(5, "team")
    now = quotas.pool_quotas(world.site, world.admin)
    assert (0, 5) == (after.total.quota_used, now.total.quota_used)
    queues = quotas.list_queues(world.site, world.admin)
    assert 5 == max(each.used for each in queues)


def test_no_answer_is_older_than_a_second(world):
    world.pool("team", 10)
    first = quotas.pool_quotas(world.site, world.admin)
    world.time.ms += 1_000

    assert first is not quotas.pool_quotas(world.site, world.admin)


def test_those_who_ask_at_once_wait_for_one_answer(world):
    made = count(1)

    def make() -> int:
        return next(made)

    kept, store = world.site.kept, world.site.store
    found = at_once(*[lambda: kept.answer(store, "a number", 0, make)] * 8)

    assert [1] * 8 == list(found)
    assert 2 == kept.answer(store, "a number", 1_000, make)


def test_what_could_not_be_made_is_made_by_the_next(world):
    kept, store = world.site.kept, world.site.store

    def fail() -> int:
        raise ValueError

    for _ in range(2):
        try:
            kept.answer(store, "a number", 0, fail)
        except ValueError:
            continue
    assert 7 == kept.answer(store, "a number", 0, lambda: 7)
