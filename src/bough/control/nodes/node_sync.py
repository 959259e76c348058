"""Nodes: what backends offer, as it is now, and what administrators say about it.

Must not know what becomes of what runs on a node (nodes).
"""

from __future__ import annotations

import msgspec

from bough.control.nodes import node_drain
from bough.control.people.access import authorise
from bough.control.recording import audit, happen
from bough.control.site import Site
from bough.errors import NotFound
from bough.model.access import Action, Actor
from bough.model.backend import Backend
from bough.model.pool import Machine
from bough.model.record import EventKind
from bough.store import nodes as machine_store
from bough.store import settings as setting_store

#: A setting: nodes that were gone when they were still not to take anything new.
_CORDONED_AWAY = "cordoned_away"
#: How often a backend is written down as alive, well within the window that pools allow.
HEARTBEAT_MS = 20_000


def sync(site: Site, backend: Backend) -> bool:
    """Bring the nodes of a backend up to date; whether anything changed."""
    now_ms = site.clock.now_ms()
    with site.store.read() as connection:
        known = {each.name: each for each in machine_store.list_all(connection, backend.name)}
        heard = machine_store.heartbeats(connection).get(backend.name, 0)
        away = set(setting_store.get(connection, _CORDONED_AWAY) or ())
    cordoned = {each.name for each in known.values() if each.cordoned} | away
    offered = {
        each.name: msgspec.structs.replace(
            each,
            backend=backend.name,
            # An administrator's word stands, whatever the backend says of its node.
            cordoned=each.cordoned or each.name in cordoned,
        )
        for each in backend.machines()
    }
    changed = [each for each in offered.values() if known.get(each.name) != each]
    gone = sorted(set(known) - set(offered))
    if not changed and not gone and now_ms - heard < HEARTBEAT_MS:
        return False
    ended: set[str] = set()
    with site.store.write() as connection:
        machine_store.heartbeat(connection, backend.name, now_ms)
        if changed or gone:
            machine_store.put(connection, changed)
            machine_store.remove(connection, gone)
            still_away = sorted((away | (cordoned & set(gone))) - set(offered))
            if still_away != sorted(away):
                setting_store.put(connection, _CORDONED_AWAY, still_away)
            setting_store.raise_counter(connection, setting_store.VERSION)
            for name in (*(each.name for each in changed), *gone):
                state = "gone" if name in gone else "changed"
                happen(connection, site, EventKind.NODE_CHANGED, name, message=state)
            ended = node_drain.end_lost(site, connection, gone)
    node_drain.check_drains(site, ended)
    return bool(changed or gone)


def set_cordoned(site: Site, actor: Actor, name: str, *, cordoned: bool) -> Machine:
    """Let nothing new onto a node, or let it again; what runs goes on."""
    authorise(actor, Action.NODE_UPDATE, names=site.role_names)
    with site.store.write() as connection:
        known = {each.name: each for each in machine_store.list_all(connection)}
        if name not in known:
            raise NotFound(f"Node {name} not found.")
        before = known[name]
        after = msgspec.structs.replace(before, cordoned=cordoned)
        machine_store.put(connection, (after,))
        setting_store.raise_counter(connection, setting_store.VERSION)
        audit(connection, site, actor, Action.NODE_UPDATE, f"node/{name}", before, after)
        message = "cordoned" if cordoned else "uncordoned"
        happen(connection, site, EventKind.NODE_CHANGED, name, message=message)
    site.wake()
    return after


def list_machines(site: Site, actor: Actor) -> list[Machine]:
    """All nodes, by name."""
    authorise(actor, Action.RESOURCE_LIST, names=site.role_names)
    with site.store.read() as connection:
        return machine_store.list_all(connection)
