"""Notifications that have not been sent yet."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa

from bough.model.access import Profile
from bough.model.notification import Channel, Notification, Receiver
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


def receivers(connection: sa.Connection, now_ms: int, limit: int) -> list[Receiver]:
    """The receivers of notifications that are due now, longest waiting first."""
    table = NOTIFICATIONS
    who = (table.c.user, table.c.channel)
    query = sa.select(*who).where(table.c.due_ms <= now_ms).group_by(*who)
    query = query.order_by(sa.func.min(table.c.due_ms), *who).limit(limit)
    return [Receiver(user, Channel(channel)) for user, channel in connection.execute(query)]


def due(
    connection: sa.Connection, now_ms: int, receiver: Receiver, limit: int
) -> list[Notification]:
    """Some notifications of a receiver that are due now; those that failed before come last."""
    table = NOTIFICATIONS
    query = sa.select(table).where(table.c.due_ms <= now_ms, _is_for(receiver))
    return read_all(
        connection, query.order_by(table.c.attempts, table.c.number).limit(limit), Notification
    )


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


def hold(connection: sa.Connection, receiver: Receiver, due_ms: int) -> None:
    """Make all notifications of a receiver due at a time, or later."""
    query = sa.update(NOTIFICATIONS).where(_is_for(receiver), NOTIFICATIONS.c.due_ms < due_ms)
    connection.execute(query.values(due_ms=due_ms))


def remove_old(connection: sa.Connection, receiver: Receiver, last_ms: int) -> None:
    """Give up notifications of a receiver that were created before a time."""
    old = NOTIFICATIONS.c.created_ms < last_ms
    connection.execute(sa.delete(NOTIFICATIONS).where(_is_for(receiver), old))


def remove(connection: sa.Connection, number: int) -> None:
    """Remove a notification that was sent, or never will be."""
    connection.execute(sa.delete(NOTIFICATIONS).where(NOTIFICATIONS.c.number == number))


def _is_for(receiver: Receiver) -> sa.ColumnElement[bool]:
    table = NOTIFICATIONS
    return sa.and_(table.c.user == receiver.user, table.c.channel == receiver.channel)
