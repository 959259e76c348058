"""Pools, subpools, cohorts, queues and nodes of a server. Must not know HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bough.client.transport import Transport, given, path_of

if TYPE_CHECKING:
    from bough.client.types import (
        Cohort,
        CohortChange,
        CohortList,
        Names,
        Pool,
        PoolList,
        PoolQuotas,
        QueueList,
        RevisionList,
        SubpoolChange,
    )


class Pools:
    """Top-level pools."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def quotas(self, pools: Sequence[str] = ()) -> PoolQuotas:
        """What pools have, use and have left; all, or some with their subpools."""
        query = {"all_pools": not pools, **given(pools=list(pools))}
        return self._transport.get(path_of("pool_quota"), query)

    def names(self) -> Names:
        """The names of all pools, subpools among them."""
        return list(self._transport.get(path_of("pool"))["pools"])

    def list(self, *, verbose: bool = False, backend: str | None = None) -> dict[str, Pool]:
        """What is configured, by name."""
        query = given(verbose=verbose or None, backend=backend)
        return self._transport.get(path_of("configs", "pool"), query)["pools"]

    def get(self, name: str) -> Pool:
        """One pool, or a subpool by its canonical name."""
        return self._transport.get(path_of("configs", "pool", name))

    def create(self, name: str, config: Mapping[str, Any], description: str = "") -> Any:
        """Make a pool that is not there yet."""
        body = {"name": name, "configs": dict(config), **given(description=description)}
        return self._transport.send("POST", path_of("configs", "pool"), body)

    def put(self, name: str, config: Mapping[str, Any], description: str = "") -> Any:
        """Make a pool, or replace all that is configured for it."""
        body = {"configs": dict(config), **given(description=description)}
        return self._transport.send("PUT", path_of("configs", "pool", name), body)

    def update(self, name: str, changes: Mapping[str, Any], description: str = "") -> Any:
        """Change some fields; objects are merged, `None` removes."""
        body = {"configs_dict": dict(changes), **given(description=description)}
        return self._transport.send("PATCH", path_of("configs", "pool", name), body)

    def rename(self, name: str, new_name: str) -> Any:
        """Give a pool another name; its workflows go with it."""
        path = path_of("configs", "pool", name, "rename")
        return self._transport.send("PUT", path, {"new_name": new_name})

    def delete(self, name: str, description: str = "") -> Any:
        """Remove a pool that has neither subpools nor unfinished workflows."""
        path = path_of("configs", "pool", name)
        return self._transport.send("DELETE", path, given(description=description))


class Subpools:
    """Parts of pools with a quota of their own.

    The answer to a change names the workflows that cannot start any more, or only later; with
    `plan`, a change is only tried.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, parent: str, *, include_archived: bool = False) -> PoolList:
        """The subpools of a pool, by name."""
        query = given(include_archived=include_archived or None)
        answer = self._transport.get(path_of("configs", "pool", parent, "subpool"), query)
        return _listed(answer, "subpools")

    def get(self, parent: str, name: str) -> Pool:
        """One subpool, whatever its state."""
        return self._transport.get(_subpool(parent, name))

    def create(
        self, parent: str, name: str, quota: float, description: str = "", *, plan: bool = False
    ) -> SubpoolChange:
        """Give a part of a pool to a new subpool, or to one that was archived."""
        path = path_of("configs", "pool", parent, "subpool")
        body = {"name": name, "quota": quota, **given(description=description)}
        return self._transport.send("POST", path, body, given(plan=plan or None))

    def update(self, parent: str, name: str, quota: float, *, plan: bool = False) -> SubpoolChange:
        """Change the quota. What runs goes on, also above it."""
        query = given(plan=plan or None)
        return self._transport.send("PATCH", _subpool(parent, name), {"quota": quota}, query)

    def delete(self, parent: str, name: str, *, plan: bool = False) -> SubpoolChange:
        """Give the quota back at once; the subpool is archived when nothing is left in it."""
        query = given(plan=plan or None)
        return self._transport.send("DELETE", _subpool(parent, name), None, query)

    def history(self, parent: str, name: str) -> RevisionList:
        """Everything that was ever changed about it, in order."""
        answer = self._transport.get(f"{_subpool(parent, name)}/history")
        return _listed(answer, "configs")


class Cohorts:
    """The tree above the pools. With `plan`, a change is only tried, and its effects told."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> CohortList:
        """All cohorts, by name."""
        return _listed(self._transport.get(path_of("configs", "cohort")), "cohorts")

    def get(self, name: str) -> Cohort:
        """One cohort."""
        return self._transport.get(path_of("configs", "cohort", name))

    def create(self, name: str, fields: Mapping[str, Any], *, plan: bool = False) -> CohortChange:
        """Declare a cohort that is not there yet."""
        body = {"name": name, **fields}
        query = given(plan=plan or None)
        return self._transport.send("POST", path_of("configs", "cohort"), body, query)

    def update(self, name: str, fields: Mapping[str, Any], *, plan: bool = False) -> CohortChange:
        """Change some fields of a cohort; its parent is one of them."""
        query = given(plan=plan or None)
        return self._transport.send("PATCH", path_of("configs", "cohort", name), fields, query)

    def move(self, name: str, parent: str | None, *, plan: bool = False) -> CohortChange:
        """Hang a cohort elsewhere; `None`: directly below the node above all."""
        return self.update(name, {"parent": parent}, plan=plan)

    def delete(self, name: str, *, plan: bool = False) -> CohortChange:
        """Take the declaration of a cohort back."""
        query = given(plan=plan or None)
        return self._transport.send("DELETE", path_of("configs", "cohort", name), None, query)


class Queues:
    """The quota tree as it is inside, for administrators."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> QueueList:
        """Every node, parents before children."""
        return _listed(self._transport.get(path_of("queues")), "queues")


class Resources:
    """Nodes."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, pools: Sequence[str] = (), platforms: Sequence[str] = ()) -> Any:
        """Nodes with what they have and what is used; of all pools, or of some."""
        query = {
            "all_pools": not pools,
            **given(pools=list(pools), platforms=list(platforms)),
        }
        return self._transport.get(path_of("resources"), query)

    def get(self, node: str) -> Any:
        """One node."""
        return self._transport.get(path_of("resources", node))


class Nodes:
    """Nodes as those see them who keep them running."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Any:
        """All nodes: whether they take work, what they have, and what is used of it."""
        return self._transport.get(path_of("node"))

    def cordon(self, name: str) -> Any:
        """Let nothing new onto a node; what runs goes on."""
        return self._transport.send("POST", path_of("node", name, "cordon"))

    def uncordon(self, name: str) -> Any:
        """Let work onto a node again."""
        return self._transport.send("POST", path_of("node", name, "uncordon"))

    def drain(self, name: str, *, leave: bool = False) -> Any:
        """Empty a node: what runs is moved elsewhere or, with `leave`, runs to its end."""
        query = given(leave=leave or None)
        return self._transport.send("POST", path_of("node", name, "drain"), None, query)


def _subpool(parent: str, name: str) -> str:
    return path_of("configs", "pool", parent, "subpool", name)


def _listed(answer: Any, key: str) -> Any:
    """The list of an answer, which may be wrapped in an object."""
    return answer[key] if isinstance(answer, dict) else answer
