"""Tasks of all workflows: what runs where, and what it holds together; and the tags in use."""

from __future__ import annotations

from litestar.params import FromPath, FromQuery

from bough.api.workflows import TagList, TaskLine, TaskList, TaskSummary
from bough.control.workflows import query, task_list
from bough.control.workflows.task_list import Held, TaskFilter, TaskRow
from bough.model.access import Action
from bough.model.workflow import Priority, TaskStatus
from bough.server.answer_cache import keep_until_change
from bough.server.permissions import Scope
from bough.server.route_declaration import Offset, Visit, WorkLimit, caller, route
from bough.server.values import chosen_pools, read_time_ms, time_text

_GIB = 2**30
#: What is on its way or on a node.
_CURRENT = (
    TaskStatus.PROCESSING,
    TaskStatus.SCHEDULING,
    TaskStatus.INITIALIZING,
    TaskStatus.RUNNING,
)


@route("GET", "/api/task", Action.TASK_LIST)
def list_tasks(
    request: Visit,
    workflow_id: FromQuery[str] = "",
    users: FromQuery[list[str] | None] = None,
    all_users: FromQuery[bool] = False,
    statuses: FromQuery[list[TaskStatus] | None] = None,
    pools: FromQuery[list[str] | None] = None,
    all_pools: FromQuery[bool] = False,
    nodes: FromQuery[list[str] | None] = None,
    priority: FromQuery[list[Priority] | None] = None,
    started_after: FromQuery[str | None] = None,
    started_before: FromQuery[str | None] = None,
    summary: FromQuery[bool] = False,
    aggregate_by_workflow: FromQuery[bool] = False,
    order: FromQuery[str] = "ASC",
    limit: WorkLimit = 20,
    offset: Offset = 0,
) -> TaskList:
    """The newest `limit` tasks in the requested order, or the sums of their requests."""
    site, actor = caller(request)
    adds_up = summary or aggregate_by_workflow
    elsewhere = bool(nodes or workflow_id)
    wanted = TaskFilter(
        statuses=tuple(statuses or _CURRENT),
        workflow=workflow_id,
        users=() if all_users or elsewhere else tuple(users or (actor.name,)),
        pools=None if elsewhere else chosen_pools(site, actor, pools, all_pools=all_pools),
        nodes=tuple(nodes or ()),
        priorities=tuple(priority or ()),
        started_after_ms=read_time_ms("started_after", started_after),
        started_before_ms=read_time_ms("started_before", started_before),
        limit=None if adds_up else limit,
        offset=0 if adds_up else offset,
    )
    keep_until_change(request)
    rows = task_list.list_tasks(site, actor, wanted)
    if adds_up:
        sums = task_list.sum_up(rows, by_workflow=aggregate_by_workflow)
        return TaskList(summaries=[_summary(each) for each in sums[offset : offset + limit]])
    shown = rows if order.upper() == "DESC" else reversed(rows)
    return TaskList(tasks=[_task(row) for row in shown])


@route("GET", "/api/workflow/{workflow:str}/task/{task:str}", Action.WORKFLOW_READ, Scope.WORKFLOW)
def get_task(request: Visit, workflow: FromPath[str], task: FromPath[str]) -> TaskLine:
    """The latest attempt of a task."""
    site, actor = caller(request)
    return _task(task_list.get_task(site, actor, workflow, task))


@route("GET", "/api/users", Action.WORKFLOW_LIST)
def list_submitters(request: Visit) -> list[str]:
    """The users who have submitted a workflow, sorted by name."""
    site, actor = caller(request)
    return query.list_submitters(site, actor)


def _task(row: TaskRow) -> TaskLine:
    task, requests = row.task, row.spec.requests
    return TaskLine(
        user=row.user,
        workflow_id=row.workflow_id,
        workflow_uuid=task.workflow_uuid,
        task_name=task.name,
        retry_id=task.retry_id,
        status=task.status,
        pool=row.pool,
        priority=row.priority,
        node=task.node,
        backend=task.backend,
        start_time=time_text(task.started_ms),
        end_time=time_text(task.ended_ms),
        storage=row.spec.storage_bytes / _GIB,
        cpu=requests.cpu_milli / 1_000,
        memory=requests.memory_bytes / _GIB,
        gpu=task.gpus,
    )


def _summary(held: Held) -> TaskSummary:
    return TaskSummary(
        user=held.user,
        pool=held.pool,
        priority=held.priority,
        workflow_id=held.workflow_id,
        storage=held.storage_bytes / _GIB,
        cpu=held.cpu_milli / 1_000,
        memory=held.memory_bytes / _GIB,
        gpu=held.gpus,
    )


@route("GET", "/api/tag", Action.WORKFLOW_LIST)
def list_tags(request: Visit) -> TagList:
    """The tags that are in use on workflows."""
    site, actor = caller(request)
    return TagList(query.list_tags(site, actor))


HANDLERS = (list_tasks, get_task, list_submitters, list_tags)
