"""Nodes and tasks: what there is, and what runs on it."""

from __future__ import annotations

from typing import Any

from litestar.params import FromPath, FromQuery, JSONBody

from bough.control import machines, resources, tasks
from bough.control.resources import Amounts, NodeView
from bough.control.tasks import Held, TaskFilter, TaskRow
from bough.model.access import Action
from bough.model.workflow import Priority, TaskStatus
from bough.server.routes.declare import Limit, Offset, Visit, caller, route
from bough.server.routes.workflows import chosen_pools
from bough.server.wire import cores, gibibytes, read_time_ms, time_text
from bough.server.workflow_shapes import Cordon, ResourceList, TaskLine, TaskList, TaskSummary

_GIB = 2**30
#: What is on its way or on a node.
_CURRENT = (
    TaskStatus.PROCESSING,
    TaskStatus.SCHEDULING,
    TaskStatus.INITIALIZING,
    TaskStatus.RUNNING,
)


@route("GET", "/api/resources", Action.RESOURCE_LIST)
def list_resources(
    request: Visit,
    pools: FromQuery[list[str] | None] = None,
    all_pools: FromQuery[bool] = False,
    platforms: FromQuery[list[str] | None] = None,
) -> ResourceList:
    """Nodes with what they have and what is used, of some pools or of all."""
    site, actor = caller(request)
    named = None if all_pools or not pools else pools
    found = resources.list_nodes(site, actor, named, platforms)
    return ResourceList([_node(each) for each in found])


@route("GET", "/api/resources/{node:str}", Action.RESOURCE_LIST)
def get_resource(request: Visit, node: FromPath[str]) -> ResourceList:
    """One node, and how each pool may use it."""
    site, actor = caller(request)
    view = resources.get_node(site, actor, node)
    document = _node(view)
    document["pool_platform_labels"] = {
        pool: list(platforms) for pool, platforms in view.pools.items()
    }
    document["config_fields"] = {
        pool: {
            platform: {
                "host_network": False,
                "privileged": False,
                "default_mounts": [],
                "allowed_mounts": [],
            }
            for platform in platforms
        }
        for pool, platforms in view.pools.items()
    }
    return ResourceList([document])


@route("PATCH", "/api/resources/{node:str}", Action.NODE_UPDATE)
def cordon_node(request: Visit, node: FromPath[str], data: JSONBody[Cordon]) -> ResourceList:
    """Let nothing new onto a node, or let it again; what runs goes on."""
    site, actor = caller(request)
    machines.set_cordoned(site, actor, node, cordoned=data.cordoned)
    return ResourceList([_node(resources.get_node(site, actor, node))])


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
    limit: Limit = 20,
    offset: Offset = 0,
) -> TaskList:
    """Tasks, or what they ask for together; the newest `limit`, then in the order asked for."""
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
    rows = tasks.list_tasks(site, actor, wanted)
    if adds_up:
        sums = tasks.sum_up(rows, by_workflow=aggregate_by_workflow)
        return TaskList(summaries=[_summary(each) for each in sums[offset : offset + limit]])
    shown = rows if order.upper() == "DESC" else reversed(rows)
    return TaskList(tasks=[_task(row) for row in shown])


def _node(view: NodeView) -> dict[str, Any]:
    machine = view.machine
    capacity = _amounts(
        Amounts(machine.gpus, machine.cpu_milli, machine.memory_bytes, machine.storage_bytes)
    )
    pairs = [f"{pool}/{platform}" for pool, found in view.pools.items() for platform in found]
    kinds = {0: "UNUSED", 1: "RESERVED"}
    return {
        "hostname": machine.name,
        "exposed_fields": {**capacity, "node": machine.name, "pool/platform": pairs},
        "allocatable_fields": capacity,
        "platform_allocatable_fields": {
            pool: dict.fromkeys(found, capacity) for pool, found in view.pools.items()
        },
        "usage_fields": _amounts(view.used),
        "non_workflow_usage_fields": _amounts(Amounts()),
        "resource_type": kinds.get(view.sharing, "SHARED"),
        "backend": machine.backend,
        "label_fields": machine.labels,
        "cordoned": machine.cordoned,
    }


def _amounts(amounts: Amounts) -> dict[str, Any]:
    return {
        "gpu": amounts.gpus,
        "cpu": cores(amounts.cpu_milli),
        "memory": gibibytes(amounts.memory_bytes),
        "storage": gibibytes(amounts.storage_bytes),
    }


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


HANDLERS = (list_resources, get_resource, cordon_node, list_tasks)
