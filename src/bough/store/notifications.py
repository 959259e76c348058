"""Notifications that have not been sent yet."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa

from bough.model.access import Profile
from bough.model.notification import Notification
from bough.store.rows import add, read_all
from bough.store.schema import NOTIFICATIONS, PROFILES

_INSERT = sa.insert(NOTIFICATIONS).inline()


def insert(connection: sa.Connection, found: Sequence[Notification]) -> None:
    """Store notifications."""
    rows = [msgspec.to_builtins(each) for each in found]
    for row in rows:
        # Given by the database.
        del row["number"]
    add(connection, _INSERT, rows)


def chosen_by(connection: sa.Connection, users: Sequence[str]) -> list[Profile]:
    """The profiles of those users who want notifications."""
    table = PROFILES
    wants = sa.or_(
        table.c.email_notification, table.c.slack_notification, table.c.webhook_notification
    )
    found: list[Profile] = []
    for start in range(0, len(users), 500):
        part = users[start : start + 500]
        found += read_all(
            connection, sa.select(table).where(table.c.user.in_(part), wants), Profile
        )
    return found


def due(connection: sa.Connection, now_ms: int, limit: int) -> list[Notification]:
    """Some notifications that are due now, in order."""
    query = sa.select(NOTIFICATIONS).where(NOTIFICATIONS.c.due_ms <= now_ms)
    order = (NOTIFICATIONS.c.due_ms, NOTIFICATIONS.c.number)
    return read_all(connection, query.order_by(*order).limit(limit), Notification)


def claim(connection: sa.Connection, found: Notification, until_ms: int) -> bool:
    """Claim a notification until a time; returns whether no other server was faster."""
    table = NOTIFICATIONS
    query = sa.update(table).where(
        table.c.number == found.number,
        table.c.attempts == found.attempts,
        table.c.due_ms == found.due_ms,
    )
    done = connection.execute(query.values(due_ms=until_ms, attempts=found.attempts + 1))
    return bool(done.rowcount)


def postpone(connection: sa.Connection, number: int, due_ms: int, error: str) -> None:
    """Try again later."""
    query = sa.update(NOTIFICATIONS).where(NOTIFICATIONS.c.number == number)
    connection.execute(query.values(due_ms=due_ms, error=error))


def remove(connection: sa.Connection, number: int) -> None:
    """Remove a notification that was sent, or never will be."""
    connection.execute(sa.delete(NOTIFICATIONS).where(NOTIFICATIONS.c.number == number))
