"""Which workflows wait for the end of which others. A row is deleted when its wait ends."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa

from bough.model.workflow import ALIVE
from bough.store import arrays
from bough.store.rows import add, read_all
from bough.store.schema import PREDECESSORS, WORKFLOWS

_ALIVE = tuple(status.value for status in ALIVE)
_INSERT = sa.insert(PREDECESSORS).inline()
#: Predecessors that are no longer among the unfinished workflows: finished, or archived.
_OVER = (
    sa.select(PREDECESSORS.c.predecessor_uuid)
    .distinct()
    .where(
        ~sa.select(WORKFLOWS.c.uuid)
        .where(WORKFLOWS.c.uuid == PREDECESSORS.c.predecessor_uuid, WORKFLOWS.c.status.in_(_ALIVE))
        .exists(),
        ~arrays.unfinished(PREDECESSORS.c.predecessor_uuid),
    )
)


class StoredPredecessor(msgspec.Struct, frozen=True):
    """A workflow that waits, and its predecessor."""

    workflow_uuid: str
    predecessor_uuid: str
    #: The predecessor's identifier.
    predecessor_id: str
    #: Whether it must have completed.
    completed: bool


def insert(connection: sa.Connection, found: Sequence[StoredPredecessor]) -> None:
    """Store that workflows wait."""
    add(connection, _INSERT, [msgspec.to_builtins(each) for each in found])


def of_workflow(connection: sa.Connection, uuid: str) -> list[StoredPredecessor]:
    """What a workflow still waits for."""
    query = sa.select(PREDECESSORS).where(PREDECESSORS.c.workflow_uuid == uuid)
    return read_all(connection, query.order_by(PREDECESSORS.c.predecessor_id), StoredPredecessor)


def waiting(connection: sa.Connection, uuids: Sequence[str]) -> set[str]:
    """Which of these workflows wait for others."""
    found: set[str] = set()
    for start in range(0, len(uuids), 500):
        part = uuids[start : start + 500]
        query = sa.select(PREDECESSORS.c.workflow_uuid).where(
            PREDECESSORS.c.workflow_uuid.in_(part)
        )
        found.update(connection.scalars(query))
    return found


def over(connection: sa.Connection, limit: int) -> list[str]:
    """Some finished workflows that others wait for."""
    return list(connection.scalars(_OVER.limit(limit)))


def waiting_for(connection: sa.Connection, uuid: str, limit: int) -> list[str]:
    """Some workflows that wait for this one."""
    query = sa.select(PREDECESSORS.c.workflow_uuid).where(PREDECESSORS.c.predecessor_uuid == uuid)
    return list(connection.scalars(query.order_by(PREDECESSORS.c.workflow_uuid).limit(limit)))


def remove(connection: sa.Connection, uuids: Sequence[str], predecessor: str | None = None) -> None:
    """Workflows no longer wait: for any other, or for one."""
    if not uuids:
        return
    query = sa.delete(PREDECESSORS).where(PREDECESSORS.c.workflow_uuid.in_(uuids))
    if predecessor is not None:
        query = query.where(PREDECESSORS.c.predecessor_uuid == predecessor)
    connection.execute(query)
