"""All rows of a database as a file, and back: the same for SQLite and PostgreSQL.

A dump is text in gzip: a line that says what it is, a line for each row, and a last line with the
number of rows and a checksum of all lines before. It belongs to one revision of the tables. A
database is made anew at that revision, filled, and then migrated, in one transaction.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import sqlalchemy as sa

from bough.errors import Conflict, Invalid
from bough.sealed_lines import LineWriter, SealedFile, check_lines, read_lines, wrong_checksum
from bough.store import settings
from bough.store.database import Store, again_if_given_up
from bough.store.migration import current_revision, known_revisions, migrate
from bough.store.schema import AUDIT, EVENTS, METADATA, OUTBOX

#: The form of this file.
FORM = 1
_KIND = "bough backup"
_AT_ONCE = 500
#: Says which restore was the last, for servers that run meanwhile.
RESTORED = "restored"
#: Counters by which servers keep what they have read; none of them goes back.
_WATCHED = (settings.VERSION, settings.SETUP, settings.ACCESS)
#: Numbers in these tables are never used again, not even those of rows that a restore replaced.
_NUMBERED = (AUDIT, EVENTS, OUTBOX)
#: Tables about servers that run now: in no dump, and left as they are.
_OF_THE_MOMENT = ("leadership",)
_REVISIONS = "alembic_version"
_TRIGGER_FUNCTIONS = sa.text(
    "SELECT proname FROM pg_proc WHERE pronamespace = current_schema()::regnamespace "
    "AND prorettype = 'trigger'::regtype AND proname LIKE 'bough%'"
)

#: Is told the name of a table and how many of its rows are done.
Progress = Callable[[str, int], None]


class DumpHead(msgspec.Struct, frozen=True):
    """The first line: what a dump is of."""

    #: The program that made it, and when.
    version: str
    created: str
    #: The revision of the tables.
    revision: str
    #: The last numbers that were given, by table.
    numbers: dict[str, int]
    kind: str = _KIND
    form: int = FORM
    #: The content of the key file, if that was asked for.
    key: str | None = None


class DumpEnd(msgspec.Struct, frozen=True):
    """The last line."""

    rows: int
    sha256: str


#: Makes the first line, from the revision and the last numbers.
MakeHead = Callable[[str, dict[str, int]], DumpHead]


def write_dump(store: Store, file: BinaryIO, head: MakeHead, tell: Progress) -> int:
    """Write all rows as they are at one moment; how many there are."""
    count = 0
    with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed, store.read() as connection:
        lines = LineWriter(packed)
        lines.write(head(current_revision(connection) or "", _last_numbers(connection)))
        for table in METADATA.sorted_tables:
            if table.name in _OF_THE_MOMENT:
                continue
            names = [str(each.name) for each in table.columns]
            done = 0
            for row in connection.execute(_in_order(table)).yield_per(_AT_ONCE):
                lines.write([str(table.name), dict(zip(names, row, strict=True))])
                done += 1
            count += done
            tell(table.name, done)
        lines.write(DumpEnd(count, lines.sha256()))
    return count


def check_dump(path: Path) -> tuple[DumpHead, int]:
    """Read a dump to its end; what it is of, and how many rows it has, if nothing is wrong."""
    rows = 0

    def count(_: bytes) -> None:
        nonlocal rows
        rows += 1

    head, end = check_lines(_dump_at(path), DumpHead("", "", "", {}), DumpEnd, count)
    if end.rows != rows:
        raise wrong_checksum(path)
    return head, rows


@again_if_given_up
def load_dump(store: Store, path: Path, mark: str, *, replace: bool, tell: Progress) -> DumpHead:
    """Replace the content of the database by that of a dump, in one transaction.

    `mark` tells running servers that everything may be different now.
    """
    head, _ = check_dump(path)
    if head.revision not in known_revisions():
        raise Conflict(
            f"{path} is of revision {head.revision}, which this program does not know.",
            hint=f"it was made by version {head.version}; restore it with that one or a newer one",
        )
    with store.write() as connection:
        numbers, counters, kept = head.numbers, dict.fromkeys(_WATCHED, 0), {}
        if current_revision(connection) is not None:
            if not replace:
                raise Conflict(
                    "The database is not empty.",
                    hint="--replace deletes all that is in it and not in the backup",
                )
            found = _last_numbers(connection)
            numbers = {name: max(found.get(name, 0), number) for name, number in numbers.items()}
            counters = {name: settings.counter(connection, name) for name in _WATCHED}
            kept = _drop_all(connection)
        migrate(connection, head.revision)
        _fill(connection, path, tell)
        _go_on_from(connection, numbers)
        migrate(connection)
        _put_back(connection, kept)
        for name, value in counters.items():
            settings.raise_counter_to(connection, name, value + 1)
        # Passes that were made since, or by tokens that were deleted since, end.
        settings.remove(connection, settings.PASS_KEY, settings.CLEAR_PASS_KEY)
        settings.put(connection, RESTORED, mark)
    return head


def _dump_at(path: Path) -> SealedFile:
    return SealedFile(path, packed=True, otherwise="not a backup of Bough")


def _in_order(table: sa.Table) -> sa.Select[Any]:
    """All rows, those that others of the same table refer to first."""
    order = [each.parent.is_not(None) for each in table.foreign_keys if each.column.table is table]
    return sa.select(table).order_by(*order, *table.primary_key.columns)


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    decoder = msgspec.json.Decoder(tuple[str, dict[str, Any]])
    lines = read_lines(_dump_at(path))
    next(lines)
    for line in lines:
        if line.startswith(b"["):
            yield decoder.decode(line)


def _fill(connection: sa.Connection, path: Path, tell: Progress) -> None:
    """Put the rows of a dump into tables that were just made."""
    tables = sa.MetaData()
    tables.reflect(connection)
    for table in reversed(tables.sorted_tables):
        if table.name not in (_REVISIONS, *_OF_THE_MOMENT):
            connection.execute(sa.delete(table))
    for name, rows in groupby(_rows(path), key=lambda each: each[0]):
        table = tables.tables.get(name)
        if table is None:
            raise Invalid(f"{path} is damaged: it has rows of a table {name}, which is not known.")
        done = 0
        for part in _parts(_renumbered(name, row) for _, row in rows):
            if not all(_fits(table, row) for row in part):
                raise Invalid(f"{path} is damaged: it has rows that do not fit the table {name}.")
            connection.execute(sa.insert(table), part)
            done += len(part)
        tell(name, done)


def _parts(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    part: list[dict[str, Any]] = []
    for row in rows:
        part.append(row)
        if len(part) == _AT_ONCE:
            yield part
            part = []
    if part:
        yield part


def _fits(table: sa.Table, row: dict[str, Any]) -> bool:
    return set(table.primary_key.columns.keys()) <= set(row) <= set(table.columns.keys())


def _renumbered(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row of a table; transactions, which events name, are numbered anew."""
    if table != EVENTS.name:
        return row
    # A dump of an older revision lacks some.
    unknown = {"written_in": 0, "begun_after": None}
    return {name: unknown.get(name, value) for name, value in row.items()}


