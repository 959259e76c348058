"""Watches in which order transactions lock rows, by the statements that they send."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

#: The order of docs/contributing/database.md; what is missing here is only ever added.
ORDER = (
    ("leadership",),
    ("cohorts",),
    ("pools",),
    ("drain_monitors",),
    ("the counter of rights",),
    ("users", "user_roles", "roles", "tokens", "token_roles", "profiles", "credentials"),
    ("apps", "app_versions"),
    ("settings",),
    ("counters of revisions",),
    ("config_history",),
    ("the version",),
    ("backends",),
    ("nodes",),
    ("counters of names",),
    ("workflow_arrays",),
    ("workflows",),
    ("task_groups", "tasks", "workflow_specs"),
    ("workflow_predecessors",),
    ("archived_workflows",),
    ("wait_causes",),
    ("outbox",),
    ("notifications",),
)
_RANKS = {name: rank for rank, names in enumerate(ORDER) for name in names}
_LOCKS = re.compile(
    r'^\s*(?:UPDATE|DELETE FROM|INSERT INTO (?=counters))\s*"?(\w+)|'
    r'^\s*SELECT .*?\sFROM\s+"?(\w+).*\sFOR (?:NO KEY )?(?:UPDATE|SHARE)',
    re.DOTALL,
)


class LockWatch:
    """What is locked, and where a lock came after one that has a later place."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.locked: set[str] = set()
        #: By connection and thread: on SQLite one commit may have several writers, each in a thread
        #: of its own and one after the other, so that none of them waits for a lock of another.
        self._open: dict[tuple[int, int], list[str]] = {}

    def begin(self, connection: sa.Connection) -> None:
        begun = id(connection.connection.dbapi_connection)
        self._open = {each: had for each, had in self._open.items() if each[0] != begun}

    def statement(
        self, connection: sa.Connection, _cursor: Any, text: str, values: Any, *_more: Any
    ) -> None:
        found = _LOCKS.match(text)
        if found is None:
            return
        if found[0].startswith("DELETE FROM workflows") and connection.dialect.name == "sqlite":
            # A row goes after those that refer to it. It was locked before them, by a statement
            # that SQLite does not have.
            return
        what = _named(found[1] or found[2], values)
        writer = id(connection.connection.dbapi_connection), threading.get_ident()
        had = self._open.setdefault(writer, [])
        self.locked.add(what)
        if what not in _RANKS:
            self.faults.append(f"{what} has no place in the order")
            return
        if what not in had and _RANKS[what] < max((_RANKS[each] for each in had), default=0):
            self.faults.append(" > ".join([*had, what]))
        if not had or had[-1] != what:
            had.append(what)


@contextmanager
def watching(engine: sa.Engine) -> Iterator[LockWatch]:
    """Watch everything that is sent meanwhile."""
    watch = LockWatch()
    listeners = (
        ("begin", watch.begin),
        ("before_cursor_execute", watch.statement),
    )
    for name, listener in listeners:
        event.listen(engine, name, listener)
    try:
        yield watch
    finally:
        for name, listener in listeners:
            event.remove(engine, name, listener)


def _named(table: str, values: Any) -> str:
    """What a statement locks: counters are different things, by their names."""
    if table != "counters":
        return table
    named = repr(values)
    if "'version'" in named:
        return "the version"
    if "'access'" in named:
        return "the counter of rights"
    return "counters of revisions" if "'revision:" in named else "counters of names"
