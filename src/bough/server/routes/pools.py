"""Pools: what there is, what it has and uses, and how it is configured."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar.params import FromPath, FromQuery, JSONBody

from bough.control import pools, quotas
from bough.control.pools import PoolView
from bough.control.quotas import PoolRow, Usage
from bough.control.recording import Note
from bough.errors import Conflict, Invalid, NotFound
from bough.model.access import Action
from bough.server.permission import Scope
from bough.server.routes.declare import Visit, caller, route
from bough.server.shapes import (
    CreatePool,
    NodeSetNames,
    NodeSetRows,
    PatchPool,
    PoolConfigs,
    PoolList,
    PoolName,
    PoolQuotas,
    PutPool,
    PutPools,
    Queue,
    RenamePool,
    ResourceUsage,
)

_PLATFORM = "/api/configs/pool/{pool:str}/platform/{platform:str}"
#: What somebody who submits needs to know of a pool.
_MINIMAL = (
    "name",
    "description",
    "status",
    "download_type",
    "enable_maintenance",
    "backend",
    "default_platform",
    "default_exec_timeout",
    "default_queue_timeout",
    "max_exec_timeout",
    "max_queue_timeout",
    "default_exit_actions",
    "resources",
    "topology_keys",
    "platforms",
    "parent_pool",
    "subpool_name",
    "subpool_state",
)
_MINIMAL_PLATFORM = (
    "description",
    "host_network_allowed",
    "privileged_allowed",
    "allowed_mounts",
    "default_mounts",
)


@route("GET", "/api/pool", Action.POOL_LIST)
def list_pools(request: Visit) -> PoolList:
    """All pools and their subpools, as far as those need them who submit."""
    site, actor = caller(request)
    views = pools.list_pools(site, actor, subpools=True)
    names = NodeSetNames([PoolName(view.name) for view in views])
    return PoolList({view.name: _minimal(view.document) for view in views}, [names])


@route("GET", "/api/pool_quota", Action.POOL_LIST)
def pool_quotas(
    request: Visit, pools: FromQuery[list[str] | None] = None, all_pools: FromQuery[bool] = False
) -> PoolQuotas:
    """What pools have and use. A pool brings its subpools along, a subpool comes alone.

    `can_start` is how many GPUs of HIGH and NORMAL can really start now, which may be less than is
    left of a quota; `drain` is what keeps a subpool open that is being deleted.
    """
    site, actor = caller(request)
    names = None if all_pools or not pools else pools
    report = quotas.pool_quotas(site, actor, names)
    sets = [NodeSetRows([_row(row) for row in each.rows]) for each in report.node_sets]
    return PoolQuotas(sets, _usage(report.total))


@route("GET", "/api/queues", Action.QUEUE_LIST)
def list_queues(request: Visit) -> list[Queue]:
    """The quota tree with its hidden leaves, for administrators."""
    site, actor = caller(request)
    return [
        Queue(
            name=each.row.name,
            parent=each.row.parent,
            leaf=each.row.leaf,
            quota=each.row.quota,
            limit=each.row.limit,
            weight=each.row.weight,
            used=each.used,
            used_guaranteed=each.used_guaranteed,
            pool=each.row.pool,
            state=each.row.state,
        )
        for each in quotas.list_queues(site, actor)
    ]


# Configuration


@route("GET", "/api/configs/pool", Action.POOL_LIST)
def list_configs(
    request: Visit, verbose: FromQuery[bool] = False, backend: FromQuery[str | None] = None
) -> PoolConfigs:
    """What is configured for the pools; subpools are no configuration, and have their own path."""
    site, actor = caller(request)
    views = pools.list_pools(site, actor, backend)
    return PoolConfigs({view.name: _config(view, verbose=verbose) for view in views})


@route("PUT", "/api/configs/pool", Action.POOL_UPDATE, Scope.BODY)
def put_configs(request: Visit, data: JSONBody[PutPools]) -> None:
    """Make pools, or replace what is configured for them; all of them, or none."""
    site, actor = caller(request)
    if not data.configs:
        raise Invalid("Send at least one pool in configs.")
    pools.put_pools(site, actor, data.configs, Note(data.description, tuple(data.tags)))


@route("POST", "/api/configs/pool", Action.POOL_CREATE, Scope.BODY, status=201)
def create_config(request: Visit, data: JSONBody[CreatePool]) -> dict[str, Any]:
    """Make a pool that is not there yet."""
    site, actor = caller(request)
    note = Note(data.description, tuple(data.tags))
    pools.create_pool(site, actor, data.name, data.configs, note)
    return pools.get_pool(site, actor, data.name).document


@route("GET", "/api/configs/pool/{pool:str}", Action.POOL_LIST)
def get_config(
    request: Visit, pool: FromPath[str], verbose: FromQuery[bool] = False
) -> dict[str, Any]:
    """One pool, or a subpool by its canonical name."""
    site, actor = caller(request)
    return _config(pools.get_pool(site, actor, pool), verbose=verbose)


@route("PUT", "/api/configs/pool/{pool:str}", Action.POOL_UPDATE, Scope.POOL)
def put_config(request: Visit, pool: FromPath[str], data: JSONBody[PutPool]) -> None:
    """Make a pool, or replace what is configured for it."""
    site, actor = caller(request)
    pools.put_pools(site, actor, {pool: data.configs}, Note(data.description, tuple(data.tags)))


@route("PATCH", "/api/configs/pool/{pool:str}", Action.POOL_UPDATE, Scope.POOL)
def patch_config(request: Visit, pool: FromPath[str], data: JSONBody[PatchPool]) -> dict[str, Any]:
    """Change some fields of a pool."""
    site, actor = caller(request)
    pools.patch_pool(site, actor, pool, data.configs_dict, Note(data.description, tuple(data.tags)))
    return pools.get_pool(site, actor, pool).document


@route("PUT", "/api/configs/pool/{pool:str}/rename", Action.POOL_UPDATE, Scope.POOL)
def rename_config(request: Visit, pool: FromPath[str], data: JSONBody[RenamePool]) -> None:
    """Give a pool another name; its workflows go with it."""
    site, actor = caller(request)
    note = Note(data.description, tuple(data.tags))
    pools.rename_pool(site, actor, pool, data.new_name, note)


@route("DELETE", "/api/configs/pool/{pool:str}", Action.POOL_DELETE, Scope.POOL)
def delete_config(request: Visit, pool: FromPath[str]) -> None:
    """Delete a pool that has no subpools and no workflows that are not over."""
    site, actor = caller(request)
    pools.delete_pool(site, actor, pool)


@route("GET", "/api/configs/pool/{pool:str}/platform", Action.POOL_LIST)
def list_platforms(request: Visit, pool: FromPath[str]) -> dict[str, Any]:
    """The platforms of a pool by name."""
    site, actor = caller(request)
    return pools.get_pool(site, actor, pool).document["platforms"]


@route("GET", _PLATFORM, Action.POOL_LIST)
def get_platform(request: Visit, pool: FromPath[str], platform: FromPath[str]) -> dict[str, Any]:
    """One platform of a pool."""
    platforms = list_platforms.fn(request, pool)
    if platform not in platforms:
        raise NotFound(f"Platform {platform} does not exist in pool {pool}!")
    return platforms[platform]


@route("PUT", _PLATFORM, Action.POOL_UPDATE, Scope.POOL)
def put_platform(
    request: Visit, pool: FromPath[str], platform: FromPath[str], data: JSONBody[PutPool]
) -> None:
    """Give a pool a platform, or replace it."""
    site, actor = caller(request)
    before = pools.get_pool(site, actor, pool).document["platforms"].get(platform) or {}
    changes = {"platforms": {platform: {**dict.fromkeys(before), **data.configs}}}
    pools.patch_pool(site, actor, pool, changes, Note(data.description, tuple(data.tags)))


@route("PUT", f"{_PLATFORM}/rename", Action.POOL_UPDATE, Scope.POOL)
def rename_platform(
    request: Visit, pool: FromPath[str], platform: FromPath[str], data: JSONBody[RenamePool]
) -> None:
    """Give a platform of a pool another name."""
    site, actor = caller(request)
    document = pools.get_pool(site, actor, pool).document
    if platform not in document["platforms"]:
        raise NotFound(f"Platform {platform} does not exist in pool {pool}!")
    if data.new_name in document["platforms"]:
        raise Conflict(f"Pool {pool} has a platform {data.new_name} already.")
    renamed = {platform: None, data.new_name: document["platforms"][platform]}
    changes: dict[str, Any] = {"platforms": renamed}
    if document["default_platform"] == platform:
        changes["default_platform"] = data.new_name
    pools.patch_pool(site, actor, pool, changes, Note(data.description, tuple(data.tags)))


def _minimal(document: dict[str, Any]) -> dict[str, Any]:
    shown = {key: document[key] for key in _MINIMAL if key in document}
    shown["platforms"] = {
        name: {key: platform[key] for key in _MINIMAL_PLATFORM}
        for name, platform in document["platforms"].items()
    }
    return shown


def _config(view: PoolView, *, verbose: bool) -> dict[str, Any]:
    document = view.document
    if verbose:
        document.update(
            parsed_resource_validations=[], parsed_pod_template={}, parsed_group_templates=[]
        )
    return document


def _row(row: PoolRow) -> dict[str, Any]:
    """Every key that older clients know, those of subpools, and what can really start."""
    document = _minimal(row.document)
    subpool = row.subpool
    document.update(
        resource_usage=_usage(row.usage),
        parent_pool=None if subpool is None else subpool.parent,
        subpool_name=None if subpool is None else subpool.subpool,
        subpool_state=None if subpool is None else subpool.state.value,
        quota_total=None if row.quota_total is None else str(row.quota_total),
        can_start=str(row.can_start),
        can_start_note=row.can_start_note,
        drain=msgspec.to_builtins(row.drain),
    )
    return document


def _usage(usage: Usage) -> ResourceUsage:
    return ResourceUsage(
        quota_used=str(usage.quota_used),
        quota_free=str(usage.quota_free),
        quota_limit=str(usage.quota_limit),
        total_usage=str(usage.total_usage),
        total_capacity=str(usage.total_capacity),
        total_free=str(usage.total_free),
    )


HANDLERS = (
    list_pools,
    pool_quotas,
    list_queues,
    list_configs,
    put_configs,
    create_config,
    get_config,
    put_config,
    patch_config,
    rename_config,
    delete_config,
    list_platforms,
    get_platform,
    put_platform,
    rename_platform,
)
