"""Attempts of tasks with their workflows: filtered, counted, and what held GPUs in a time span."""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa

from bough.model.usage_stretch import Stretch
from bough.model.workflow import (
    HOLDING,
    Group,
    Priority,
    Task,
    TaskSpec,
    TaskStatus,
    WorkflowStatus,
)
from bough.store.rows import read_all
from bough.store.schema import ARCHIVE, ARCHIVED_STRETCHES, GROUPS, TASKS, WORKFLOWS
from bough.store.schema.columns import BIG


class TaskFilter(msgspec.Struct, frozen=True):
    """Which attempts to list; an empty field does not matter."""

    statuses: tuple[TaskStatus, ...] = ()
    #: An identifier or a uuid.
    workflow: str = ""
    users: tuple[str, ...] = ()
    #: `None`: all pools; none at all if it is empty.
    pools: tuple[str, ...] | None = None
    #: Names of nodes, each alone or as BACKEND/NAME.
    nodes: tuple[str, ...] = ()
    priorities: tuple[Priority, ...] = ()
    started_after_ms: int | None = None
    started_before_ms: int | None = None
    #: `None`: no limit.
    limit: int | None = 20
    offset: int = 0


class TaskRow(msgspec.Struct, frozen=True):
    """An attempt, and what it belongs to."""

    task: Task
    spec: TaskSpec
    workflow_id: str
    user: str
    pool: str
    priority: Priority


def search(connection: sa.Connection, wanted: TaskFilter) -> list[TaskRow]:
    """The attempts that a filter lets through, the newest first."""
    newest = sa.func.coalesce(TASKS.c.started_ms, TASKS.c.queued_ms, WORKFLOWS.c.submitted_ms)
    query = (
        sa.select(TASKS.c.uuid, TASKS.c.retry_id, TASKS.c.group_uuid, *_OF_WORKFLOW)
        .join(WORKFLOWS, WORKFLOWS.c.uuid == TASKS.c.workflow_uuid)
        .order_by(newest.desc(), TASKS.c.uuid, TASKS.c.retry_id.desc())
        .limit(wanted.limit)
        .offset(wanted.offset)
    )
    for condition in _conditions(wanted):
        query = query.where(condition)
    rows = connection.execute(query).all()
    groups = sorted({row.group_uuid for row in rows})
    tasks = {task.attempt: task for task in _in_parts(connection, TASKS, groups, Task)}
    specs = {
        (group.uuid, spec.name): spec
        for group in _in_parts(connection, GROUPS, groups, Group)
        for spec in group.spec.tasks
    }
    found: list[TaskRow] = []
    for row in rows:
        task = tasks[f"{row.uuid}/{row.retry_id}"]
        of_workflow = (row.workflow_id, row.submitted_by, row.pool, Priority(row.priority))
        found.append(TaskRow(task, specs[task.group_uuid, task.name], *of_workflow))
    return found


_OF_WORKFLOW = (
    WORKFLOWS.c.workflow_id,
    WORKFLOWS.c.submitted_by,
    WORKFLOWS.c.pool,
    WORKFLOWS.c.priority,
)


def _in_parts(
    connection: sa.Connection, table: sa.Table, groups: list[str], kind: type[Any]
) -> list[Any]:
    """Databases take only so many parameters at once."""
    column = table.c.uuid if table is GROUPS else table.c.group_uuid
    found: list[Any] = []
    for start in range(0, len(groups), 500):
        query = sa.select(table).where(column.in_(groups[start : start + 500]))
        found += read_all(connection, query, kind)
    return found


def _conditions(wanted: TaskFilter) -> list[sa.ColumnElement[bool]]:
    found: list[sa.ColumnElement[bool]] = []
    user, pool = _of_user_and_pool(wanted)
    for column, values in (
        (TASKS.c.status, tuple(status.value for status in wanted.statuses)),
        (user, wanted.users),
        (WORKFLOWS.c.priority, tuple(priority.value for priority in wanted.priorities)),
    ):
        if values:
            found.append(column.in_(values))
    if wanted.nodes:
        found.append(sa.or_(*map(_on_node, wanted.nodes)))
    if wanted.pools is not None:
        found.append(pool.in_(wanted.pools))
    if wanted.workflow:
        named = (WORKFLOWS.c.workflow_id == wanted.workflow, WORKFLOWS.c.uuid == wanted.workflow)
        found.append(sa.or_(*named))
    if wanted.started_after_ms is not None:
        found.append(TASKS.c.started_ms >= wanted.started_after_ms)
    if wanted.started_before_ms is not None:
        found.append(TASKS.c.started_ms < wanted.started_before_ms)
    return found


