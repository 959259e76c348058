"""Rows of groups and tasks, in bulk for snapshots."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from bough.model.names import NodeId
from bough.model.workflow import UNFINISHED, Group, Priority, Task, TaskStatus
from bough.store.prepared_statements import Prepared
from bough.store.rows import KEYS, parts_of, read_all, read_of
from bough.store.schema import GROUPS, TASKS, WAIT_CAUSES, WORKFLOWS

_UNFINISHED = tuple(status.value for status in UNFINISHED)
_WAITING = tuple(status.value for status in UNFINISHED if not status.holds_node)
_WAITS = sa.outerjoin(GROUPS, WAIT_CAUSES, WAIT_CAUSES.c.cause == GROUPS.c.wait_cause)
_GROUPS = sa.select(
    *GROUPS.c,
    WAIT_CAUSES.c.reason.label("wait_reason"),
    WAIT_CAUSES.c.message.label("wait_message"),
).select_from(_WAITS)
#: What a group has of its cause.
_OF_CAUSE = ("wait_reason", "wait_message")
# Written once: making a statement costs more than running it.
_GROUPS_BY_UUID = _GROUPS.where(GROUPS.c.uuid.in_(KEYS))
_GROUPS_OF = _GROUPS.where(GROUPS.c.workflow_uuid.in_(KEYS)).order_by(
    GROUPS.c.workflow_uuid, GROUPS.c.position
)
_DEMANDS_OF = (
    sa.select(GROUPS.c.workflow_uuid, GROUPS.c.gpus, WAIT_CAUSES.c.reason)
    .select_from(_WAITS)
    .where(GROUPS.c.workflow_uuid.in_(KEYS))
    .order_by(GROUPS.c.position)
)
_TASKS_BY_UUID = sa.select(TASKS).where(TASKS.c.uuid.in_(KEYS))
_TASKS_OF = (
    sa.select(TASKS).where(TASKS.c.workflow_uuid.in_(KEYS)).order_by(TASKS.c.name, TASKS.c.retry_id)
)
_TASKS_OF_GROUPS = (
    sa.select(TASKS)
    .where(TASKS.c.group_uuid.in_(KEYS))
    .order_by(TASKS.c.group_uuid, TASKS.c.name, TASKS.c.retry_id)
)
_UPDATE_GROUP = sa.update(GROUPS).where(GROUPS.c.uuid == sa.bindparam("key_uuid"))
_UPDATE_TASK = sa.update(TASKS).where(
    TASKS.c.uuid == sa.bindparam("key_uuid"), TASKS.c.retry_id == sa.bindparam("key_retry_id")
)
_INSERT_GROUP = Prepared(sa.insert(GROUPS).inline())
_INSERT_TASK = Prepared(sa.insert(TASKS).inline())


class Use(NamedTuple):
    """GPUs that tasks of one pool and one user hold."""

    #: A pool, or a subpool by its canonical name.
    pool: str
    user: str
    status: TaskStatus
    gpus: int
    #: Whether they count against the quota: HIGH or NORMAL, and not beyond a gang's minimum.
    guaranteed: bool


class WorkflowDemand(NamedTuple):
    """What all groups of a workflow ask for together, and why the first that waits does."""

    gpus: int = 0
    wait_reason: str | None = None


def insert_groups(connection: sa.Connection, groups: Iterable[Group]) -> None:
    """Add groups."""
    _INSERT_GROUP.add(connection, [_renamed(group, without=_OF_CAUSE) for group in groups])


def insert_tasks(connection: sa.Connection, tasks: Iterable[Task]) -> None:
    """Add attempts of tasks."""
    _INSERT_TASK.add(connection, [msgspec.to_builtins(task) for task in tasks])


def update_groups(connection: sa.Connection, groups: Iterable[Group]) -> None:
    """Update groups; what was asked for stays."""
    rows = [_renamed(group, ("uuid",), without=("spec", *_OF_CAUSE)) for group in groups]
    if rows:
        connection.execute(_UPDATE_GROUP, rows)


def update_tasks(connection: sa.Connection, tasks: Iterable[Task]) -> None:
    """Update attempts of tasks."""
    rows = [_renamed(task, ("uuid", "retry_id")) for task in tasks]
    if rows:
        connection.execute(_UPDATE_TASK, rows)


def write_nominations(
    connection: sa.Connection, news: Iterable[tuple[str, dict[str, str] | None]]
) -> None:
    """Write down where room is being made for groups, by uuid; `None`: it no longer is."""
    rows = [
        {"key_uuid": uuid, "nominated": places is not None, "nominated_places": places or None}
        for uuid, places in news
    ]
    if rows:
        connection.execute(_UPDATE_GROUP, rows)


def nominated_groups(connection: sa.Connection) -> dict[str, dict[str, str]]:
    """The groups, by uuid, for which room is being made, and where, by task."""
    query = sa.select(GROUPS.c.uuid, GROUPS.c.nominated_places).where(
        GROUPS.c.status.in_(_UNFINISHED), GROUPS.c.nominated
    )
    return {uuid: places or {} for uuid, places in connection.execute(query)}


def groups(connection: sa.Connection, uuids: Sequence[str]) -> list[Group]:
    """The groups of these identities."""
    return read_of(connection, _GROUPS_BY_UUID, Group, uuids)


def groups_of(connection: sa.Connection, workflows: Sequence[str]) -> list[Group]:
    """The groups of workflows, by workflow and position."""
    return read_of(connection, _GROUPS_OF, Group, workflows)


def demands_of(connection: sa.Connection, workflows: Sequence[str]) -> dict[str, WorkflowDemand]:
    """What each of some workflows asks for, and waits for."""
    found: dict[str, WorkflowDemand] = {}
    for part in parts_of(workflows):
        for uuid, gpus, reason in connection.execute(_DEMANDS_OF, {KEYS.key: part}):
            before = found.get(uuid, WorkflowDemand())
            found[uuid] = WorkflowDemand(before.gpus + gpus, before.wait_reason or reason)
    return found


def tasks_of(connection: sa.Connection, workflows: Sequence[str]) -> list[Task]:
    """All attempts of the tasks of workflows, by name and attempt."""
    return read_of(connection, _TASKS_OF, Task, workflows)


def tasks_of_groups(connection: sa.Connection, groups: Sequence[str]) -> list[Task]:
    """All attempts of the tasks of groups, in order."""
    return read_of(connection, _TASKS_OF_GROUPS, Task, groups)


def holding(
    connection: sa.Connection, backend: str | None = None, nodes: Sequence[str] | None = None
) -> list[Task]:
    """Every attempt that is on a node; of one backend, or on some of its nodes."""
    statuses = (TaskStatus.INITIALIZING.value, TaskStatus.RUNNING.value)
    query = sa.select(TASKS).where(TASKS.c.status.in_(statuses))
    if backend is not None:
        query = query.where(TASKS.c.backend == backend)
    if nodes is not None:
        query = query.where(TASKS.c.node.in_(nodes))
    return _tasks(connection, query.order_by(TASKS.c.workflow_uuid, TASKS.c.name))


def unfinished_groups(connection: sa.Connection) -> list[Group]:
    """Every unfinished group."""
    query = _GROUPS.where(GROUPS.c.status.in_(_UNFINISHED))
    return _groups(connection, query.order_by(GROUPS.c.uuid))


def tasks_of_unfinished_groups(connection: sa.Connection) -> list[Task]:
    """All attempts of their tasks."""
    query = (
        sa.select(TASKS)
        .join(GROUPS, GROUPS.c.uuid == TASKS.c.group_uuid)
        .where(GROUPS.c.status.in_(_UNFINISHED))
    )
    return _tasks(connection, query.order_by(TASKS.c.group_uuid, TASKS.c.name, TASKS.c.retry_id))


def waiting_groups(connection: sa.Connection, pool: str, *, larger_than: int) -> list[Group]:
    """Groups of HIGH and NORMAL in a pool that have no node yet and ask for more GPUs than this."""
    query = _GROUPS.join(WORKFLOWS, WORKFLOWS.c.uuid == GROUPS.c.workflow_uuid).where(
        WORKFLOWS.c.pool == pool,
        WORKFLOWS.c.priority != Priority.LOW.value,
        GROUPS.c.status.in_(_WAITING),
        GROUPS.c.gpus > larger_than,
    )
    order = (WORKFLOWS.c.submitted_ms, WORKFLOWS.c.workflow_id, GROUPS.c.position)
    return _groups(connection, query.order_by(*order))


def due_groups(connection: sa.Connection, now_ms: int, limit: int) -> list[tuple[str, str]]:
    """Groups past their limit, the longest first, with their workflows, by uuid."""
    query = (
        sa.select(GROUPS.c.uuid, GROUPS.c.workflow_uuid)
        .where(GROUPS.c.due_ms <= now_ms)
        .order_by(GROUPS.c.due_ms)
        .limit(limit)
    )
    return [(row.uuid, row.workflow_uuid) for row in connection.execute(query)]


def attempts(connection: sa.Connection, names: Sequence[str]) -> list[Task]:
    """The attempts of these identities."""
    wanted = set(names)
    uuids = sorted({name.rpartition("/")[0] for name in wanted})
    found = read_of(connection, _TASKS_BY_UUID, Task, uuids)
    return [task for task in found if task.attempt in wanted]


def completed(
    connection: sa.Connection, workflows: Sequence[str], names: Collection[str]
) -> list[Task]:
    """The attempts of tasks of these names that completed, the last of each task at the end."""
    found: list[Task] = []
    for start in range(0, len(workflows), 500):
        query = sa.select(TASKS).where(
            TASKS.c.workflow_uuid.in_(workflows[start : start + 500]),
            TASKS.c.status == TaskStatus.COMPLETED.value,
        )
        tasks = _tasks(connection, query.order_by(TASKS.c.retry_id))
        found += [each for each in tasks if each.name in names]
    return found


def uses(connection: sa.Connection) -> list[Use]:
    """What is held by tasks that are on a node, added up."""
    guaranteed = sa.and_(
        WORKFLOWS.c.priority != Priority.LOW.value, TASKS.c.growth.is_(False)
    ).label("guaranteed")
    columns = (WORKFLOWS.c.pool, WORKFLOWS.c.submitted_by, TASKS.c.status)
    query = (
        sa.select(*columns, sa.func.sum(TASKS.c.gpus), guaranteed)
        .join(WORKFLOWS, WORKFLOWS.c.uuid == TASKS.c.workflow_uuid)
        .where(TASKS.c.status.in_((TaskStatus.INITIALIZING.value, TaskStatus.RUNNING.value)))
        .group_by(*columns, guaranteed)
        .order_by(*columns)
    )
    return [
        Use(pool, user, TaskStatus(status), int(gpus), bool(counts))
        for pool, user, status, gpus, counts in connection.execute(query)
    ]


def waiting_gpus(connection: sa.Connection) -> dict[str, int]:
    """GPUs that tasks in the queue of the scheduler ask for, by pool and subpool."""
    query = (
        sa.select(WORKFLOWS.c.pool, sa.func.sum(TASKS.c.gpus))
        .join(WORKFLOWS, WORKFLOWS.c.uuid == TASKS.c.workflow_uuid)
        .where(TASKS.c.status.in_((TaskStatus.PROCESSING.value, TaskStatus.SCHEDULING.value)))
        .group_by(WORKFLOWS.c.pool)
        .order_by(WORKFLOWS.c.pool)
    )
    return {pool: int(gpus) for pool, gpus in connection.execute(query)}


def node_uses(connection: sa.Connection) -> dict[NodeId, int]:
    """GPUs that are held on each node."""
    query = (
        sa.select(TASKS.c.backend, TASKS.c.node, sa.func.sum(TASKS.c.gpus))
        .where(
            TASKS.c.status.in_((TaskStatus.INITIALIZING.value, TaskStatus.RUNNING.value)),
            TASKS.c.node.is_not(None),
        )
        .group_by(TASKS.c.backend, TASKS.c.node)
    )
    return {NodeId(backend, node): int(gpus) for backend, node, gpus in connection.execute(query)}


def move_queue(connection: sa.Connection, queue: str, new_queue: str) -> None:
    """Rename the queue of all its groups, finished ones included."""
    connection.execute(sa.update(GROUPS).where(GROUPS.c.queue == queue).values(queue=new_queue))


def _groups(connection: sa.Connection, query: sa.Select[Any]) -> list[Group]:
    return read_all(connection, query, Group)


def _tasks(connection: sa.Connection, query: sa.Select[Any]) -> list[Task]:
    return read_all(connection, query, Task)


def _renamed(
    record: Group | Task, keys: tuple[str, ...] = (), without: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The values of a record, its keys under names that no column has."""
    values: dict[str, Any] = msgspec.to_builtins(record)
    for name in without:
        del values[name]
    for key in keys:
        values[f"key_{key}"] = values.pop(key)
    return values
