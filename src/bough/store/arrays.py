"""Arrays of workflows, and the progress of their elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from bough.model.workflow import ALIVE, WorkflowArray, WorkflowSpec, WorkflowStatus
from bough.store.rows import convert, read_all, read_first
from bough.store.schema import ARRAYS, WORKFLOWS
from bough.store.settings import raise_counter, raise_counter_to

_ALIVE = tuple(status.value for status in ALIVE)
_PLAIN = [column for column in ARRAYS.c if column.name not in ("spec", "end_told")]


def insert(connection: sa.Connection, array: WorkflowArray, spec: WorkflowSpec) -> None:
    """Add an array."""
    row = {**msgspec.to_builtins(array), "spec": msgspec.to_builtins(spec)}
    connection.execute(sa.insert(ARRAYS).values(**row))


def reserve_numbers(connection: sa.Connection, array_id: str, last: int) -> int:
    """Reserve the numbers of all elements at once; returns the offset from index to number.

    It is 0 unless an earlier workflow had the name of this array.
    """
    counter = f"workflow:{array_id}"
    drawn = raise_counter(connection, counter)
    first = 0 if drawn == 1 else drawn
    raise_counter_to(connection, counter, first + last + 1)
    return first


def find(connection: sa.Connection, name: str) -> WorkflowArray | None:
    """The array of an identifier or a uuid."""
    wanted = sa.or_(ARRAYS.c.array_id == name, ARRAYS.c.uuid == name)
    return read_first(connection, sa.select(*_PLAIN).where(wanted), WorkflowArray)


def lock(connection: sa.Connection, uuid: str) -> WorkflowArray | None:
    """The same, locked until the transaction ends."""
    query = sa.select(*_PLAIN).where(ARRAYS.c.uuid == uuid).with_for_update()
    found = read_all(connection, query, WorkflowArray)
    return found[0] if found else None


def spec_of(connection: sa.Connection, array_id: str) -> WorkflowSpec | None:
    """The spec that was submitted."""
    query = sa.select(ARRAYS.c.spec).where(ARRAYS.c.array_id == array_id)
    found = connection.execute(query).scalar_one_or_none()
    return None if found is None else convert(found, WorkflowSpec)


def update(connection: sa.Connection, array: WorkflowArray) -> None:
    """Update a record."""
    row = msgspec.to_builtins(array)
    connection.execute(sa.update(ARRAYS).where(ARRAYS.c.uuid == array.uuid).values(**row))


def open_arrays(connection: sa.Connection) -> list[WorkflowArray]:
    """Arrays with elements left to create or to cancel, oldest first."""
    query = sa.select(*_PLAIN).where(ARRAYS.c.is_open)
    return read_all(connection, query.order_by(ARRAYS.c.submitted_ms, ARRAYS.c.uuid), WorkflowArray)


def count_open(connection: sa.Connection, *, pool: str = "", user: str = "") -> int:
    """How many arrays of a pool, or of a user, have elements left to create or to cancel."""
    query = sa.select(sa.func.count()).select_from(ARRAYS).where(ARRAYS.c.is_open)
    if pool:
        query = query.where(ARRAYS.c.pool == pool)
    if user:
        query = query.where(ARRAYS.c.submitted_by == user)
    return connection.execute(query).scalar_one()


def search(
    connection: sa.Connection,
    users: Sequence[str],
    pools: Sequence[str] | None,
    limit: int,
    offset: int,
) -> list[WorkflowArray]:
    """The newest arrays, of some users or all, in some pools or all."""
    query = sa.select(*_PLAIN).order_by(ARRAYS.c.submitted_ms.desc(), ARRAYS.c.uuid.desc())
    if users:
        query = query.where(ARRAYS.c.submitted_by.in_(users))
    if pools is not None:
        query = query.where(ARRAYS.c.pool.in_(pools))
    return read_all(connection, query.limit(limit).offset(offset), WorkflowArray)


def counts_of(
    connection: sa.Connection, arrays: Sequence[str]
) -> dict[str, dict[WorkflowStatus, int]]:
    """Count the elements of arrays by status; archived ones are not counted."""
    found: dict[str, dict[WorkflowStatus, int]] = {each: {} for each in arrays}
    columns = (WORKFLOWS.c.array_id, WORKFLOWS.c.status, sa.func.count())
    for start in range(0, len(arrays), 500):
        query = sa.select(*columns).where(WORKFLOWS.c.array_id.in_(arrays[start : start + 500]))
        query = query.group_by(WORKFLOWS.c.array_id, WORKFLOWS.c.status)
        for array, status, number in connection.execute(query):
            found[array][WorkflowStatus(status)] = number
    return found


def uncancelled(connection: sa.Connection, array_id: str, limit: int) -> list[str]:
    """Some unfinished elements that were not cancelled yet."""
    query = sa.select(WORKFLOWS.c.uuid).where(
        WORKFLOWS.c.array_id == array_id,
        WORKFLOWS.c.status.in_(_ALIVE),
        WORKFLOWS.c.cancelled_by.is_(None),
    )
    return list(connection.scalars(query.order_by(WORKFLOWS.c.uuid).limit(limit)))


def tell_end(connection: sa.Connection, array: WorkflowArray) -> bool:
    """Note that the user was told of the array's end; returns whether this is the first time."""
    query = sa.update(ARRAYS).where(ARRAYS.c.uuid == array.uuid, ~ARRAYS.c.end_told)
    return bool(connection.execute(query.values(end_told=True)).rowcount)


def move(connection: sa.Connection, pool: str, new_pool: str) -> None:
    """Rename the pool of all its arrays."""
    query = sa.select(ARRAYS.c.uuid).where(ARRAYS.c.pool == pool)
    connection.execute(query.order_by(ARRAYS.c.uuid).with_for_update())
    connection.execute(sa.update(ARRAYS).where(ARRAYS.c.pool == pool).values(pool=new_pool))


def unfinished(uuid: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Whether an array has elements left to create, or unfinished ones."""
    alive = sa.select(WORKFLOWS.c.uuid).where(
        WORKFLOWS.c.array_id == ARRAYS.c.array_id, WORKFLOWS.c.status.in_(_ALIVE)
    )
    left = sa.or_(ARRAYS.c.is_open, alive.exists())
    return sa.select(ARRAYS.c.uuid).where(ARRAYS.c.uuid == uuid, left).exists()
