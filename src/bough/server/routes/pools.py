"""Pools: what there is, what it has and uses, and how it is configured."""

from __future__ import annotations

import msgspec
from litestar.params import FromPath, FromQuery, JSONBody

from bough.api.common import Json
from bough.api.configs import PatchConfigs, PutConfigs
from bough.api.pools import (
    CreatePool,
    NodeSetNames,
    NodeSetUsage,
    PlatformConfig,
    PoolAnswer,
    PoolDocument,
    PoolDocuments,
    PoolList,
    PoolName,
    PoolQuotas,
    PoolsAnswer,
    QueueUsage,
    RenamePool,
)
from bough.control.pools import pools, quotas
from bough.errors import Conflict, Invalid, NotFound
from bough.model.access import Action
from bough.model.pool import Platform, Pool
from bough.server.answer_cache import keep_until_change
from bough.server.loop_view import LoopView
from bough.server.permissions import Scope
from bough.server.pool_documents import (
    platform_config,
    pool_answer,
    pool_summary,
    pool_usage,
    pools_answer,
    resource_usage,
    show_pool,
)
from bough.server.route_declaration import Visit, caller, route
from bough.server.values import read_note

_PLATFORM = "/api/configs/pool/{pool:str}/platform/{platform:str}"


@route("GET", "/api/pool", Action.POOL_LIST)
def list_pools(request: Visit) -> PoolList:
    """All pools and subpools, with what users need in order to submit."""
    site, actor = caller(request)
    views = pools.list_pools(site, actor, subpools=True)
    names = NodeSetNames([PoolName(view.name) for view in views])
    return PoolList({view.name: pool_summary(view) for view in views}, [names])


@route("GET", "/api/pool_quota", Action.POOL_LIST)
def pool_quotas(
    request: Visit, pools: FromQuery[list[str] | None] = None, all_pools: FromQuery[bool] = False
) -> PoolQuotas:
    """Quota and usage of pools. A pool comes with its subpools, a subpool alone.

    `can_start` is how many GPUs of HIGH and NORMAL can really start now, which may be less than is
    left of a quota; `drain` is what keeps a subpool open that is being deleted.
    """
    site, actor = caller(request)
    names = None if all_pools or not pools else pools
    keep_until_change(request)
    return _SHOWN.show(quotas.pool_quotas(site, actor, names))


class _Shown:
    """The answer that was last made: while nothing changes, all ask for the same."""

    def __init__(self) -> None:
        self._last: tuple[quotas.QuotaReport, PoolQuotas] | None = None

    def show(self, report: quotas.QuotaReport) -> PoolQuotas:
        """A report as it is sent."""
        last = self._last
        if last is None or last[0] is not report:
            sets = [NodeSetUsage(list(map(pool_usage, each.rows))) for each in report.node_sets]
            last = self._last = (report, PoolQuotas(sets, resource_usage(report.total)))
        return last[1]


_SHOWN = _Shown()


@route("GET", "/api/queues", Action.QUEUE_LIST)
def list_queues(request: Visit) -> list[QueueUsage]:
    """The whole quota tree, including the hidden leaf queues, for administrators."""
    site, actor = caller(request)
    engine: LoopView = request.app.state.engine
    return [
        QueueUsage(
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
            share=each.share,
            deserved=each.deserved,
            fair=each.fair,
        )
        for each in quotas.list_queues(site, actor, engine.standings)
    ]


# Configuration


@route("GET", "/api/configs/pool", Action.POOL_LIST)
def list_configs(
    request: Visit, verbose: FromQuery[bool] = False, backend: FromQuery[str | None] = None
) -> PoolDocuments:
    """The configuration of all pools, without subpools, which have their own route."""
    site, actor = caller(request)
    views = pools.list_pools(site, actor, backend)
    return PoolDocuments({view.name: show_pool(view, verbose=verbose) for view in views})


@route("PUT", "/api/configs/pool", Action.POOL_UPDATE, Scope.BODY)
def put_configs(
    request: Visit, data: JSONBody[PutConfigs], plan: FromQuery[bool] = False
) -> PoolsAnswer:
    """Create pools or replace their configuration: all of them, or none.

    The answer names the workflows that cannot start any more, or only later. With `plan`, nothing
    is changed.
    """
    site, actor = caller(request)
    if not data.configs:
        raise Invalid("Send at least one pool in configs.")
    return pools_answer(pools.put_pools(site, actor, data.configs, read_note(data), plan=plan))


@route("POST", "/api/configs/pool", Action.POOL_CREATE, Scope.BODY, status=201)
def create_config(request: Visit, data: JSONBody[CreatePool]) -> PoolDocument:
    """Create a pool."""
    site, actor = caller(request)
    pools.create_pool(site, actor, data.name, data.configs, read_note(data))
    return show_pool(pools.get_pool(site, actor, data.name))


