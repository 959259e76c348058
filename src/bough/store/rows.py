"""Rows into model types, by the names of their columns, and back; from any thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

Record = TypeVar("Record")
Kind = TypeVar("Kind")

#: msgspec learns a type when it is first converted to, and two threads that do so at the same time
#: crash the interpreter (seen with 0.22.0). So every type is converted to first by one thread
#: alone.
_LEARNT: set[Any] = set()
_LOCK = threading.Lock()
#: Some keys, as in `column.in_(KEYS)`; and how many of them one statement has at most.
KEYS: sa.BindParameter[Any] = sa.bindparam("keys", expanding=True)
_KEYS_AT_ONCE = 500
#: How many rows are fetched together where not all are wanted.
_AT_ONCE = 100


def read_all(
    connection: sa.Connection,
    query: sa.Select[Any],
    kind: type[Record],
    values: Mapping[str, Any] | None = None,
) -> list[Record]:
    """Every row of a query, with the values of what is open in it."""
    result = connection.execute(query, values)
    # The names of columns are a kind of text of their own.
    names = [str(name) for name in result.keys()]  # noqa: SIM118 - a result is no mapping
    return [convert(dict(zip(names, row, strict=True)), kind) for row in result.all()]


def read_of(
    connection: sa.Connection, query: sa.Select[Any], kind: type[Record], keys: Sequence[str]
) -> list[Record]:
    """The rows of some keys, which are open in the query as `KEYS`; in parts, if they are many.

    Such a query is written once: making a statement costs more than running it.
    """
    found: list[Record] = []
    for part in parts_of(keys):
        found += read_all(connection, query, kind, {KEYS.key: part})
    return found


def parts_of(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    """Keys in parts that fit into one statement."""
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        yield keys[start : start + _KEYS_AT_ONCE]


def read_each(
    connection: sa.Connection, query: sa.Select[Any], kind: type[Record]
) -> Iterator[Record]:
    """The rows of a query one after the other, for readers that stop before the last."""
    with closing(connection.execute(query.execution_options(yield_per=_AT_ONCE))) as result:
        names = [str(name) for name in result.keys()]  # noqa: SIM118 - a result is no mapping
        for row in result:
            yield convert(dict(zip(names, row, strict=True)), kind)


def read_first(
    connection: sa.Connection, query: sa.Select[Any], kind: type[Record]
) -> Record | None:
    """The first row of a query; `None`: there is none."""
    found = read_all(connection, query.limit(1), kind)
    return found[0] if found else None


def add(connection: sa.Connection, statement: sa.Insert, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows by a statement that is made once, without values; a single row needs no batch."""
    if rows:
        connection.execute(statement, rows if len(rows) > 1 else rows[0])


def convert(value: Any, kind: type[Kind]) -> Kind:
    """The value as a type; raises msgspec.ValidationError where it does not fit."""
    if kind not in _LEARNT:
        with _LOCK:
            msgspec.json.Decoder(kind)
            _LEARNT.add(kind)
    return msgspec.convert(value, kind)
