"""Backends and their nodes, as they were last seen."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import sqlalchemy as sa

from bough.model.pool import BackendRecord, OfferedNode
from bough.store.rows import read_all
from bough.store.schema import BACKENDS, NODES

_BACKENDS = sa.select(BACKENDS).order_by(BACKENDS.c.name)
_SIZE = ("backend", "platform", "gpus", "cpu_milli", "memory_bytes", "storage_bytes")
_SIZES = sa.select(sa.literal("").label("name"), *(NODES.c[name] for name in _SIZE)).distinct()


def heartbeat(connection: sa.Connection, backend: str, at_ms: int) -> None:
    """Note that a backend answers."""
    updated = connection.execute(
        sa.update(BACKENDS).where(BACKENDS.c.name == backend).values(last_heartbeat_ms=at_ms)
    )
    if not updated.rowcount:
        connection.execute(sa.insert(BACKENDS).values(name=backend, last_heartbeat_ms=at_ms))


def write_fault(connection: sa.Connection, backend: str, fault: str | None) -> bool:
    """Say why nothing can be started on the nodes of a backend, or that it can; if that is new."""
    query = sa.select(BACKENDS.c.fault).where(BACKENDS.c.name == backend)
    before = query.with_for_update(key_share=True)
    found = connection.execute(before).first()
    if found is None:
        connection.execute(sa.insert(BACKENDS).values(name=backend, fault=fault))
    elif found.fault != fault:
        update = sa.update(BACKENDS).where(BACKENDS.c.name == backend)
        connection.execute(update.values(fault=fault))
    return (None if found is None else found.fault) != fault


def find_backend(
    connection: sa.Connection, name: str, *, lock: bool = False
) -> BackendRecord | None:
    """A backend by its name; locked, no server speaks for it until the end of the transaction."""
    query = _BACKENDS.where(BACKENDS.c.name == name)
    found = read_all(connection, query.with_for_update() if lock else query, BackendRecord)
    return found[0] if found else None


def remove_backend(connection: sa.Connection, name: str) -> None:
    """Forget a backend, with all its nodes."""
    connection.execute(sa.delete(NODES).where(NODES.c.backend == name))
    connection.execute(sa.delete(BACKENDS).where(BACKENDS.c.name == name))


def speaks_for(connection: sa.Connection, backend: str, speaker: str) -> bool:
    """Whether a server still speaks for a backend, which stays so until the transaction ends.

    What others say of the backend meanwhile does not wait for it.
    """
    query = sa.select(BACKENDS.c.name).where(
        BACKENDS.c.name == backend, BACKENDS.c.speaker == speaker
    )
    held = query.with_for_update(read=True, key_share=True)
    return connection.execute(held).first() is not None


def put_speaker(
    connection: sa.Connection,
    backend: str,
    machine: str | None,
    place: str | None,
    speaker: str | None,
    address: str | None,
) -> None:
    """Say which machine a backend belongs to, and which server speaks for it."""
    values = {"machine": machine, "place": place, "speaker": speaker, "address": address}
    updated = connection.execute(
        sa.update(BACKENDS).where(BACKENDS.c.name == backend).values(**values)
    )
    if not updated.rowcount:
        connection.execute(sa.insert(BACKENDS).values(name=backend, **values))


def backends(connection: sa.Connection) -> dict[str, BackendRecord]:
    """What is known of each backend, by name."""
    found = read_all(connection, _BACKENDS, BackendRecord)
    return {each.name: each for each in found}


def list_all(connection: sa.Connection, backend: str | None = None) -> list[OfferedNode]:
    """All nodes, or those of one backend, by name."""
    query = sa.select(NODES).order_by(NODES.c.name, NODES.c.backend)
    if backend is not None:
        query = query.where(NODES.c.backend == backend)
    return read_all(connection, query, OfferedNode)


def sizes(connection: sa.Connection) -> list[OfferedNode]:
    """One node of each size that a backend has, without its name; the largest first."""
    found = read_all(connection, _SIZES, OfferedNode)
    return sorted(found, key=lambda each: (each.backend, -each.gpus, -each.memory_bytes))


def put(connection: sa.Connection, nodes: Iterable[OfferedNode]) -> None:
    """Add nodes, or replace what is known of them."""
    for node in nodes:
        values = msgspec.to_builtins(node)
        updated = connection.execute(
            sa.update(NODES)
            .where(NODES.c.backend == node.backend, NODES.c.name == node.name)
            .values(**values)
        )
        if not updated.rowcount:
            connection.execute(sa.insert(NODES).values(**values))


def named(connection: sa.Connection, name: str) -> list[OfferedNode]:
    """The nodes of a name, one for each backend that has it."""
    query = sa.select(NODES).where(NODES.c.name == name).order_by(NODES.c.backend)
    return read_all(connection, query, OfferedNode)


def remove(connection: sa.Connection, backend: str, names: Iterable[str]) -> None:
    """Forget nodes of a backend."""
    connection.execute(
        sa.delete(NODES).where(NODES.c.backend == backend, NODES.c.name.in_(tuple(names)))
    )
