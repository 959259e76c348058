"""Rows of workflows: add, find, list, count. Groups and tasks are in `tasks`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import msgspec
import sqlalchemy as sa

from bough.model.workflow import ALIVE, Priority, Workflow, WorkflowStatus
from bough.store.rows import add, read_all, read_each
from bough.store.schema import SPECS, WORKFLOWS
from bough.store.settings import raise_seeing_setup

_ALIVE = tuple(status.value for status in ALIVE)
# What every submission asks is written once: making a statement costs more than running it.
_INSERT = sa.insert(WORKFLOWS).inline()
_INSERT_SPEC = sa.insert(SPECS).inline()
_NAMED = sa.select(WORKFLOWS).where(
    sa.or_(
        WORKFLOWS.c.workflow_id == sa.bindparam("name"), WORKFLOWS.c.uuid == sa.bindparam("name")
    )
)
_LOCKED = _NAMED.with_for_update()


class Filter(msgspec.Struct, frozen=True):
    """Which workflows to list; an empty field does not matter."""

    users: tuple[str, ...] = ()
    #: A part of the identifier.
    name: str = ""
    statuses: tuple[WorkflowStatus, ...] = ()
    #: `None`: all pools; none at all if it is empty.
    pools: tuple[str, ...] | None = None
    priorities: tuple[Priority, ...] = ()
    submitted_after_ms: int | None = None
    submitted_before_ms: int | None = None
    #: Labels that it must have, and those that it must not, as `key=value`.
    labels: tuple[str, ...] = ()
    no_labels: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    newest_first: bool = True
    limit: int = 20
    offset: int = 0


def next_number(connection: sa.Connection, name: str) -> tuple[int, int]:
    """The next number of a workflow of this name; and the counter `SETUP`."""
    return raise_seeing_setup(connection, f"workflow:{name}")


def insert(connection: sa.Connection, workflow: Workflow, text: str, template: str | None) -> None:
    """Add a record, with the spec as it was written."""
    add(connection, _INSERT, (msgspec.to_builtins(workflow),))
    spec = {"workflow_uuid": workflow.uuid, "text": text, "template": template}
    add(connection, _INSERT_SPEC, (spec,))


def update(connection: sa.Connection, workflow: Workflow) -> None:
    """Update a record."""
    values = msgspec.to_builtins(workflow)
    connection.execute(
        sa.update(WORKFLOWS).where(WORKFLOWS.c.uuid == workflow.uuid).values(**values)
    )


def update_all(connection: sa.Connection, workflows: Sequence[Workflow]) -> None:
    """The same for several."""
    rows = [msgspec.to_builtins(workflow) for workflow in workflows]
    for row in rows:
        row["key_uuid"] = row.pop("uuid")
    if rows:
        query = sa.update(WORKFLOWS).where(WORKFLOWS.c.uuid == sa.bindparam("key_uuid"))
        connection.execute(query, rows)


def find(connection: sa.Connection, name: str) -> Workflow | None:
    """The workflow of an identifier or a uuid."""
    return _one(connection, _NAMED, name)


def named(connection: sa.Connection, identifiers: Sequence[str]) -> list[Workflow]:
    """The workflows of these identifiers, finished or not."""
    found: list[Workflow] = []
    for start in range(0, len(identifiers), 500):
        part = identifiers[start : start + 500]
        found += _records(connection, sa.select(WORKFLOWS).where(WORKFLOWS.c.workflow_id.in_(part)))
    return found


def lock(connection: sa.Connection, name: str) -> Workflow | None:
    """The same, locked with its groups and tasks until the transaction ends."""
    return _one(connection, _LOCKED, name)


def lock_all(connection: sa.Connection, uuids: Sequence[str]) -> list[Workflow]:
    """The same for several, always in the same order, so that two callers cannot deadlock."""
    found: list[Workflow] = []
    ordered = sorted(uuids)
    for start in range(0, len(ordered), 500):
        query = sa.select(WORKFLOWS).where(WORKFLOWS.c.uuid.in_(ordered[start : start + 500]))
        found += _records(connection, query.order_by(WORKFLOWS.c.uuid).with_for_update())
    return found


def hold(connection: sa.Connection, uuids: Iterable[str]) -> None:
    """Lock workflows in the same order, and read nothing of them."""
    if connection.dialect.name == "sqlite":
        return
    ordered = sorted(uuids)
    for start in range(0, len(ordered), 500):
        query = sa.select(WORKFLOWS.c.uuid).where(
            WORKFLOWS.c.uuid.in_(ordered[start : start + 500])
        )
        connection.execute(query.order_by(WORKFLOWS.c.uuid).with_for_update())


def of_uuids(connection: sa.Connection, uuids: Sequence[str]) -> list[Workflow]:
    """The workflows of these identities, as they are."""
    found: list[Workflow] = []
    for start in range(0, len(uuids), 500):
        query = sa.select(WORKFLOWS).where(WORKFLOWS.c.uuid.in_(uuids[start : start + 500]))
        found += _records(connection, query)
    return found


def spec_text(connection: sa.Connection, uuid: str, *, template: bool = False) -> str | None:
    """The spec as it was written, rendered or as a template."""
    column = SPECS.c.template if template else SPECS.c.text
    query = sa.select(column).where(SPECS.c.workflow_uuid == uuid)
    return connection.execute(query).scalar_one_or_none()


def search(connection: sa.Connection, wanted: Filter) -> list[Workflow]:
    """The workflows that a filter lets through, one page of them."""
    table = WORKFLOWS
    order = (table.c.submitted_ms, table.c.number, table.c.uuid)
    query = sa.select(table).order_by(
        *(column.desc() if wanted.newest_first else column for column in order)
    )
    for condition in _conditions(wanted):
        query = query.where(condition)
    if not (wanted.labels or wanted.no_labels or wanted.tags):
        query = query.limit(wanted.limit).offset(wanted.offset)
        return _records(connection, query)
    # Labels are JSON, which the two databases search in different ways; so they are searched here.
    read = read_each(connection, query, Workflow)
    found = (each for each in read if _labelled(each, wanted))
    return list(islice(found, wanted.offset, wanted.offset + wanted.limit))


def count_alive(connection: sa.Connection, pool: str) -> int:
    """How many workflows of a pool are not finished, whatever their priority."""
    query = sa.select(sa.func.count()).where(
        WORKFLOWS.c.pool == pool, WORKFLOWS.c.status.in_(_ALIVE)
    )
    return connection.execute(query).scalar_one()


def count_alive_of_user(connection: sa.Connection, user: str) -> int:
    """How many workflows of a user are not finished."""
    query = sa.select(sa.func.count()).where(
        WORKFLOWS.c.submitted_by == user, WORKFLOWS.c.status.in_(_ALIVE)
    )
    return connection.execute(query).scalar_one()


def alive(connection: sa.Connection) -> list[Workflow]:
    """Every workflow that is not finished, oldest first."""
    query = sa.select(WORKFLOWS).where(WORKFLOWS.c.status.in_(_ALIVE))
    return _records(connection, query.order_by(WORKFLOWS.c.submitted_ms, WORKFLOWS.c.uuid))


def alive_in(
    connection: sa.Connection, pools: Sequence[str], limit: int | None = None
) -> list[Workflow]:
    """The workflows of some pools and subpools that are not finished, oldest first."""
    query = sa.select(WORKFLOWS).where(WORKFLOWS.c.pool.in_(pools), WORKFLOWS.c.status.in_(_ALIVE))
    query = query.order_by(WORKFLOWS.c.submitted_ms, WORKFLOWS.c.workflow_id)
    return _records(connection, query.limit(limit))


def move(connection: sa.Connection, pool: str, new_pool: str) -> None:
    """Write the new name of a pool to all its workflows; they are locked with their groups."""
    query = sa.select(WORKFLOWS.c.uuid).where(WORKFLOWS.c.pool == pool)
    hold(connection, connection.scalars(query))
    connection.execute(sa.update(WORKFLOWS).where(WORKFLOWS.c.pool == pool).values(pool=new_pool))


def list_tags(connection: sa.Connection) -> list[str]:
    """All tags that workflows have, by name."""
    text = sa.cast(WORKFLOWS.c.tags, sa.Text)
    query = sa.select(text).where(text != "[]").distinct()
    found = map(msgspec.json.decode, connection.scalars(query))
    return sorted({tag for tags in found for tag in tags})


def _one(connection: sa.Connection, query: sa.Select[Any], name: str) -> Workflow | None:
    found = read_all(connection, query, Workflow, {"name": name})
    return found[0] if found else None


def _records(connection: sa.Connection, query: sa.Select[Any]) -> list[Workflow]:
    return read_all(connection, query, Workflow)


def _conditions(wanted: Filter) -> list[sa.ColumnElement[bool]]:
    table = WORKFLOWS
    found: list[sa.ColumnElement[bool]] = []
    for column, values in (
        (table.c.submitted_by, wanted.users),
        (table.c.status, tuple(status.value for status in wanted.statuses)),
        (table.c.priority, tuple(priority.value for priority in wanted.priorities)),
    ):
        if values:
            found.append(column.in_(values))
    if wanted.pools is not None:
        found.append(table.c.pool.in_(wanted.pools))
    if wanted.name:
        found.append(table.c.workflow_id.contains(wanted.name, autoescape=True))
    if wanted.submitted_after_ms is not None:
        found.append(table.c.submitted_ms >= wanted.submitted_after_ms)
    if wanted.submitted_before_ms is not None:
        found.append(table.c.submitted_ms < wanted.submitted_before_ms)
    return found


def _labelled(workflow: Workflow, wanted: Filter) -> bool:
    labels = {f"{key}={value}" for key, value in workflow.labels.items()} | set(workflow.labels)
    return (
        labels.issuperset(wanted.labels)
        and labels.isdisjoint(wanted.no_labels)
        and set(workflow.tags).issuperset(wanted.tags)
    )