@route("GET", "/api/configs/pool/{pool:str}", Action.POOL_LIST)
def get_config(
    request: Visit, pool: FromPath[str], verbose: FromQuery[bool] = False
) -> PoolDocument:
    """One pool, or a subpool by its canonical name."""
    site, actor = caller(request)
    return show_pool(pools.get_pool(site, actor, pool), verbose=verbose)


@route("PUT", "/api/configs/pool/{pool:str}", Action.POOL_UPDATE, Scope.POOL)
def put_config(
    request: Visit,
    pool: FromPath[str],
    data: JSONBody[PutConfigs],
    plan: FromQuery[bool] = False,
) -> PoolAnswer:
    """Create a pool, or replace its configuration.

    The answer names the workflows that cannot start any more, or only later. With `plan`, nothing
    is changed.
    """
    site, actor = caller(request)
    note = read_note(data)
    return pool_answer(pools.put_pools(site, actor, {pool: data.configs}, note, plan=plan))


@route("PATCH", "/api/configs/pool/{pool:str}", Action.POOL_UPDATE, Scope.POOL)
def patch_config(
    request: Visit,
    pool: FromPath[str],
    data: JSONBody[PatchConfigs],
    plan: FromQuery[bool] = False,
) -> PoolAnswer:
    """Change some fields of a pool.

    The answer names the workflows that cannot start any more, or only later. With `plan`, nothing
    is changed.
    """
    site, actor = caller(request)
    note = read_note(data)
    return pool_answer(pools.patch_pool(site, actor, pool, data.configs_dict, note, plan=plan))


@route("PUT", "/api/configs/pool/{pool:str}/rename", Action.POOL_UPDATE, Scope.POOL)
def rename_config(request: Visit, pool: FromPath[str], data: JSONBody[RenamePool]) -> None:
    """Rename a pool; its workflows stay in it."""
    site, actor = caller(request)
    pools.rename_pool(site, actor, pool, data.new_name, read_note(data))


@route("DELETE", "/api/configs/pool/{pool:str}", Action.POOL_DELETE, Scope.POOL)
def delete_config(request: Visit, pool: FromPath[str]) -> None:
    """Delete a pool; it must have no subpools and no unfinished workflows."""
    site, actor = caller(request)
    pools.delete_pool(site, actor, pool)


@route("GET", "/api/configs/pool/{pool:str}/platform", Action.POOL_LIST)
def list_platforms(request: Visit, pool: FromPath[str]) -> dict[str, PlatformConfig]:
    """The platforms of a pool, by name."""
    return {name: platform_config(each) for name, each in _pool(request, pool).platforms.items()}


@route("GET", _PLATFORM, Action.POOL_LIST)
def get_platform(request: Visit, pool: FromPath[str], platform: FromPath[str]) -> PlatformConfig:
    """One platform of a pool."""
    return platform_config(_platform(_pool(request, pool), platform))


@route("PUT", _PLATFORM, Action.POOL_UPDATE, Scope.POOL)
def put_platform(
    request: Visit, pool: FromPath[str], platform: FromPath[str], data: JSONBody[PutConfigs]
) -> None:
    """Add a platform to a pool, or replace it."""
    site, actor = caller(request)
    before = _pool(request, pool).platforms.get(platform)
    # What is not sent is removed.
    removed = {} if before is None else dict.fromkeys(before.__struct_fields__)
    changes = {"platforms": {platform: {**removed, **data.configs}}}
    pools.patch_pool(site, actor, pool, changes, read_note(data))


@route("PUT", f"{_PLATFORM}/rename", Action.POOL_UPDATE, Scope.POOL)
def rename_platform(
    request: Visit, pool: FromPath[str], platform: FromPath[str], data: JSONBody[RenamePool]
) -> None:
    """Rename a platform of a pool."""
    site, actor = caller(request)
    found = _pool(request, pool)
    config = msgspec.to_builtins(_platform(found, platform))
    if data.new_name in found.platforms:
        raise Conflict(f"Pool {pool} has a platform {data.new_name} already.")
    changes: dict[str, Json] = {"platforms": {platform: None, data.new_name: config}}
    if found.default_platform == platform:
        changes["default_platform"] = data.new_name
    pools.patch_pool(site, actor, pool, changes, read_note(data))


def _pool(request: Visit, name: str) -> Pool:
    site, actor = caller(request)
    return pools.get_pool(site, actor, name).pool


def _platform(pool: Pool, name: str) -> Platform:
    if name not in pool.platforms:
        raise NotFound(f"Platform {name} does not exist in pool {pool.name}!")
    return pool.platforms[name]


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
