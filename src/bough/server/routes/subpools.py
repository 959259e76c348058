"""Subpools: parts of a pool, with a quota and a state."""

from __future__ import annotations

from litestar import Response
from litestar.params import FromPath, FromQuery, JSONBody

from bough.api.common import Json
from bough.api.configs import ConfigHistory
from bough.api.pools import CreateSubpool, PoolDocument, SubpoolAnswer, SubpoolList
from bough.control.pools import subpools
from bough.model.access import Action
from bough.server.permissions import Scope
from bough.server.pool_documents import show_pool, subpool_answer
from bough.server.route_declaration import Visit, caller, route
from bough.server.workflow_documents import config_revision

_ALL = "/api/configs/pool/{pool:str}/subpool"
_ONE = "/api/configs/pool/{pool:str}/subpool/{subpool:str}"


@route("GET", _ALL, Action.SUBPOOL_READ, Scope.POOL)
def list_subpools(
    request: Visit, pool: FromPath[str], include_archived: FromQuery[bool] = False
) -> SubpoolList:
    """The subpools of a pool, sorted by name; archived ones only on request."""
    site, actor = caller(request)
    views = subpools.list_subpools(site, actor, pool, include_archived=include_archived)
    return SubpoolList([show_pool(view) for view in views])


@route("POST", _ALL, Action.SUBPOOL_CREATE, Scope.POOL, status=201)
def create_subpool(
    request: Visit,
    pool: FromPath[str],
    data: JSONBody[CreateSubpool],
    plan: FromQuery[bool] = False,
) -> Response[SubpoolAnswer]:
    """Create a subpool from part of a pool's quota, or reactivate an archived one.

    The answer names the workflows that cannot start any more, or only later. With `plan`, nothing
    is changed.
    """
    site, actor = caller(request)
    change = subpools.create_subpool(site, actor, pool, data.name, data.quota, plan=plan)
    return Response(subpool_answer(change), status_code=200 if plan else 201)


@route("GET", _ONE, Action.SUBPOOL_READ, Scope.POOL)
def get_subpool(request: Visit, pool: FromPath[str], subpool: FromPath[str]) -> PoolDocument:
    """One subpool in any state; while it is being deleted, `drain` lists what is unfinished."""
    site, actor = caller(request)
    return show_pool(subpools.get_subpool(site, actor, pool, subpool))


@route("PATCH", _ONE, Action.SUBPOOL_UPDATE, Scope.POOL)
def update_subpool(
    request: Visit,
    pool: FromPath[str],
    subpool: FromPath[str],
    data: JSONBody[dict[str, Json]],
    plan: FromQuery[bool] = False,
) -> SubpoolAnswer:
    """Change the quota of a subpool; a decrease stops no running workflow.

    The answer names the workflows that cannot start any more, or only later. With `plan`, nothing
    is changed.
    """
    site, actor = caller(request)
    return subpool_answer(subpools.update_subpool(site, actor, pool, subpool, data, plan=plan))


@route("DELETE", _ONE, Action.SUBPOOL_DELETE, Scope.POOL)
def delete_subpool(
    request: Visit, pool: FromPath[str], subpool: FromPath[str], plan: FromQuery[bool] = False
) -> SubpoolAnswer:
    """Delete a subpool: its quota returns to the pool at once; archived once it is empty.

    The answer names the workflows that cannot start any more, or only later. With `plan`, nothing
    is changed.
    """
    site, actor = caller(request)
    return subpool_answer(subpools.delete_subpool(site, actor, pool, subpool, plan=plan))


@route("GET", f"{_ONE}/history", Action.SUBPOOL_READ, Scope.POOL)
def subpool_history(request: Visit, pool: FromPath[str], subpool: FromPath[str]) -> ConfigHistory:
    """All changes of a subpool in order, including those before it was archived."""
    site, actor = caller(request)
    found = subpools.subpool_history(site, actor, pool, subpool)
    return ConfigHistory([config_revision(each) for each in found])


HANDLERS = (
    list_subpools,
    create_subpool,
    get_subpool,
    update_subpool,
    delete_subpool,
    subpool_history,
)
