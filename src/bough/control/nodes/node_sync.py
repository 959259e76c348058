"""Keeps the nodes in the store up to date with what backends offer; what ran on lost nodes ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import happen, node_happens
from bough.control.config.settings import read_workflow_settings
from bough.control.pools import subpool_drain
from bough.control.site import Site
from bough.control.workflows import observations
from bough.control.workflows.lifecycle import VANISHED
from bough.control.workflows.load_changes import open_changes
from bough.model.backend import Observation, Sight
from bough.model.change_record import EventKind
from bough.model.names import NodeId
from bough.model.pool import BackendRecord, OfferedNode
from bough.model.settings import VanishedNode
from bough.store import nodes as node_store
from bough.store import settings as setting_store
from bough.store import tasks as task_store
from bough.store.database import again_if_given_up

#: A setting: nodes that were cordoned when their backend last offered them.
_CORDONED_AWAY = "cordoned_away"
#: How often the heartbeat of a backend is written, well within the window that pools allow.
HEARTBEAT_MS = 20_000


class _Offer(NamedTuple):
    """What a backend offers, compared with what is kept of it."""

    record: BackendRecord
    changed: list[OfferedNode]
    gone: list[str]
    #: Nodes of all backends that were cordoned when they vanished, before and now.
    away: list[str]
    still_away: list[str]

    @property
    def differs(self) -> bool:
        """Whether nodes came, went or changed."""
        return bool(self.changed or self.gone)


@again_if_given_up
def sync(
    site: Site, backend: str, nodes: Iterable[OfferedNode], beat_ms: int = HEARTBEAT_MS
) -> bool:
    """Bring the nodes of a backend that answers up to date; whether anything changed."""
    now_ms = site.clock.now_ms()
    with site.store.read() as connection:
        offer = _compare(connection, backend, nodes)
    faulty = offer.record.fault is not None
    heard_ms = offer.record.last_heartbeat_ms or 0
    if not offer.differs and not faulty and abs(now_ms - heard_ms) < beat_ms:
        return False
    ended: set[str] = set()
    with site.store.write() as connection:
        if offer.still_away != offer.away:
            setting_store.put(connection, _CORDONED_AWAY, offer.still_away)
        if offer.differs or faulty:
            setting_store.raise_version(connection)
        node_store.heartbeat(connection, backend, now_ms)
        if faulty:
            _note_fault(site, connection, backend, None)
        if offer.differs:
            node_store.put(connection, offer.changed)
            node_store.remove(connection, backend, offer.gone)
            for name in (*(each.name for each in offer.changed), *offer.gone):
                state = "gone" if name in offer.gone else "changed"
                node_happens(connection, site, NodeId(backend, name), state)
            if read_workflow_settings(connection).vanished_node is not VanishedNode.LEAVE:
                ended = end_lost(site, connection, backend, offer.gone)
    for pool in sorted(ended):
        subpool_drain.check_drain(site, pool)
    return offer.differs


def _compare(connection: sa.Connection, backend: str, nodes: Iterable[OfferedNode]) -> _Offer:
    known = {each.name: each for each in node_store.list_all(connection, backend)}
    record = node_store.backends(connection).get(backend, BackendRecord(backend))
    away: list[str] = sorted(setting_store.get(connection, _CORDONED_AWAY) or ())
    cordoned = {each.name for each in known.values() if each.cordoned}
    cordoned.update(name for each in away if (name := _own(backend, each)) is not None)
    offered = {
        each.name: msgspec.structs.replace(
            each,
            backend=backend,
            # What an administrator set stays, whatever the backend says of its node.
            cordoned=each.cordoned or each.name in cordoned,
        )
        for each in nodes
    }
    gone = sorted(set(known) - set(offered))
    still_away = {each for each in away if _own(backend, each) not in offered}
    still_away.update(str(NodeId(backend, name)) for name in cordoned & set(gone))
    return _Offer(
        record,
        [offered[name] for name in sorted(offered) if known.get(name) != offered[name]],
        gone,
        away,
        sorted(still_away),
    )


def keep_cordoned(connection: sa.Connection, nodes: Iterable[OfferedNode]) -> None:
    """Remember which nodes were cordoned, so that they still are when they come back."""
    away = {*(setting_store.get(connection, _CORDONED_AWAY) or ())}
    more = {str(each.id) for each in nodes if each.cordoned}
    if more - away:
        setting_store.put(connection, _CORDONED_AWAY, sorted(away | more))


def write_fault(site: Site, backend: str, fault: str) -> None:
    """Let nothing start on the nodes of a backend, and say why."""
    with site.store.read() as connection:
        known = node_store.backends(connection).get(backend)
    if known is not None and known.fault == fault:
        return
    with site.store.write() as connection:
        setting_store.raise_version(connection)
        _note_fault(site, connection, backend, fault)


def _note_fault(site: Site, connection: sa.Connection, backend: str, fault: str | None) -> None:
    if node_store.write_fault(connection, backend, fault):
        kind, message = EventKind.BACKEND_CHANGED, fault or f"Backend {backend} answers."
        data = {"backend": backend, "fault": fault}
        happen(connection, site, kind, backend, message=message, data=data)


def _own(backend: str, written: str) -> str | None:
    """The name of a node that was cordoned when it vanished, if it is one of this backend.

    Names without a backend are from versions that had only one.
    """
    of, slash, name = written.rpartition("/")
    return name if not slash or of == backend else None


def end_lost(site: Site, connection: sa.Connection, backend: str, names: Sequence[str]) -> set[str]:
    """End what was on lost nodes; the pools of what has ended.

    Their backend is told to stop them, too, in case they still run.
    """
    if not names:
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
