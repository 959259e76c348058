"""Nodes: what they have, what is used of it; cordon, drain, declare lost."""

from __future__ import annotations

import msgspec
from litestar.params import FromPath, FromQuery, JSONBody

from bough.api.nodes import (
    ExposedFields,
    NodeAmounts,
    NodeDrained,
    NodeLine,
    NodeList,
    NodeLost,
    NodeTaint,
    PlatformRights,
    ResourceLine,
    ResourceList,
    SetCordon,
)
from bough.control.nodes import node_cordon, node_list
from bough.control.nodes.node_list import Amounts, NodeView
from bough.model.access import Action
from bough.server.route_declaration import Visit, caller, route
from bough.server.values import cores, gibibytes

_NODE = "/api/node/{node:str}"
#: By how many top-level pools may use a node; by more: SHARED.
_KINDS = {0: "UNUSED", 1: "RESERVED"}
_NO_RIGHTS = PlatformRights(
    host_network=False, privileged=False, default_mounts=[], allowed_mounts=[]
)


@route("GET", "/api/resources", Action.RESOURCE_LIST)
def list_resources(
    request: Visit,
    pools: FromQuery[list[str] | None] = None,
    all_pools: FromQuery[bool] = False,
    platforms: FromQuery[list[str] | None] = None,
) -> ResourceList:
    """The nodes of some or all pools: what they have, and how much is used."""
    site, actor = caller(request)
    named = None if all_pools or not pools else pools
    found = node_list.list_nodes(site, actor, named, platforms)
    return ResourceList([_node(each) for each in found])


@route("GET", "/api/resources/{node:str}", Action.RESOURCE_LIST)
def get_resource(
    request: Visit, node: FromPath[str], backend: FromQuery[str | None] = None
) -> ResourceList:
    """One node, and how each pool may use it."""
    site, actor = caller(request)
    view = node_list.get_node(site, actor, node, backend)
    return ResourceList(
        [
            msgspec.structs.replace(
                _node(view),
                config_fields={
                    pool: dict.fromkeys(found, _NO_RIGHTS) for pool, found in view.pools.items()
                },
            )
        ]
    )


@route("PATCH", "/api/resources/{node:str}", Action.NODE_UPDATE)
def cordon_node(
    request: Visit,
    node: FromPath[str],
    data: JSONBody[SetCordon],
    backend: FromQuery[str | None] = None,
) -> ResourceList:
    """Cordon or uncordon a node; running tasks continue."""
    site, actor = caller(request)
    node_cordon.set_cordoned(site, actor, node, backend, cordoned=data.cordoned)
    return ResourceList([_node(node_list.get_node(site, actor, node, backend))])


@route("GET", "/api/node", Action.RESOURCE_LIST)
def list_nodes(request: Visit) -> NodeList:
    """All nodes: whether they accept work, what they have, and how much is used."""
    site, actor = caller(request)
    return NodeList([_line(each) for each in node_list.list_nodes(site, actor)])


@route("POST", f"{_NODE}/cordon", Action.NODE_UPDATE)
def cordon(request: Visit, node: FromPath[str], backend: FromQuery[str | None] = None) -> NodeLine:
    """Cordon a node; running tasks continue."""
    return _cordoned(request, node, backend, cordoned=True)


@route("POST", f"{_NODE}/uncordon", Action.NODE_UPDATE)
def uncordon(
    request: Visit, node: FromPath[str], backend: FromQuery[str | None] = None
) -> NodeLine:
    """Uncordon a node."""
    return _cordoned(request, node, backend, cordoned=False)


@route("POST", f"{_NODE}/drain", Action.NODE_UPDATE)
def drain(
    request: Visit,
    node: FromPath[str],
    leave: FromQuery[bool] = False,
    backend: FromQuery[str | None] = None,
) -> NodeDrained:
    """Drain a node: its tasks are evicted and restart elsewhere, or may finish."""
    site, actor = caller(request)
    drained = node_cordon.drain_node(site, actor, node, backend, leave=leave)
    line = _line(node_list.get_node(site, actor, node, backend))
    return NodeDrained(line, drained.told, drained.left)


@route("POST", f"{_NODE}/declare_lost", Action.NODE_UPDATE)
def declare_lost(
    request: Visit, node: FromPath[str], backend: FromQuery[str | None] = None
) -> NodeLost:
    """Declare an unreachable machine lost, by one of its nodes; its tasks restart elsewhere."""
    site, actor = caller(request)
    lost = node_cordon.declare_lost(site, actor, node, backend)
    return NodeLost(lost.backend, lost.machine, list(lost.nodes), lost.tasks)


def _cordoned(request: Visit, node: str, backend: str | None, *, cordoned: bool) -> NodeLine:
    site, actor = caller(request)
    node_cordon.set_cordoned(site, actor, node, backend, cordoned=cordoned)
    return _line(node_list.get_node(site, actor, node, backend))


def _line(view: NodeView) -> NodeLine:
    node, used = view.node, view.used
    return NodeLine(
        name=node.name,
        backend=node.backend,
        status="OFFLINE" if view.offline else "CORDONED" if node.cordoned else "READY",
        cordoned=node.cordoned,
        tasks=view.tasks,
        gpu=node.gpus,
        used_gpu=used.gpus,
        cpu=cores(node.cpu_milli),
        used_cpu=cores(used.cpu_milli),
        memory=gibibytes(node.memory_bytes),
        used_memory=gibibytes(used.memory_bytes),
        pools=sorted(view.pools),
        labels=node.labels,
    )


def _node(view: NodeView) -> ResourceLine:
    node = view.node
    capacity = _amounts(Amounts(node.gpus, node.cpu_milli, node.memory_bytes, node.storage_bytes))
    return ResourceLine(
        hostname=node.name,
        exposed_fields=ExposedFields(
            gpu=capacity.gpu,
            cpu=capacity.cpu,
            memory=capacity.memory,
            storage=capacity.storage,
            node=node.name,
            pool_platforms=[
                f"{pool}/{platform}" for pool, found in view.pools.items() for platform in found
            ],
        ),
        allocatable_fields=capacity,
        platform_allocatable_fields={
            pool: dict.fromkeys(found, capacity) for pool, found in view.pools.items()
        },
        usage_fields=_amounts(view.used),
        non_workflow_usage_fields=_amounts(Amounts()),
        resource_type=_KINDS.get(view.sharing, "SHARED"),
        backend=node.backend,
        label_fields=node.labels,
        cordoned=node.cordoned,
        pool_platform_labels={pool: list(found) for pool, found in view.pools.items()},
        taints=[NodeTaint(each.key, each.value, each.effect) for each in node.taints],
    )


def _amounts(amounts: Amounts) -> NodeAmounts:
    return NodeAmounts(
        gpu=amounts.gpus,
        cpu=cores(amounts.cpu_milli),
        # The units that interfaces take for granted; clients read the suffix.
        memory=f"{amounts.memory_bytes // 2**10}Ki",
        storage=str(amounts.storage_bytes),
    )


HANDLERS = (
    list_resources,
    get_resource,
    cordon_node,
    list_nodes,
    cordon,
    uncordon,
    drain,
    declare_lost,
)