def _last_numbers(connection: sa.Connection) -> dict[str, int]:
    """The last numbers that were given, also to rows that are deleted."""
    found: dict[str, int] = {}
    for table in _NUMBERED:
        if connection.dialect.name == "postgresql":
            last = sa.select(sa.literal_column("last_value")).select_from(
                sa.table(_sequence(table))
            )
        else:
            sequences = sa.table("sqlite_sequence", sa.column("name"), sa.column("seq"))
            last = sa.select(sequences.c.seq).where(sequences.c.name == table.name)
        found[str(table.name)] = connection.execute(last).scalar() or 0
    return found


def _go_on_from(connection: sa.Connection, numbers: dict[str, int]) -> None:
    """Let counters continue after the numbers of the dump."""
    for table in _NUMBERED:
        rows = connection.execute(sa.select(sa.func.max(table.c.number))).scalar() or 0
        last = max(rows, numbers.get(table.name, 0))
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.setval(_sequence(table), max(last, 1), last > 0)))
        elif last:
            sequences = sa.table("sqlite_sequence", sa.column("name"), sa.column("seq"))
            connection.execute(sa.delete(sequences).where(sequences.c.name == table.name))
            connection.execute(sa.insert(sequences).values(name=table.name, seq=last))


def _sequence(table: sa.Table) -> str:
    return f"{table.name}_number_seq"


def _drop_all(connection: sa.Connection) -> dict[str, list[dict[str, Any]]]:
    """Drop all tables; the rows that are put back afterwards."""
    tables = sa.MetaData()
    tables.reflect(connection)
    kept = {
        name: [dict(row._mapping) for row in connection.execute(sa.select(tables.tables[name]))]
        for name in _OF_THE_MOMENT
        if name in tables.tables
    }
    tables.drop_all(connection)
    if connection.dialect.name == "postgresql":
        for name in connection.execute(_TRIGGER_FUNCTIONS).scalars().all():
            connection.exec_driver_sql(f'DROP FUNCTION "{name}"()')
    return kept


def _put_back(connection: sa.Connection, kept: dict[str, list[dict[str, Any]]]) -> None:
    for name, rows in kept.items():
        table = METADATA.tables[name]
        connection.execute(sa.delete(table))
        if rows:
            connection.execute(sa.insert(table), rows)