def _of_user_and_pool(wanted: TaskFilter) -> tuple[sa.ColumnElement[str], sa.ColumnElement[str]]:
    """The user and the pool of a workflow, by which it is found or compared.

    What waits or runs is found by the status of its tasks: by an index of users or pools, all
    workflows that they ever had would be looked at.
    """
    user, pool = WORKFLOWS.c.submitted_by, WORKFLOWS.c.pool
    if not wanted.statuses or any(status.finished for status in wanted.statuses):
        return user, pool
    # No index has the result of a function.
    return sa.func.coalesce(user, ""), sa.func.coalesce(pool, "")


def _on_node(name: str) -> sa.ColumnElement[bool]:
    backend, slash, node = name.rpartition("/")
    there = TASKS.c.node == node
    return sa.and_(TASKS.c.backend == backend, there) if slash else there


class Depth(msgspec.Struct, frozen=True):
    """How many workflows wait in a pool with one priority, and since when the oldest does."""

    pool: str
    priority: Priority
    workflows: int
    oldest_ms: int


def depths(connection: sa.Connection) -> list[Depth]:
    """What waits, by pool and priority."""
    columns = (WORKFLOWS.c.pool, WORKFLOWS.c.priority)
    query = (
        sa.select(*columns, sa.func.count(), sa.func.min(WORKFLOWS.c.submitted_ms))
        .where(WORKFLOWS.c.status == WorkflowStatus.PENDING.value)
        .group_by(*columns)
        .order_by(*columns)
    )
    return [
        Depth(pool, Priority(priority), int(number), int(oldest))
        for pool, priority, number, oldest in connection.execute(query)
    ]


def list_stretches(connection: sa.Connection, since_ms: int, until_ms: int) -> list[Stretch]:
    """Every attempt that had GPUs for a part of this time, and no other.

    What still has them counts up to the end of the time. Attempts of one workflow that had theirs
    from the same moment to the same moment are one, so a gang is mostly a few rows and not many.
    """
    # Each by an index that has everything this needs of an ended attempt.
    still = TASKS.c.status.in_([status.value for status in HOLDING])
    archived = ARCHIVED_STRETCHES.c.ended_ms > since_ms
    found: list[Stretch] = []
    for held, workflows, condition in (
        (TASKS, WORKFLOWS, TASKS.c.ended_ms > since_ms),
        (TASKS, WORKFLOWS, still),
        (ARCHIVED_STRETCHES, ARCHIVE, archived),
    ):
        query = _stretches(held, workflows, condition, until_ms)
        # As the database has them: a row object for each of very many takes its time.
        cursor: Any = connection.execute(query).cursor
        found += map(Stretch._make, cursor.fetchall())
    return found


def _stretches(
    attempts: sa.Table, workflows: sa.Table, condition: sa.ColumnElement[bool], until_ms: int
) -> sa.Select[Any, Any, int, bool, Any, Any, Any, Any]:
    """What attempts held, with what is needed of their workflows."""
    same = [attempts.c[name] for name in _SAME]
    held = (
        sa.select(*same, sa.func.sum(attempts.c.gpus).label("gpus"))
        .where(attempts.c.gpus > 0, attempts.c.scheduled_ms < until_ms, condition)
        .group_by(*same)
        .subquery()
    )
    guaranteed = sa.and_(workflows.c.priority != Priority.LOW.value, held.c.growth.is_(False))
    return sa.select(
        workflows.c.pool,
        workflows.c.submitted_by,
        sa.cast(held.c.gpus, BIG),
        guaranteed,
        workflows.c.submitted_ms,
        held.c.scheduled_ms,
        sa.func.coalesce(held.c.ended_ms, until_ms),
        workflows.c.uuid,
    ).join(workflows, workflows.c.uuid == held.c.workflow_uuid)


#: What is the same of attempts that count as one.
_SAME = ("ended_ms", "workflow_uuid", "scheduled_ms", "growth")
