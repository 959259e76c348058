"""The undo log: what was where before, so that a what-if costs what it touched and no more.

It keeps old *values* (`container, key, before`), never inverse operations: one loop takes back
whatever was done, by all that share the log. Lists and dictionaries can be logged. What is derived
from them and kept elsewhere (a cache) watches the container, and is told which keys came back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

_ABSENT: Final = object()


class UndoLog:
    """Old values, the latest last. A mark is a place in the log."""

    __slots__ = ("_entries", "_watchers")

    def __init__(self) -> None:
        self._entries: list[tuple[Any, Any, Any]] = []
        #: By the identity of the container, which the watcher keeps alive.
        self._watchers: dict[int, Callable[[Any], None]] = {}

    def mark(self) -> int:
        """Where the log stands now; `undo` comes back to it."""
        return len(self._entries)

    def put(self, row: list[Value], position: int, value: Value) -> None:
        """Set one place of a list."""
        self._entries.append((row, position, row[position]))
        row[position] = value

    def put_key(self, table: dict[Key, Value], key: Key, value: Value) -> None:
        """Set one key of a dictionary, whether or not it is there."""
        self._entries.append((table, key, table.get(key, _ABSENT)))
        table[key] = value

    def drop_key(self, table: dict[Key, Value], key: Key) -> None:
        """Remove one key of a dictionary, which is there."""
        self._entries.append((table, key, table.pop(key)))

    def undo(self, mark: int) -> None:
        """Put back every value that was replaced since the mark."""
        entries = self._entries
        watchers = self._watchers
        while len(entries) > mark:
            container, key, before = entries.pop()
            if before is _ABSENT:
                del container[key]
            else:
                container[key] = before
            if id(container) in watchers:
                watchers[id(container)](key)

    def forget(self) -> None:
        """What is, stays: nothing that was done so far can be undone any more."""
        self._entries.clear()

    def watch(self, row: list[Value], told: Callable[[int], None]) -> None:
        """Report each position of the list to which an old value returns."""
        self._watchers[id(row)] = told
