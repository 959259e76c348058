from __future__ import annotations

from bough.core.undo import UndoLog


def test_undo_puts_back_values_of_lists_and_dictionaries() -> None:
    log = UndoLog()
    row, table = [1, 2], {"a": 1}
    mark = log.mark()
    log.put(row, 0, 7)
    log.put_key(table, "a", 8)
    log.put_key(table, "b", 9)
    log.drop_key(table, "a")
    assert ([7, 2], {"b": 9}) == (row, table)
    log.undo(mark)
    assert ([1, 2], {"a": 1}) == (row, table)


def test_undo_goes_back_to_the_mark_and_no_further() -> None:
    log = UndoLog()
    row = [0]
    log.put(row, 0, 1)
    mark = log.mark()
    log.put(row, 0, 2)
    log.put(row, 0, 3)
    log.undo(mark)
    assert [1] == row
    log.undo(0)
    assert [0] == row


def test_a_value_that_was_replaced_twice_returns_to_the_first() -> None:
    log = UndoLog()
    table: dict[str, int] = {}
    log.put_key(table, "a", 1)
    log.put_key(table, "a", 2)
    log.undo(0)
    assert {} == table


def test_a_watcher_is_told_which_positions_of_its_list_came_back() -> None:
    log = UndoLog()
    watched, other = [0, 0, 0], [0]
    told: list[int] = []
    log.watch(watched, told.append)
    log.put(watched, 2, 5)
    log.put(other, 0, 5)
    log.put(watched, 1, 5)
    assert [] == told
    log.undo(0)
    assert [1, 2] == told
