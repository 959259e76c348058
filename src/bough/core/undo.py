"""The undo log: what was where before, so that a what-if costs what it touched and no more.

It keeps old *values* (`holder, key, before`), never inverse operations: one loop takes back
whatever was done, by all that share the log. Lists, dictionaries and attributes can be logged. What
is derived from a list and kept elsewhere (a cache) watches it, and is told which places came back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from bough.errors import Broken

Key = TypeVar("Key")
Value = TypeVar("Value")

_ABSENT: Final = object()


class Attribute:
    """The name of an attribute, told apart from a key."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class UndoLog:
    """Old values, the latest last. A mark is a place in the log.

    Before the first mark nothing can be undone, so nothing is noted.
    """

    __slots__ = ("_watchers", "noted")

    def __init__(self) -> None:
        #: Holder, key or attribute, old value, one after the other: the garbage collector would
        #: walk through very many tuples. `None` while nothing is noted.
        self.noted: list[Any] | None = None
        #: By the identity of the container, which the watcher keeps alive.
        self._watchers: dict[int, Callable[[Any], None]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to undo."""
        return not self.noted

    def put(self, row: list[Value], position: int, value: Value) -> None:
        """Set one place of a list."""
        if self.noted is not None:
            self.noted += (row, position, row[position])
        row[position] = value

    def put_key(self, table: dict[Key, Value], key: Key, value: Value) -> None:
        """Set one key of a dictionary, whether or not it is there."""
        if self.noted is not None:
            self.noted += (table, key, table.get(key, _ABSENT))
        table[key] = value

    def drop_key(self, table: dict[Key, Value], key: Key) -> None:
        """Remove one key of a dictionary, which is there."""
        before = table.pop(key)
        if self.noted is not None:
            self.noted += (table, key, before)

    def mark(self) -> int:
        """Begin a what-if, perhaps within another: `undo` comes back to where things stand now."""
        if self.noted is None:
            self.noted = []
        return len(self.noted)

    def undo(self, mark: int) -> None:
        """Put back every value that was replaced since the mark."""
        noted = self.noted or []
        watchers = self._watchers
        take = noted.pop
        while len(noted) > mark:
            before, key, holder = take(), take(), take()
            if key.__class__ is Attribute:
                setattr(holder, key.name, before)
                continue
            if before is _ABSENT:
                del holder[key]
            else:
                holder[key] = before
            if id(holder) in watchers:
                watchers[id(holder)](key)

    def keep(self, mark: int) -> None:
        """End a what-if by making it true, unless an outer one is undone."""
        if mark > len(self.noted or ()):
            raise Broken("a what-if was kept after an outer one was undone")

    def forget(self) -> None:
        """Make everything final: nothing that was done so far can be undone any more."""
        self.noted = None

    def watch(self, row: list[Value], told: Callable[[int], None]) -> None:
        """Report each position of the list to which an old value returns."""
        self._watchers[id(row)] = told
