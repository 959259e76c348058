from __future__ import annotations

import random

import pytest

from bough.core.place import node_changes
from bough.core.place.free_magnitudes import Magnitudes
from bough.core.place.node_bits import mask_of, positions
from bough.core.place.node_changes import Changes, Returns


def test_positions_are_the_bits_of_a_mask_in_order() -> None:
    assert [0, 3, 70] == list(positions(1 | 8 | 1 << 70))
    assert [] == list(positions(0))
    assert 1 | 8 == mask_of([3, 0])


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 9, 31, 100])
def test_what_came_back_since_an_event_is_the_union_of_all_later_ones(size: int) -> None:
    chance = random.Random(size)
    masks = [1 << chance.randrange(50) for _ in range(size)]
    returns = Returns()
    for mask in masks:
        returns.append(mask)
    for position in range(size + 1):
        expected = 0
        for mask in masks[position:]:
            expected |= mask
        assert expected == returns.since(position)


def test_a_long_history_of_returns_starts_a_new_era(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_changes, "MAXIMUM_RETURNS", 4)
    returns = Returns()
    for bit in range(5):
        returns.append(1 << bit)
    assert (1, 1) == (returns.era, returns.count)
    assert 1 << 4 == returns.since(0)


def test_changes_are_read_from_where_one_stopped() -> None:
    changes = Changes()
    changes.append(3)
    seen = len(changes)
    changes.append(5)
    assert [5] == changes.since(seen)
    assert [] == changes.since(len(changes))


def test_a_reader_that_comes_too_late_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_changes, "MAXIMUM_CHANGES", 2)
    changes = Changes()
    for node in range(3):
        changes.append(node)
    assert changes.since(1) is None
    assert [2] == changes.since(2)


def test_nodes_with_much_too_little_are_left_out_and_come_back() -> None:
    rows = [(0, 8, 100, 1), (0, 3, 100, 1)]
    changes = Changes()
    magnitudes = Magnitudes(rows, changes)
    assert 0b01 == magnitudes.at_least((0, 4, 0, 1))
    rows[0], rows[1] = (0, 0, 100, 1), (0, 7, 100, 1)
    changes.append(0)
    changes.append(1)
    assert 0b10 == magnitudes.at_least((0, 4, 0, 1))
    assert 0 == magnitudes.at_least((0, 4, 200, 1))
    assert magnitudes.at_least((1, 0, 0, 1)) is None
