"""What has changed since the last look, by the events that every change writes with it.

On SQLite events are numbered in the order in which they are kept. On PostgreSQL numbers are given
before the commit, so there a reader goes by transactions: those that it did not see last time, from
the number on that no earlier one can follow (`event_order`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from bough.model.change_record import EventKind
from bough.store.event_order import SETTLED
from bough.store.schema import EVENTS

#: With more changes than this, reading everything is no slower.
MOST = 2_000

_LAST = sa.select(sa.func.max(EVENTS.c.number))
_LAST_AND_SEEN = sa.text(
    f"SELECT (SELECT max(number) FROM events), txid_current_snapshot()::text, {SETTLED}"  # noqa: S608
)
_LATER = (
    sa.select(EVENTS.c.kind, EVENTS.c.subject)
    .where(
        EVENTS.c.number > sa.bindparam("floor"),
        # What a plan says about those that wait is nothing that a plan depends on.
        EVENTS.c.kind != EventKind.WAITING.value,
    )
    .distinct()
    .limit(MOST + 1)
)
_UNSEEN = _LATER.where(
    sa.text("NOT txid_visible_in_snapshot(written_in, CAST(:seen AS txid_snapshot))")
)


class Mark(msgspec.Struct, frozen=True):
    """What a reader has seen."""

    #: The highest number of an event that it saw.
    number: int
    #: Every event that it did not see has a higher number.
    floor: int
    #: PostgreSQL's own words for the transactions that it saw.
    seen: str = ""


class ChangedSubject(NamedTuple):
    """The subject and the kind of an event."""

    kind: EventKind
    subject: str


def look(
    connection: sa.Connection, before: Mark | None
) -> tuple[Mark, frozenset[ChangedSubject] | None]:
    """Where the reader of this transaction stands, and what it sees that an earlier one did not.

    `None`: that is not known, or too much to tell; then everything has to be read.
    """
    if connection.dialect.name == "postgresql":
        return _look_postgresql(connection, before)
    number = connection.execute(_LAST).scalar_one() or 0
    mark = Mark(number, number)
    if before is None:
        return mark, None
    if number == before.number:
        return mark, frozenset()
    return mark, _changes(connection.execute(_LATER, {"floor": before.number}).all())


def _look_postgresql(
    connection: sa.Connection, before: Mark | None
) -> tuple[Mark, frozenset[ChangedSubject] | None]:
    last, seen, settled = connection.execute(_LAST_AND_SEEN).one()
    mark = Mark(last or 0, settled, seen)
    if before is None:
        return mark, None
    if seen == before.seen:
        return mark, frozenset()
    values = {"floor": before.floor, "seen": before.seen}
    return mark, _changes(connection.execute(_UNSEEN, values).all())


def _changes(rows: Sequence[Sequence[Any]]) -> frozenset[ChangedSubject] | None:
    if len(rows) > MOST:
        return None
    return frozenset(ChangedSubject(EventKind(kind), subject) for kind, subject in rows)
