"""Following events, as far as the follower may see them."""

from __future__ import annotations

import threading
import time

from bough.control.people.access import allows, authorise, resource_within
from bough.control.site import Site
from bough.model.access import Action, Actor
from bough.model.record import StoredEvent
from bough.store import records as record_store

AT_ONCE = 500
#: How often to look for something new, for all that wait together.
LOOK_S = 0.2
#: How many subjects are told apart.
MOST_SUBJECTS = 5_000


def follow(site: Site, actor: Actor, number: int) -> tuple[list[StoredEvent], int]:
    """What happened after the event of a number and may be seen; and the last number looked at."""
    authorise(actor, Action.EVENT_READ, names=site.role_names)
    with site.store.read() as connection:
        found = record_store.events_after(connection, number, limit=AT_ONCE)
    last = found[-1].number if found else number
    return [each for each in found if _may_see(site, actor, each)], last


def _may_see(site: Site, actor: Actor, event: StoredEvent) -> bool:
    """Events of a pool need the right to read its workflows; others are for administrators."""
    resource = None if event.pool is None else resource_within(event.pool)
    return allows(actor, Action.WORKFLOW_READ, resource, site.role_names)


class Recent:
    """The subjects of recent events: one look at the database for all that wait."""

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
        """A number that changes whenever something happened to a subject, and seldom else."""
        with self._lock:
            now_s = time.monotonic()
            if self._looked_s is None or now_s - self._looked_s >= self._look_s:
                self._look()
                self._looked_s = now_s
            return self._latest.get(subject, self._floor)

    def _look(self) -> None:
        with self._site.store.read() as connection:
            if self._looked_s is None:
                # Some of the latest may be followed by one with a lower number.
                self._last = self._floor = max(0, record_store.last_event(connection) - AT_ONCE)
            found = record_store.events_after(connection, self._last, limit=MOST_SUBJECTS)
        for event in found:
            self._latest[event.subject] = self._last = event.number
        if len(found) == MOST_SUBJECTS or len(self._latest) > MOST_SUBJECTS:
            # Too much to keep apart: every stream looks again.
            self._latest.clear()
            self._floor = self._last
