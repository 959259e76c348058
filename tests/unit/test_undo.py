from __future__ import annotations

import pytest

from bough.core.quota.tree import QuotaTree
from bough.core.undo import UndoLog
from bough.errors import Broken
from bough.model.quota import FlavorResource, NodeKind, Queue, TreeNode


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
    outer = log.mark()
    log.put(row, 0, 1)
    mark = log.mark()
    log.put(row, 0, 2)
    log.put(row, 0, 3)
    log.undo(mark)
    assert [1] == row
    log.undo(outer)
    assert [0] == row


def test_a_value_that_was_replaced_twice_returns_to_the_first() -> None:
    log = UndoLog()
    table: dict[str, int] = {}
    mark = log.mark()
    log.put_key(table, "a", 1)
    log.put_key(table, "a", 2)
    log.undo(mark)
    assert {} == table


def test_a_watcher_is_told_which_positions_of_its_list_came_back() -> None:
    log = UndoLog()
    watched, other = [0, 0, 0], [0]
    told: list[int] = []
    log.watch(watched, told.append)
    mark = log.mark()
    log.put(watched, 2, 5)
    log.put(other, 0, 5)
    log.put(watched, 1, 5)
    assert [] == told
    log.undo(mark)
    assert [1, 2] == told


def test_usage_returns_to_what_it_was_together_with_everything_else() -> None:
    log = UndoLog()
    tree = QuotaTree.of([], [Queue("a", None)], log)
    what, row = FlavorResource("any", "gpu"), [1]
    mark = log.mark()
    tree.add_usage("a", {what: 5})
    log.put(row, 0, 2)
    tree.remove_usage("a", {what: 3})
    log.undo(mark)
    assert (0, [1]) == (tree.usage(TreeNode(NodeKind.QUEUE, "a"), what), row)


def test_before_the_first_mark_and_after_forgetting_nothing_is_noted() -> None:
    log = UndoLog()
    row, table = [0], {"a": 0}
    tree = QuotaTree.of([], [Queue("a", None)], log)
    for number in (1, 2):
        log.put(row, 0, number)
        log.put_key(table, "a", number)
        log.drop_key(table, "a")
        tree.add_usage("a", {FlavorResource("any", "gpu"): number})
        assert log.is_empty
        log.mark()
        log.put(row, 0, 9)
        assert not log.is_empty
        log.forget()


def test_a_what_if_cannot_be_kept_after_an_outer_one_was_undone() -> None:
    log = UndoLog()
    outer = log.mark()
    row = [0]
    log.put(row, 0, 1)
    inner = log.mark()
    log.keep(inner)
    log.undo(outer)
    with pytest.raises(Broken, match="kept after an outer one was undone"):
        log.keep(inner)
