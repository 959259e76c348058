"""Which gangs are only in the one, or only in the other, of two rows."""

from __future__ import annotations

import pytest

from bough.core.cycle.memo import LOOK_AHEAD, MOST_EDITS, difference
from bough.model.gang import Gang

GANGS = tuple(Gang(f"g{number:03}", "q", ()) for number in range(200))
FRESH = tuple(Gang(f"new{number:03}", "q", ()) for number in range(200))


def rows() -> dict[str, tuple[Gang, ...]]:
    far = LOOK_AHEAD + 3
    return {
        "nothing": GANGS,
        "one gone": (*GANGS[:50], *GANGS[51:]),
        "several gone beside each other": (*GANGS[:50], *GANGS[54:]),
        "more gone than are looked ahead": (*GANGS[:50], *GANGS[50 + far :]),
        "several come": (*GANGS[:50], *FRESH[:4], *GANGS[50:]),
        "replaced, then gone": (*GANGS[:50], FRESH[0], *GANGS[52:]),
        "gone and come at the end": (*GANGS[:-3], *FRESH[:5]),
        "all others": FRESH,
        "none": (),
        "many places": tuple(GANGS[at] if at % 7 else FRESH[at] for at in range(7 * MOST_EDITS)),
        "in another order": GANGS[::-1],
        "one elsewhere": (*GANGS[1:120], GANGS[0], *GANGS[120:]),
    }


@pytest.mark.parametrize("case", rows())
def test_what_is_gone_and_come_makes_the_one_row_the_other(case: str) -> None:
    new = rows()[case]
    for before, after in ((GANGS, new), (new, GANGS)):
        gone, come = difference(before, after)
        names = {gang.name for gang in before} - {gang.name for gang in gone}
        assert {gang.name for gang in after} == names | {gang.name for gang in come}
        assert len(gone) == len({gang.name for gang in gone})
        assert not names & {gang.name for gang in come}


def test_few_differences_are_told_without_any_more() -> None:
    gone, come = difference(GANGS, (*GANGS[:50], *FRESH[:2], *GANGS[53:90], *GANGS[91:]))

    assert [*GANGS[50:53], GANGS[90]] == gone
    assert [*FRESH[:2]] == come


@pytest.mark.parametrize("at", range(40))
def test_one_that_is_replaced_is_seen_wherever_it_stands(at: int) -> None:
    for length in (40, 41, 90):
        old = GANGS[:length]
        for new in ((*old[:at], FRESH[0], *old[at + 1 :]), (*old[:at], FRESH[0], *old[at:])):
            gone, come = difference(old, new)

            assert [each for each in old if each not in new] == gone
            assert [FRESH[0]] == come
