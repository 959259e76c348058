"""Victims of the own queue are found before those of others; the search in order finds the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bough.core.cycle.candidates import Candidates
from bough.core.cycle.preemption import PreemptionSearch
from bough.core.cycle.victim import Victim
from tests.bench.kueue_replay import BASELINE, Kind, Replay, Setup

#: Of one replay.
MOST_CYCLES = 60
#: For each search that may begin with the own queue: victims of that queue, and of others.
Seen = list[tuple[int, int]]


@pytest.fixture
def seen() -> Iterator[Seen]:
    """Make every search twice, in both ways, and compare."""
    found: Seen = []
    search, plain = PreemptionSearch._search_in_order, Candidates.are_plain

    def twice(self: PreemptionSearch, *, borrowing: bool) -> list[Victim] | None:
        shortened = search(self, borrowing=borrowing)
        self._release(shortened)
        Candidates.are_plain = property(lambda _: False)  # type: ignore[method-assign]
        in_order = search(self, borrowing=borrowing)
        Candidates.are_plain = plain  # type: ignore[method-assign]
        assert _told(shortened) == _told(in_order)
        if not borrowing:
            own = sum(victim.reach is None for victim in in_order or ())
            found.append((own, len(in_order or ()) - own))
        return in_order

    PreemptionSearch._search_in_order = twice  # type: ignore[method-assign]
    yield found
    PreemptionSearch._search_in_order = search  # type: ignore[method-assign]


def _told(victims: list[Victim] | None) -> list[tuple[str, str]] | None:
    return None if victims is None else [(each.claim.name, each.rule) for each in victims]


def _setup(random: Random) -> Setup:
    """A cohort of a few queues, which borrow from each other until larger ones come."""
    kinds = tuple(
        Kind(
            f"kind-{number}",
            random.randint(2, 8),
            random.randint(1, 6) * 100,
            random.randint(1, 20) * 100,
            random.randint(0, 2) * 50,
            random.randint(1, 20),
        )
        for number in range(random.randint(2, 5))
    )
    return Setup("random", 1, random.randint(2, 5), kinds, BASELINE.expected, 1.0)


class _Enough(Exception):
    """The replay has gone on for long enough: by Kueue's rules gangs may evict in circles."""


class _ShortReplay(Replay):
    def _cycle(self) -> None:
        if self._cycles == MOST_CYCLES:
            raise _Enough
        super()._cycle()


def _play(random: Random) -> None:
    with suppress(_Enough):
        _ShortReplay(_setup(random)).run()


@given(st.integers(0, 2**32 - 1).map(Random))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.usefixtures("seen")
def test_both_ways_find_the_same(random: Random) -> None:
    _play(random)


def test_some_searches_need_victims_of_the_own_queue_and_of_others(seen: Seen) -> None:
    for number in range(30):
        _play(Random(number))
    assert any(own and others for own, others in seen)
    assert any(own and not others for own, others in seen)
