"""Following what happens, as far as the one who follows may know. Must not know how it is sent."""

from __future__ import annotations

from bough.control.access import allows, authorise, resource_of
from bough.control.site import Site
from bough.model.access import Action, Actor
from bough.model.record import StoredEvent
from bough.store import records as record_store

AT_ONCE = 500


def follow(site: Site, actor: Actor, number: int) -> tuple[list[StoredEvent], int]:
    """What happened after the event of a number and may be seen; and the last number looked at."""
    authorise(actor, Action.EVENT_READ, names=site.role_names)
    with site.store.read() as connection:
        found = record_store.events_after(connection, number, limit=AT_ONCE)
    last = found[-1].number if found else number
    return [each for each in found if _may_see(site, actor, each)], last


def _may_see(site: Site, actor: Actor, event: StoredEvent) -> bool:
    """What concerns a pool is for those who may read its workflows; the rest for administrators."""
    resource = None if event.pool is None else resource_of(event.pool)
    return allows(actor, Action.WORKFLOW_READ, resource, site.role_names)
