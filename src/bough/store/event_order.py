"""Following events by their numbers, so that none is passed over. All followers read through here.

On SQLite events are numbered in the order of the commits. On PostgreSQL numbers are drawn before
the commit, and one that was drawn early may be committed late, by a transaction that is younger or
older than those around it. So a follower goes as far as no number can still be filled in:

- Nothing is open that may have drawn a number. Then it sees all there is.
- Or else every event says which number was the last one when its transaction began
  (`begun_after`, noted by `Store.write`). A transaction that drew that number or an earlier one had
  begun to write before, so it is older; and where all that are older have ended, nothing up to that
  number is missing.

Both need that a transaction has its own number before it draws that of an event: the default of
`events.number` sees to it.
"""

from __future__ import annotations

import sqlalchemy as sa

from bough.model.change_record import StoredEvent
from bough.store.rows import read_all
from bough.store.schema import EVENTS

#: Every transaction with a lower number that may write to this database has ended, and is seen by
#: this reader. Other databases of the same server count with the same numbers, and one of their
#: transactions may be open for hours. One that has just ended may still count, but none of this
#: database is ever left out.
_OLDEST_OPEN = """coalesce(
    (SELECT min(number) FROM txid_snapshot_xip(txid_current_snapshot()) AS open(number)
     WHERE NOT EXISTS (
        SELECT FROM pg_stat_get_activity(NULL) AS other
        WHERE other.backend_xid::text::bigint = number % 4294967296
        AND (other.usesysid IS NULL OR other.datid <>
             (SELECT oid FROM pg_database WHERE datname = current_database())))),
    txid_snapshot_xmax(txid_current_snapshot()))"""
#: Whether no transaction has that number or a later one. `age` counts from the next number that
#: is given, which is not the end of a snapshot: that is the number after the last one that ended.
#: It does so once in a transaction, so the reader must see one moment; and not in a writer.
_NONE_LATER = """current_setting('transaction_isolation') = 'repeatable read'
    AND txid_current_if_assigned() IS NULL
    AND age((oldest % 4294967296)::text::xid) = 0"""
#: The number up to which this reader sees all events that there will ever be, on PostgreSQL.
#: Events of before there was `begun_after` were all committed when that was added. Each older event
#: gives a bound, and the highest of the last ones counts: one of a server of an earlier version,
#: while it is being replaced, says nothing.
SETTLED = f"""(SELECT coalesce(CASE WHEN {_NONE_LATER}
    THEN (SELECT max(number) FROM events)
    ELSE (SELECT max(coalesce(begun_after, number)) FROM
          (SELECT begun_after, number FROM events WHERE written_in < oldest
           ORDER BY number DESC LIMIT 64) AS recent) END, 0)
    FROM (SELECT {_OLDEST_OPEN} AS oldest OFFSET 0) AS open)"""  # noqa: S608

_LAST = sa.select(sa.func.coalesce(sa.func.max(EVENTS.c.number), 0))
_LAST_SETTLED = sa.text(f"SELECT {SETTLED}")
#: What a stored event shows, in the order of its fields.
EVENT_COLUMNS = [EVENTS.c[name] for name in StoredEvent.__struct_fields__]


def last_event(connection: sa.Connection) -> int:
    """The number to follow from: all events up to this one are there, and all others come after.

    On PostgreSQL a transaction that writes may be told an earlier number than a reader.
    """
    is_postgresql = connection.dialect.name == "postgresql"
    return connection.execute(_LAST_SETTLED if is_postgresql else _LAST).scalar_one()


def events_after(
    connection: sa.Connection,
    number: int,
    *,
    until: int | None = None,
    subject: str | None = None,
    limit: int = 500,
) -> list[StoredEvent]:
    """What happened after the event of a number, in order, without gaps that fill later.

    `until`: a number that `last_event` said; else all that this reader sees and may be told.
    """
    query = sa.select(*EVENT_COLUMNS).where(EVENTS.c.number > number)
    if subject is not None:
        query = query.where(EVENTS.c.subject == subject)
    if until is not None:
        query = query.where(EVENTS.c.number <= until)
    elif connection.dialect.name == "postgresql":
        query = query.where(EVENTS.c.number <= sa.text(SETTLED))
    return read_all(connection, query.order_by(EVENTS.c.number).limit(limit), StoredEvent)
