"""Rows of workflows: add, find, list, count. Groups and tasks are in `tasks`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import msgspec
import sqlalchemy as sa

from bough.model.app import AppSource
from bough.model.labels import LabelSelector
from bough.model.workflow import ALIVE, Priority, Workflow, WorkflowStatus
from bough.store.rows import KEYS, add, parts_of, read_all, read_each, read_of
from bough.store.schema import ARRAYS, SPECS, WORKFLOWS
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
_OF_UUIDS = sa.select(WORKFLOWS).where(WORKFLOWS.c.uuid.in_(KEYS))
_OF_IDENTIFIERS = sa.select(WORKFLOWS).where(WORKFLOWS.c.workflow_id.in_(KEYS))
_ALL_LOCKED = _OF_UUIDS.order_by(WORKFLOWS.c.uuid).with_for_update()
_HELD = (
    sa.select(WORKFLOWS.c.uuid)
    .where(WORKFLOWS.c.uuid.in_(KEYS))
    .order_by(WORKFLOWS.c.uuid)
    .with_for_update()
)
_UPDATE = sa.update(WORKFLOWS).where(WORKFLOWS.c.uuid == sa.bindparam("key_uuid"))


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
    #: Labels that it must have, and those that it must not, as `key` or `key=value`.
    labels: tuple[LabelSelector, ...] = ()
    no_labels: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    #: Submitted from this version of an app; version 0: from any.
    app: AppSource | None = None
    #: Elements of this array alone; and whether to list elements of arrays at all.
    array: str = ""
    elements: bool = True
    newest_first: bool = True
    limit: int = 20
    offset: int = 0


def next_number(connection: sa.Connection, name: str) -> tuple[int, int]:
    """The next number of a workflow of this name; and the counter `SETUP`."""
    return raise_seeing_setup(connection, f"workflow:{name}")


def next_numbers(connection: sa.Connection, name: str, many: int) -> tuple[range, int]:
    """The same for several workflows of a name."""
    last, setup = raise_seeing_setup(connection, f"workflow:{name}", many)
    return range(last - many + 1, last + 1), setup


def insert_all(connection: sa.Connection, workflows: Sequence[Workflow]) -> None:
    """Add records without a spec of their own."""
    add(connection, _INSERT, [msgspec.to_builtins(each) for each in workflows])


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
        connection.execute(_UPDATE, rows)


def find(connection: sa.Connection, name: str) -> Workflow | None:
    """The workflow of an identifier or a uuid."""
    return _one(connection, _NAMED, name)


def named(connection: sa.Connection, identifiers: Sequence[str]) -> list[Workflow]:
    """The workflows of these identifiers, finished or not."""
    return read_of(connection, _OF_IDENTIFIERS, Workflow, identifiers)


def lock(connection: sa.Connection, name: str) -> Workflow | None:
    """The same, locked with its groups and tasks until the transaction ends."""
    return _one(connection, _LOCKED, name)


def lock_all(connection: sa.Connection, uuids: Sequence[str]) -> list[Workflow]:
    """The same for several, always in the same order, so that two callers cannot deadlock."""
    return read_of(connection, _ALL_LOCKED, Workflow, sorted(uuids))


def hold(connection: sa.Connection, uuids: Iterable[str]) -> None:
    """Lock workflows in the same order, and read nothing of them."""
    if connection.dialect.name == "sqlite":
        return
    for part in parts_of(sorted(uuids)):
        connection.execute(_HELD, {KEYS.key: part})


def of_uuids(connection: sa.Connection, uuids: Sequence[str]) -> list[Workflow]:
    """The workflows of these identities, as they are."""
    return read_of(connection, _OF_UUIDS, Workflow, uuids)


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
    """How many workflows of a pool are not finished, whatever their priority.

    An array with elements that are still to be made is one more.
    """
    query = sa.select(sa.func.count()).where(
        WORKFLOWS.c.pool == pool, WORKFLOWS.c.status.in_(_ALIVE)
    )
    arrays = sa.select(sa.func.count()).where(ARRAYS.c.pool == pool, ARRAYS.c.is_open)
    return connection.execute(
        sa.select(query.scalar_subquery() + arrays.scalar_subquery())
    ).scalar_one()


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


def list_submitters(connection: sa.Connection) -> list[str]:
    """All users who have submitted a workflow, by name.

    From each name to the next one, so that it costs by users and not by workflows.
    """
    user = WORKFLOWS.c.submitted_by
    names = sa.select(sa.func.min(user).label("user")).cte("names", recursive=True)
    following = sa.select(sa.func.min(user)).where(user > names.c.user).scalar_subquery()
    names = names.union_all(sa.select(following).where(names.c.user.is_not(None)))
    return list(connection.scalars(sa.select(names.c.user).where(names.c.user.is_not(None))))


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
    found += _made_from(wanted)
    if wanted.submitted_after_ms is not None:
        found.append(table.c.submitted_ms >= wanted.submitted_after_ms)
    if wanted.submitted_before_ms is not None:
        found.append(table.c.submitted_ms < wanted.submitted_before_ms)
    return found


def _made_from(wanted: Filter) -> list[sa.ColumnElement[bool]]:
    """Whether it was submitted from an app, or is an element of an array."""
    table = WORKFLOWS
    found: list[sa.ColumnElement[bool]] = []
    if wanted.app is not None:
        found.append(table.c.app_uuid == wanted.app.uuid)
        if wanted.app.version:
            found.append(table.c.app_version == wanted.app.version)
    if wanted.array:
        found.append(table.c.array_id == wanted.array)
    elif not wanted.elements:
        found.append(table.c.array_id.is_(None))
    return found


def _labelled(workflow: Workflow, wanted: Filter) -> bool:
    labels = {f"{key}={value}" for key, value in workflow.labels.items()} | set(workflow.labels)
    return (
        all(each.selects(workflow.labels) for each in wanted.labels)
        and labels.isdisjoint(wanted.no_labels)
        and set(workflow.tags).issuperset(wanted.tags)
    )
