"""Finished workflows, as one row each: moved out of the tables of what is alive, and found again.

The GPU time of their attempts is kept beside them, so that usage is the same before and after.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from bough.model.past_workflow import HistoryPlace, PastWorkflow
from bough.model.workflow import ALIVE, UNFINISHED, Group, Task, Workflow
from bough.store.rows import add, read_all
from bough.store.schema import (
    ARCHIVE,
    ARCHIVED_STRETCHES,
    GROUPS,
    OUTBOX,
    SPECS,
    TASKS,
    WORKFLOWS,
)

_ALIVE = tuple(status.value for status in ALIVE)
_UNFINISHED = tuple(status.value for status in UNFINISHED)
#: msgspec learns a type when a decoder is made; see `rows`.
_DOCUMENT = msgspec.json.Decoder(PastWorkflow)
_INSERT = sa.insert(ARCHIVE).inline()
_INSERT_STRETCH = sa.insert(ARCHIVED_STRETCHES).inline()


class ArchivedWorkflow(NamedTuple):
    """What is kept of a workflow in the archive."""

    workflow_id: str
    pool: str
    ended_ms: int
    archived_ms: int
    #: `None`: it was exported and dropped.
    past: PastWorkflow | None


def find(connection: sa.Connection, name: str) -> ArchivedWorkflow | None:
    """The archived workflow of an identifier or a uuid."""
    query = sa.select(ARCHIVE).where(sa.or_(ARCHIVE.c.workflow_id == name, ARCHIVE.c.uuid == name))
    row = connection.execute(query).first()
    if row is None:
        return None
    past = None if row.document is None else _read(row.document, row.pool)
    return ArchivedWorkflow(row.workflow_id, row.pool, row.ended_ms, row.archived_ms, past)


class ArchivePlace(NamedTuple):
    """Which workflow of the archive it is, and whose."""

    uuid: str
    workflow_id: str
    pool: str


def find_place(connection: sa.Connection, name: str) -> ArchivePlace | None:
    """The same, without its content."""
    columns = (ARCHIVE.c.uuid, ARCHIVE.c.workflow_id, ARCHIVE.c.pool)
    query = sa.select(*columns).where(sa.or_(ARCHIVE.c.workflow_id == name, ARCHIVE.c.uuid == name))
    row = connection.execute(query).first()
    return None if row is None else ArchivePlace(*row)


def settled(
    connection: sa.Connection, until_ms: int, limit: int, after: HistoryPlace | None = None
) -> list[HistoryPlace]:
    """Workflows that ended before a time, not archived yet, about which nothing is left to do.

    An attempt that still holds its node, and a message that no backend has got, are left to do.
    """
    table = WORKFLOWS
    left = sa.select(TASKS.c.uuid).where(
        TASKS.c.workflow_uuid == table.c.uuid, TASKS.c.status.in_(_UNFINISHED)
    )
    query = _places(table, until_ms, after).where(
        table.c.status.not_in(_ALIVE),
        ~left.exists(),
        table.c.workflow_id.not_in(sa.select(OUTBOX.c.subject)),
    )
    return [HistoryPlace(*row) for row in connection.execute(query.limit(limit))]


def kept(
    connection: sa.Connection, until_ms: int, limit: int, after: HistoryPlace | None = None
) -> list[HistoryPlace]:
    """Workflows in the archive that ended before a time, without those that were dropped."""
    query = _places(ARCHIVE, until_ms, after).where(ARCHIVE.c.document.is_not(None))
    return [HistoryPlace(*row) for row in connection.execute(query.limit(limit))]


def count_attempts(connection: sa.Connection, uuids: Sequence[str]) -> dict[str, int]:
    """How many attempts there are of the tasks of workflows that are not archived."""
    query = (
        sa.select(TASKS.c.workflow_uuid, sa.func.count())
        .where(TASKS.c.workflow_uuid.in_(uuids))
        .group_by(TASKS.c.workflow_uuid)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def collect(connection: sa.Connection, workflows: Sequence[Workflow]) -> list[PastWorkflow]:
    """All rows of some workflows that are not archived, in the same order."""
    uuids = [each.uuid for each in workflows]
    texts = {
        row.workflow_uuid: row
        for row in connection.execute(sa.select(SPECS).where(SPECS.c.workflow_uuid.in_(uuids)))
    }
    groups: dict[str, list[Group]] = {}
    query = sa.select(GROUPS).where(GROUPS.c.workflow_uuid.in_(uuids))
    for group in read_all(connection, query.order_by(GROUPS.c.position), Group):
        groups.setdefault(group.workflow_uuid, []).append(group)
    tasks: dict[str, list[Task]] = {}
    query = sa.select(TASKS).where(TASKS.c.workflow_uuid.in_(uuids))
    for task in read_all(connection, query.order_by(TASKS.c.name, TASKS.c.retry_id), Task):
        tasks.setdefault(task.workflow_uuid, []).append(task)
    return [
        PastWorkflow(
            workflow,
            texts[workflow.uuid].text if workflow.uuid in texts else "",
            texts[workflow.uuid].template if workflow.uuid in texts else None,
            tuple(groups.get(workflow.uuid, ())),
            tuple(tasks.get(workflow.uuid, ())),
        )
        for workflow in workflows
    ]


def read(connection: sa.Connection, uuids: Sequence[str]) -> dict[str, PastWorkflow]:
    """Workflows of the archive by uuid, without those that were dropped."""
    columns = (ARCHIVE.c.uuid, ARCHIVE.c.pool, ARCHIVE.c.document)
    query = sa.select(*columns).where(ARCHIVE.c.uuid.in_(uuids), ARCHIVE.c.document.is_not(None))
    return {uuid: _read(text, pool) for uuid, pool, text in connection.execute(query)}


def named(connection: sa.Connection, identifiers: Sequence[str]) -> list[PastWorkflow]:
    """The workflows of the archive of these identifiers, without those that were dropped."""
    columns = (ARCHIVE.c.pool, ARCHIVE.c.document)
    found: list[PastWorkflow] = []
    for start in range(0, len(identifiers), 500):
        wanted = ARCHIVE.c.workflow_id.in_(identifiers[start : start + 500])
        query = sa.select(*columns).where(wanted, ARCHIVE.c.document.is_not(None))
        found += [_read(text, pool) for pool, text in connection.execute(query)]
    return found


def move_in(
    connection: sa.Connection, past: Sequence[PastWorkflow], now_ms: int, *, whole: bool = True
) -> None:
    """Put locked workflows into the archive, and take their rows out of the other tables.

    whole:  with everything; otherwise only with what usage and later questions need.
    """
    add(connection, _INSERT, [_row(each, now_ms, whole=whole) for each in past])
    add(connection, _INSERT_STRETCH, [row for each in past for row in _stretches(each.tasks)])
    uuids = [each.workflow.uuid for each in past]
    for column in (
        TASKS.c.workflow_uuid,
        GROUPS.c.workflow_uuid,
        SPECS.c.workflow_uuid,
        WORKFLOWS.c.uuid,
    ):
        connection.execute(sa.delete(column.table).where(column.in_(uuids)))


def known(connection: sa.Connection, uuids: Sequence[str]) -> set[str]:
    """Those of some workflows that are in the archive, dropped or not."""
    query = sa.select(ARCHIVE.c.uuid).where(ARCHIVE.c.uuid.in_(uuids))
    return set(connection.execute(query).scalars())


def drop(connection: sa.Connection, uuids: Sequence[str]) -> int:
    """Drop workflows from the archive, but for what usage needs; returns how many are new to it."""
    query = (
        sa.select(ARCHIVE.c.uuid)
        .where(ARCHIVE.c.uuid.in_(uuids), ARCHIVE.c.document.is_not(None))
        .order_by(ARCHIVE.c.uuid)
        .with_for_update()
    )
    found = list(connection.execute(query).scalars())
    if found:
        forget = sa.update(ARCHIVE).where(ARCHIVE.c.uuid.in_(found))
        connection.execute(forget.values(document=None))
    return len(found)


def move(connection: sa.Connection, pool: str, new_pool: str) -> None:
    """Write the new name of a pool to its archived workflows."""
    connection.execute(sa.update(ARCHIVE).where(ARCHIVE.c.pool == pool).values(pool=new_pool))


def _places(table: sa.Table, until_ms: int, after: HistoryPlace | None) -> sa.Select[Any, Any]:
    """The places of workflows that ended before a time, in order."""
    order = (table.c.ended_ms, table.c.uuid)
    query = sa.select(*order).where(table.c.ended_ms < until_ms).order_by(*order)
    if after is None:
        return query
    return query.where(sa.tuple_(*order) > sa.tuple_(after.ended_ms, after.uuid))


def _row(past: PastWorkflow, now_ms: int, *, whole: bool) -> dict[str, Any]:
    workflow = past.workflow
    return {
        "uuid": workflow.uuid,
        "workflow_id": workflow.workflow_id,
        "pool": workflow.pool,
        "submitted_by": workflow.submitted_by,
        "priority": workflow.priority.value,
        "submitted_ms": workflow.submitted_ms,
        "ended_ms": workflow.ended_ms,
        "archived_ms": now_ms,
        "document": msgspec.json.encode(past).decode() if whole else None,
    }


def _stretches(tasks: Iterable[Task]) -> list[dict[str, Any]]:
    """What the attempts of a workflow held; those with the same times are one."""
    found: dict[tuple[str, int, int, bool], int] = {}
    for task in tasks:
        if task.gpus > 0 and task.scheduled_ms is not None and task.ended_ms is not None:
            key = (task.workflow_uuid, task.scheduled_ms, task.ended_ms, task.growth)
            found[key] = found.get(key, 0) + task.gpus
    names = ("workflow_uuid", "scheduled_ms", "ended_ms", "growth")
    return [{**dict(zip(names, key, strict=True)), "gpus": gpus} for key, gpus in found.items()]


def _read(text: str, pool: str) -> PastWorkflow:
    """A workflow as it was archived; its pool may have another name by now."""
    past = _DOCUMENT.decode(text)
    return msgspec.structs.replace(past, workflow=msgspec.structs.replace(past.workflow, pool=pool))
