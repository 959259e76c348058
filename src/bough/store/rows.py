"""Rows into model types, by the names of their columns. Must not know any table."""

from __future__ import annotations

from typing import Any, TypeVar

import sqlalchemy as sa

from bough.store.conversion import convert

Record = TypeVar("Record")


def read_all(connection: sa.Connection, query: sa.Select[Any], kind: type[Record]) -> list[Record]:
    """Every row of a query."""
    result = connection.execute(query)
    # The names of columns are a kind of text of their own.
    names = [str(name) for name in result.keys()]  # noqa: SIM118 - a result is no mapping
    return [convert(dict(zip(names, row, strict=True)), kind) for row in result.all()]


def read_first(
    connection: sa.Connection, query: sa.Select[Any], kind: type[Record]
) -> Record | None:
    """The first row of a query; `None`: there is none."""
    found = read_all(connection, query.limit(1), kind)
    return found[0] if found else None
