"""What is written about changes: audit, history of configuration, events, the outbox."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from bough.model.change_record import (
    AuditEntry,
    ConfigType,
    EventKind,
    OutboxMessage,
    Revision,
    StoredEvent,
)
from bough.store.event_order import EVENT_COLUMNS
from bough.store.rows import KEYS, add, read_all, read_first, read_of
from bough.store.schema import AUDIT, CONFIG_HISTORY, EVENTS, OUTBOX
from bough.store.settings import raise_counter

_INSERT_AUDIT = sa.insert(AUDIT).inline()
_INSERT_EVENT = sa.insert(EVENTS).inline()
_INSERT_ERRAND = sa.insert(OUTBOX).inline()
_EVENTS_OF_MANY = (
    sa.select(*EVENT_COLUMNS).where(EVENTS.c.subject.in_(KEYS)).order_by(EVENTS.c.number)
)

# Audit


def add_audit(connection: sa.Connection, entry: AuditEntry) -> None:
    """Record who changed what."""
    add(connection, _INSERT_AUDIT, (unnumbered(entry),))


def list_audit(
    connection: sa.Connection,
    *,
    subject: str | None = None,
    actor: str | None = None,
    before: int | None = None,
    limit: int = 100,
) -> list[AuditEntry]:
    """The latest entries first; `before` is the number of the last one that is known already."""
    query = sa.select(AUDIT).order_by(AUDIT.c.number.desc()).limit(limit)
    if subject is not None:
        query = query.where(AUDIT.c.subject == subject)
    if actor is not None:
        query = query.where(AUDIT.c.actor == actor)
    if before is not None:
        query = query.where(AUDIT.c.number < before)
    return read_all(connection, query, AuditEntry)


# History


def add_revision(connection: sa.Connection, revision: Revision) -> Revision:
    """Record a change under the next number of its kind."""
    number = raise_counter(connection, f"revision:{revision.config_type.value}")
    numbered = msgspec.structs.replace(revision, revision=number)
    connection.execute(sa.insert(CONFIG_HISTORY).values(**msgspec.to_builtins(numbered)))
    return numbered


def list_revisions(
    connection: sa.Connection,
    *,
    types: Sequence[ConfigType] = (),
    name: str | None = None,
    newest_first: bool = False,
    limit: int | None = None,
    offset: int = 0,
) -> list[Revision]:
    """Changes in the order in which they were made, or the reverse."""
    table = CONFIG_HISTORY
    order = (table.c.created_ms, table.c.config_type, table.c.revision)
    query = sa.select(table).order_by(*(each.desc() if newest_first else each for each in order))
    query = query.where(table.c.removed_ms.is_(None))
    if types:
        query = query.where(table.c.config_type.in_([each.value for each in types]))
    if name is not None:
        query = query.where(table.c.name == name)
    return read_all(connection, query.limit(limit).offset(offset), Revision)


def revisions_numbered(
    connection: sa.Connection, revision: int, types: Sequence[ConfigType] = ()
) -> list[Revision]:
    """The change of a number of each kind, in the order in which they were made."""
    table = CONFIG_HISTORY
    # Kind and number are the key, so that no other rows are looked at.
    kinds = [each.value for each in types or ConfigType]
    query = sa.select(table).where(
        table.c.config_type.in_(kinds),
        table.c.revision == revision,
        table.c.removed_ms.is_(None),
    )
    return read_all(connection, query.order_by(table.c.created_ms, table.c.config_type), Revision)


def tag_revision(
    connection: sa.Connection, config_type: ConfigType, revision: int, tags: Sequence[str]
) -> None:
    """Write the tags of a change."""
    table = CONFIG_HISTORY
    query = sa.update(table).where(
        table.c.config_type == config_type.value, table.c.revision == revision
    )
    connection.execute(query.values(tags=list(tags)))


def remove_revision(
    connection: sa.Connection, config_type: ConfigType, revision: int, removed_ms: int, who: str
) -> bool:
    """Take a change out of the history, unless it was the latest of its kind; whether it was one.

    Its row stays: what later revisions show is made from it, too.
    """
    table = CONFIG_HISTORY
    there = (table.c.config_type == config_type.value, table.c.removed_ms.is_(None))
    later = table.alias()
    newer = sa.exists().where(
        later.c.config_type == config_type.value,
        later.c.removed_ms.is_(None),
        later.c.revision > revision,
    )
    query = sa.update(table).where(*there, table.c.revision == revision, newer)
    return bool(connection.execute(query.values(removed_ms=removed_ms, removed_by=who)).rowcount)


def revisions_at(
    connection: sa.Connection, config_type: ConfigType, revision: int
) -> list[Revision]:
    """The latest change of every object of a kind, right after a revision."""
    table = CONFIG_HISTORY
    latest = (
        sa.select(sa.func.max(table.c.revision))
        .where(table.c.config_type == config_type.value, table.c.revision <= revision)
        .group_by(table.c.name)
    )
    query = sa.select(table).where(
        table.c.config_type == config_type.value, table.c.revision.in_(latest)
    )
    return read_all(connection, query.order_by(table.c.name), Revision)


def last_revision(connection: sa.Connection, config_type: ConfigType, name: str) -> Revision | None:
    """The latest change of one object."""
    table = CONFIG_HISTORY
    query = (
        sa.select(table)
        .where(table.c.config_type == config_type.value, table.c.name == name)
        .order_by(table.c.revision.desc())
    )
    return read_first(connection, query, Revision)


# Events


def add_events(connection: sa.Connection, events: Iterable[StoredEvent]) -> None:
    """Record what happened."""
    add(connection, _INSERT_EVENT, [unnumbered(event) for event in events])


def events_of(
    connection: sa.Connection,
    subject: str,
    kind: EventKind | None = None,
    *,
    after: int = 0,
    limit: int | None = None,
) -> list[StoredEvent]:
    """What has happened to one subject so far, in order; followers read `event_order` instead."""
    query = sa.select(*EVENT_COLUMNS).where(EVENTS.c.subject == subject, EVENTS.c.number > after)
    if kind is not None:
        query = query.where(EVENTS.c.kind == kind.value)
    return read_all(connection, query.order_by(EVENTS.c.number).limit(limit), StoredEvent)


def events_of_many(
    connection: sa.Connection, subjects: Sequence[str], kind: EventKind
) -> list[StoredEvent]:
    """Everything of one kind that happened to some subjects; of each of them in order."""
    query = _EVENTS_OF_MANY.where(EVENTS.c.kind == kind.value)
    return read_of(connection, query, StoredEvent, subjects)


# Outbox


def add_outbox(connection: sa.Connection, messages: Iterable[OutboxMessage], now_ms: int) -> None:
    """Add messages that backends get after this transaction."""
    rows = [{**unnumbered(message), "created_ms": now_ms} for message in messages]
    add(connection, _INSERT_ERRAND, rows)


def list_outbox(
    connection: sa.Connection, backends: Sequence[str], limit: int = 1_000
) -> list[OutboxMessage]:
    """Undelivered messages for these backends, in the order of the decisions."""
    names = ("number", "kind", "backend", "subject", "payload", "attempts")
    query = (
        sa.select(*(OUTBOX.c[name] for name in names))
        .where(OUTBOX.c.backend.in_(backends))
        .order_by(OUTBOX.c.number)
        .limit(limit)
    )
    return read_all(connection, query, OutboxMessage)


def finish_outbox(connection: sa.Connection, numbers: Sequence[int]) -> None:
    """Remove delivered messages."""
    if numbers:
        connection.execute(sa.delete(OUTBOX).where(OUTBOX.c.number.in_(numbers)))


def fail_outbox(connection: sa.Connection, number: int, error: str, *, counts: bool) -> bool:
    """Note that a message could not be delivered and is tried again; whether the error is new.

    `counts`: it is one of the tries after which a start is given up.
    """
    found = connection.execute(sa.select(OUTBOX.c.error).where(OUTBOX.c.number == number)).first()
    connection.execute(
        sa.update(OUTBOX)
        .where(OUTBOX.c.number == number)
        .values(attempts=OUTBOX.c.attempts + int(counts), error=error)
    )
    return found is not None and found.error != error


def outbox_errors(connection: sa.Connection, subject: str) -> dict[str, str]:
    """By group that could not be started so far: why not."""
    query = sa.select(OUTBOX.c.payload, OUTBOX.c.error).where(
        OUTBOX.c.subject == subject, OUTBOX.c.error.is_not(None)
    )
    return {
        payload["group"]: error
        for payload, error in connection.execute(query.order_by(OUTBOX.c.number))
        if "group" in payload
    }


def unnumbered(record: AuditEntry | StoredEvent | OutboxMessage) -> dict[str, Any]:
    """The values of a record that gets its number when it is added."""
    values: dict[str, Any] = msgspec.to_builtins(record)
    del values["number"]
    return values
