"""Pools, subpools, cohorts and queues of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bough.api.common import Json
from bough.api.configs import ConfigHistory, ConfigRevision, PatchConfigs, PutConfigs
from bough.api.kube_answers import TreeExport
from bough.api.pools import (
    CohortAnswer,
    CohortConfig,
    CreatePool,
    CreateSubpool,
    PoolAnswer,
    PoolDocument,
    PoolDocuments,
    PoolList,
    PoolQuotas,
    QueueUsage,
    RenamePool,
    SubpoolAnswer,
    SubpoolList,
)
from bough.client.addresses import given, path_of
from bough.client.transport import Transport

#: Spelled out here, because a subject's own `list` hides the type of that name.
Names = list[str]
PoolConfigList = list[PoolDocument]
RevisionList = list[ConfigRevision]
CohortList = list[CohortConfig]
QueueList = list[QueueUsage]


class Pools:
    """Top-level pools."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def quotas(self, pools: Sequence[str] = ()) -> PoolQuotas:
        """What pools have, use and have left; all, or some with their subpools."""
        query = {"all_pools": not pools, **given(pools=list(pools))}
        return self._transport.get(PoolQuotas, path_of("pool_quota"), query)

    def names(self) -> Names:
        """The names of all pools, subpools among them."""
        return list(self._transport.get(PoolList, path_of("pool")).pools)

    def list(self, *, verbose: bool = False, backend: str | None = None) -> dict[str, PoolDocument]:
        """What is configured, by name."""
        query = given(verbose=verbose or None, backend=backend)
        return self._transport.get(PoolDocuments, path_of("configs", "pool"), query).pools

    def get(self, name: str) -> PoolDocument:
        """One pool, or a subpool by its canonical name."""
        return self._transport.get(PoolDocument, path_of("configs", "pool", name))

    def create(self, name: str, config: Mapping[str, Json], description: str = "") -> PoolDocument:
        """Create a pool."""
        body = CreatePool(name, dict(config), description)
        return self._transport.send(PoolDocument, "POST", path_of("configs", "pool"), body)

    def put(
        self, name: str, config: Mapping[str, Json], description: str = "", *, plan: bool = False
    ) -> PoolAnswer:
        """Create a pool, or replace all that is configured for it; answers as `update` does."""
        body = PutConfigs(dict(config), description)
        path, query = path_of("configs", "pool", name), given(plan=plan or None)
        return self._transport.send(PoolAnswer, "PUT", path, body, query)

    def update(
        self, name: str, changes: Mapping[str, Json], description: str = "", *, plan: bool = False
    ) -> PoolAnswer:
        """Change some fields; objects are merged, `None` removes.

        The answer names the workflows that cannot start any more, or only later; with `plan`, a
        change is only tried.
        """
        body = PatchConfigs(dict(changes), description)
        path, query = path_of("configs", "pool", name), given(plan=plan or None)
        return self._transport.send(PoolAnswer, "PATCH", path, body, query)

    def rename(self, name: str, new_name: str) -> None:
        """Rename a pool; its workflows move with it."""
        path = path_of("configs", "pool", name, "rename")
        self._transport.send(None, "PUT", path, RenamePool(new_name))

    def delete(self, name: str) -> None:
        """Remove a pool that has neither subpools nor unfinished workflows."""
        self._transport.send(None, "DELETE", path_of("configs", "pool", name))


class Subpools:
    """Parts of pools with a quota of their own.

    The answer to a change names the workflows that cannot start any more, or only later; with
    `plan`, a change is only tried.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, parent: str, *, include_archived: bool = False) -> PoolConfigList:
        """The subpools of a pool, by name."""
        query = given(include_archived=include_archived or None)
        path = path_of("configs", "pool", parent, "subpool")
        return self._transport.get(SubpoolList, path, query).subpools

    def get(self, parent: str, name: str) -> PoolDocument:
        """One subpool, whatever its state."""
        return self._transport.get(PoolDocument, _subpool(parent, name))

    def create(self, parent: str, name: str, quota: float, *, plan: bool = False) -> SubpoolAnswer:
        """Give a part of a pool to a new subpool, or to one that was archived."""
        path = path_of("configs", "pool", parent, "subpool")
        body = CreateSubpool(name, quota)
        return self._transport.send(SubpoolAnswer, "POST", path, body, given(plan=plan or None))

    def update(self, parent: str, name: str, quota: float, *, plan: bool = False) -> SubpoolAnswer:
        """Change the quota. What runs keeps running, also above it."""
        path, query = _subpool(parent, name), given(plan=plan or None)
        return self._transport.send(SubpoolAnswer, "PATCH", path, {"quota": quota}, query)

    def delete(self, parent: str, name: str, *, plan: bool = False) -> SubpoolAnswer:
        """Give the quota back at once; the subpool is archived when nothing is left in it."""
        path, query = _subpool(parent, name), given(plan=plan or None)
        return self._transport.send(SubpoolAnswer, "DELETE", path, query=query)

    def history(self, parent: str, name: str) -> RevisionList:
        """All changes of it, in order."""
        return self._transport.get(ConfigHistory, f"{_subpool(parent, name)}/history").configs


class Cohorts:
    """The tree above the pools. With `plan`, a change is only tried, and its effects told."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> CohortList:
        """All cohorts, by name."""
        return self._transport.get(CohortList, path_of("configs", "cohort"))

    def get(self, name: str) -> CohortConfig:
        """One cohort."""
        return self._transport.get(CohortConfig, path_of("configs", "cohort", name))

    def create(self, name: str, fields: Mapping[str, Json], *, plan: bool = False) -> CohortAnswer:
        """Create a cohort."""
        path, query = path_of("configs", "cohort"), given(plan=plan or None)
        return self._transport.send(CohortAnswer, "POST", path, {"name": name, **fields}, query)

    def update(self, name: str, fields: Mapping[str, Json], *, plan: bool = False) -> CohortAnswer:
        """Change some fields of a cohort; its parent is one of them."""
        path, query = path_of("configs", "cohort", name), given(plan=plan or None)
        return self._transport.send(CohortAnswer, "PATCH", path, fields, query)

    def move(self, name: str, parent: str | None, *, plan: bool = False) -> CohortAnswer:
        """Hang a cohort elsewhere; `None`: directly below the node above all."""
        return self.update(name, {"parent": parent}, plan=plan)

    def delete(self, name: str, *, plan: bool = False) -> CohortAnswer:
        """Delete a cohort."""
        path, query = path_of("configs", "cohort", name), given(plan=plan or None)
        return self._transport.send(CohortAnswer, "DELETE", path, query=query)


class Queues:
    """The quota tree as it is inside, for administrators."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> QueueList:
        """Every node, parents before children."""
        return self._transport.get(QueueList, path_of("queues"))

    def export(self, system: str, namespace: str = "default") -> TreeExport:
        """The tree as objects of `kueue` or `kai`; LocalQueues of Kueue are in the namespace."""
        path = path_of("kube", "export", system)
        return self._transport.get(TreeExport, path, {"namespace": namespace})


def _subpool(parent: str, name: str) -> str:
    return path_of("configs", "pool", parent, "subpool", name)
