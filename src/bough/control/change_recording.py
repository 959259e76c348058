"""The records of a change, written in its transaction: audit, history with diff, event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import sqlalchemy as sa

from bough.control.site import Site
from bough.model.access import Actor
from bough.model.change_record import (
    SYSTEM,
    AuditEntry,
    ConfigType,
    Difference,
    EventKind,
    Revision,
    StoredEvent,
)
from bough.model.names import NodeId
from bough.model.pool import Json
from bough.model.subpool import Subpool
from bough.store import change_records

#: For what the server does by itself.
SYSTEM_ACTOR = Actor(SYSTEM)


class Note(msgspec.Struct, frozen=True):
    """The author's remark about a change."""

    description: str = ""
    tags: tuple[str, ...] = ()


NO_NOTE = Note()


def audit(
    connection: sa.Connection,
    site: Site,
    actor: Actor,
    action: str,
    subject: str,
    before: Any = None,
    after: Any = None,
) -> None:
    """Record who changed what, from where, before and after."""
    change_records.add_audit(connection, audit_entry(site, actor, action, subject, before, after))


def audit_entry(
    site: Site, actor: Actor, action: str, subject: str, before: Any = None, after: Any = None
) -> AuditEntry:
    """The same as an entry that is not written yet."""
    return AuditEntry(
        at_ms=site.clock.now_ms(),
        actor=actor.name,
        action=action,
        subject=subject,
        origin=actor.origin,
        token=actor.token,
        before=msgspec.to_builtins(before),
        after=msgspec.to_builtins(after),
    )


def revise(
    connection: sa.Connection,
    site: Site,
    actor: Actor,
    config_type: ConfigType,
    name: str,
    after: Json,
    note: Note = NO_NOTE,
) -> Revision:
    """Record the state of a configured object; `None`: it was deleted."""
    last = change_records.last_revision(connection, config_type, name)
    before = None if last is None else last.data
    # As it will be read again, so that only differences show.
    after = msgspec.json.decode(msgspec.json.encode(after))
    revision = Revision(
        config_type=config_type,
        revision=0,
        name=name,
        username=actor.name,
        created_ms=site.clock.now_ms(),
        description=note.description,
        tags=note.tags,
        data=after,
        differences=tuple(differences(before, after)),
    )
    return change_records.add_revision(connection, revision)


def happen(
    connection: sa.Connection,
    site: Site,
    kind: EventKind,
    subject: str,
    *,
    pool: str | None = None,
    message: str = "",
    data: Json = None,
) -> None:
    """Write an event, for followers."""
    event = StoredEvent(kind, site.clock.now_ms(), subject, pool, message, data)
    change_records.add_events(connection, (event,))


def node_happens(connection: sa.Connection, site: Site, node: NodeId, message: str) -> None:
    """Write an event about a node."""
    data = {"backend": node.backend, "node": node.name}
    happen(connection, site, EventKind.NODE_CHANGED, str(node), message=message, data=data)


def subpool_changed(
    connection: sa.Connection,
    site: Site,
    actor: Actor,
    action: str,
    before: Subpool | None,
    after: Subpool,
    note: Note = NO_NOTE,
) -> None:
    """Record a change of a subpool in the audit, the history and the events."""
    data = {"quota": after.quota, "counted": after.counted, "state": after.state.value}
    revise(connection, site, actor, ConfigType.SUBPOOL, after.name, data, note)
    audit(connection, site, actor, action, f"pool/{after.name}", before, after)
    kind = EventKind.SUBPOOL_CHANGED
    happen(connection, site, kind, after.name, pool=after.parent, message=after.state, data=data)


def differences(before: Json, after: Json, path: str = "") -> Iterator[Difference]:
    """Every field in which two objects differ, by its path, sorted."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}, key=str):
            inner = f"{path}.{key}" if path else str(key)
            yield from differences(before.get(key), after.get(key), inner)
    elif before != after:
        yield Difference(path, before, after)
