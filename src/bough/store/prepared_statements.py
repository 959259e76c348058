"""Statements that run for every submission: compiled once, and then given to the driver as text.

SQLAlchemy looks up, checks and prepares a statement anew each time it runs, which takes longer than
the database takes to add the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

_Processor = Callable[[Any], Any] | None


class Prepared:
    """Adds rows by one statement. Threads may share it."""

    def __init__(self, statement: sa.Insert) -> None:
        self._statement = statement
        #: By kind of database, and the names of the values.
        self._compiled: dict[tuple[str, tuple[str, ...]], _Compiled] = {}

    def add(self, connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows, all of which have values of the same names."""
        if not rows:
            return
        key = (connection.dialect.name, tuple(rows[0]))
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = _compile(connection, self._statement, rows[0])
        values = [compiled.values(row) for row in rows]
        connection.exec_driver_sql(compiled.text, values if len(values) > 1 else values[0])


class _Compiled(NamedTuple):
    """A statement as a driver takes it."""

    text: str
    #: The names of its values, and what the driver has to be given for each.
    parameters: tuple[tuple[str, _Processor], ...]
    positional: bool

    def values(self, row: Mapping[str, Any]) -> Any:
        """The values of a row, as the driver takes them."""
        found = [
            row[name] if process is None else process(row[name])
            for name, process in self.parameters
        ]
        if self.positional:
            return tuple(found)
        names = (name for name, _ in self.parameters)
        return dict(zip(names, found, strict=True))


def _compile(connection: sa.Connection, statement: sa.Insert, row: Mapping[str, Any]) -> _Compiled:
    dialect = connection.dialect
    made: Any = statement.compile(dialect=dialect, column_keys=list(row))
    names = made.positiontup if made.positional else list(made.binds)
    parameters = tuple(
        (name, made.binds[name].type.dialect_impl(dialect).bind_processor(dialect))
        for name in names
    )
    return _Compiled(str(made), parameters, made.positional)
