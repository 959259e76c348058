"""Keeps the nodes in the store up to date with what backends offer; what ran on lost nodes ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import sqlalchemy as sa

from bough.control.config.settings import read_workflow_settings
from bough.control.pools import subpool_drain
from bough.control.recording import node_happens
from bough.control.site import Site
from bough.control.workflows import observations
from bough.control.workflows.lifecycle import VANISHED
from bough.control.workflows.load_changes import open_changes
from bough.model.backend import Backend, Observation, Sight
from bough.model.names import NodeId
from bough.model.settings import VanishedNode
from bough.store import nodes as node_store
from bough.store import settings as setting_store
from bough.store import tasks as task_store
from bough.store.database import again_if_given_up

#: A setting: nodes that were cordoned when their backend last offered them.
_CORDONED_AWAY = "cordoned_away"
#: How often the heartbeat of a backend is written, well within the window that pools allow.
HEARTBEAT_MS = 20_000


@again_if_given_up
def sync(site: Site, backend: Backend) -> bool:
    """Bring the nodes of a backend up to date; whether anything changed."""
    now_ms = site.clock.now_ms()
    with site.store.read() as connection:
        known = {each.name: each for each in node_store.list_all(connection, backend.name)}
        heard = node_store.heartbeats(connection).get(backend.name, 0)
        away = set(setting_store.get(connection, _CORDONED_AWAY) or ())
    own_away = {name for name in map(_own(backend.name), away) if name is not None}
    cordoned = {each.name for each in known.values() if each.cordoned} | own_away
    offered = {
        each.name: msgspec.structs.replace(
            each,
            backend=backend.name,
            # An administrator's word stands, whatever the backend says of its node.
            cordoned=each.cordoned or each.name in cordoned,
        )
        for each in backend.nodes()
    }
    changed = [offered[name] for name in sorted(offered) if known.get(name) != offered[name]]
    gone = sorted(set(known) - set(offered))
    if not changed and not gone and now_ms - heard < HEARTBEAT_MS:
        return False
    ended: set[str] = set()
    with site.store.write() as connection:
        if changed or gone:
            still_away = sorted(
                {each for each in away if _own(backend.name)(each) not in offered}
                | {str(NodeId(backend.name, name)) for name in cordoned & set(gone)}
            )
            if still_away != sorted(away):
                setting_store.put(connection, _CORDONED_AWAY, still_away)
            setting_store.raise_counter(connection, setting_store.VERSION)
        node_store.heartbeat(connection, backend.name, now_ms)
        if changed or gone:
            node_store.put(connection, changed)
            node_store.remove(connection, backend.name, gone)
            for name in (*(each.name for each in changed), *gone):
                state = "gone" if name in gone else "changed"
                node_happens(connection, site, NodeId(backend.name, name), state)
            ended = _end_lost(site, connection, backend.name, gone)
    for pool in sorted(ended):
        subpool_drain.check_drain(site, pool)
    return bool(changed or gone)


def _own(backend: str) -> Callable[[str], str | None]:
    """Reads the name of a node that was cordoned when it went, if it is one of this backend.

    Names without a backend were written when there was only one.
    """

    def read(written: str) -> str | None:
        of, slash, name = written.rpartition("/")
        return name if not slash or of == backend else None

    return read


def _end_lost(
    site: Site, connection: sa.Connection, backend: str, names: Sequence[str]
) -> set[str]:
    """End what was on lost nodes, unless settings say to leave it; the pools of what has ended.

    Their backend is told to stop them, too, in case they still run.
    """
    if not names or read_workflow_settings(connection).vanished_node is VanishedNode.LEAVE:
        return set()
    lost = task_store.holding(connection, backend, names)
    news: dict[str, list[Observation]] = {}
    now_ms = site.clock.now_ms()
    for task in lost:
        seen = Observation(task.attempt, Sight.LOST, now_ms)
        news.setdefault(task.workflow_uuid, []).append(seen)
    changes = open_changes(site, connection, sorted(news))
    for change in changes:
        for each in news[change.workflow.uuid]:
            task = change.task(each.attempt)
            if task is not None and task.status.holds_node:
                change.release(task, VANISHED, at_once=True)
    return observations.note_all(site, connection, changes, news)
