"""Following events, as far as the follower may see them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import sqlalchemy as sa

from bough.control.people.access import allows, authorise, is_admin, resource_within
from bough.control.site import Site
from bough.model.access import Action, Actor
from bough.model.change_record import StoredEvent
from bough.store import event_order
from bough.store import pools as pool_store

AT_ONCE = 500
#: How often to look for new events, on behalf of all followers.
LOOK_S = 0.2
#: How many subjects are tracked separately.
MOST_SUBJECTS = 5_000


def follow(site: Site, actor: Actor, number: int) -> tuple[list[StoredEvent], int]:
    """What happened after the event of a number and may be seen; and the last number looked at."""
    authorise(actor, Action.EVENT_READ, names=site.role_names)
    with site.store.read() as connection:
        found = event_order.events_after(connection, number, limit=AT_ONCE)
        seen = visible(site, connection, actor, found)
    return seen, found[-1].number if found else number


def visible(
    site: Site, connection: sa.Connection, actor: Actor, events: Sequence[StoredEvent]
) -> list[StoredEvent]:
    """The events that the actor may see.

    Those of a pool need the right to read its workflows, those of an earlier pool of its name and
    all others are for administrators.
    """
    if is_admin(site, actor):
        return list(events)
    first = pool_store.named_after(connection, {each.pool for each in events if each.pool})
    allowed = {
        name: allows(actor, Action.WORKFLOW_READ, resource_within(name), site.role_names)
        for name in first
    }
    anything = allows(actor, Action.WORKFLOW_READ, None, site.role_names)
    return [
        each
        for each in events
        if allowed.get(each.pool or "", anything) and each.number > first.get(each.pool or "", 0)
    ]


class Recent:
    """The subjects of recent events: one query for all followers."""

    def __init__(self, site: Site, look_s: float = LOOK_S) -> None:
        self._site = site
        self._look_s = look_s
        self._lock = threading.Lock()
        self._looked_s: float | None = None
        self._last = 0
        #: What is not in the table has no event after this one.
        self._floor = 0
        self._latest: dict[str, int] = {}

    def latest(self, subject: str) -> int:
        """A number that changes whenever something happens to a subject, and seldom otherwise."""
        with self._lock:
            now_s = time.monotonic()
            if self._looked_s is None or now_s - self._looked_s >= self._look_s:
                self._look()
                self._looked_s = now_s
            return self._latest.get(subject, self._floor)

    def _look(self) -> None:
        with self._site.store.read() as connection:
            if self._looked_s is None:
                self._last = self._floor = max(0, event_order.last_event(connection) - AT_ONCE)
            found = event_order.events_after(connection, self._last, limit=MOST_SUBJECTS)
        for event in found:
            self._latest[event.subject] = self._last = event.number
        if len(found) == MOST_SUBJECTS or len(self._latest) > MOST_SUBJECTS:
            # Too many to track: every stream looks again.
            self._latest.clear()
            self._floor = self._last
