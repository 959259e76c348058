"""Nodes with what they have, what is held there, and which pools may use them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import sqlalchemy as sa

from bough.control.people.access import authorise
from bough.control.pools.pool_setup import PoolSetup, offline_reason, read_pool_setup, uses
from bough.control.site import Site
from bough.errors import Conflict, NotFound
from bough.model.access import Action, Actor
from bough.model.names import NodeId
from bough.model.pool import BackendNotes, OfferedNode, Pool
from bough.model.subpool import Subpool
from bough.model.workflow import HOLDING
from bough.store import nodes as node_store
from bough.store import pools as pool_store
from bough.store import settings as setting_store
from bough.store import task_search
from bough.store.task_search import TaskFilter


class Amounts(msgspec.Struct, frozen=True):
    """What a node has, or what is held there."""

    gpus: int = 0
    cpu_milli: int = 0
    memory_bytes: int = 0
    storage_bytes: int = 0


class NodeView(msgspec.Struct, frozen=True):
    """A node as users see it."""

    node: OfferedNode
    #: The pools that may use it, each with the platform names under which they do. Only pools that
    #: were asked for; a subpool stands for itself here.
    pools: dict[str, tuple[str, ...]]
    #: How many top-level pools may use it; subpools are no sharing.
    sharing: int
    used: Amounts = Amounts()
    #: How many tasks are on it.
    tasks: int = 0
    #: Why nothing can be started on it, although it is not cordoned.
    offline: str | None = None


class BackendView(msgspec.Struct, frozen=True):
    """A backend, when it last answered, and what it has."""

    name: str
    heard_ms: int
    #: Why its pools are OFFLINE; `None`: they are not.
    offline: str | None
    nodes: int
    gpus: int
    #: What administrators say about it.
    notes: BackendNotes = BackendNotes()


def list_nodes(
    site: Site,
    actor: Actor,
    pools: Sequence[str] | None = None,
    platforms: Sequence[str] | None = None,
) -> list[NodeView]:
    """All nodes by name, or those of some pools and platforms."""
    authorise(actor, Action.RESOURCE_LIST, names=site.role_names)
    with site.store.read() as connection:
        wanted: dict[str, str] | None = None
        if pools is not None:
            wanted = {}
            for name in pools:
                found = pool_store.find(connection, name)
                if found is None:
                    raise NotFound(f"Pool {name} not found.")
                wanted[name] = found.parent if isinstance(found, Subpool) else found.name
        config = read_pool_setup(connection)
        held = task_search.search(connection, TaskFilter(statuses=HOLDING, limit=None))
    used = _held_by_node(held)
    tasks = Counter(row.task.node_id for row in held)
    views = [
        msgspec.structs.replace(
            _view(node, config, wanted, platforms),
            used=used.get(node.id, Amounts()),
            tasks=tasks[node.id],
            offline=config.faults.get(node.backend) or config.closed(node) or None,
        )
        for node in config.nodes
    ]
    return [each for each in views if each.pools or wanted is None]


def get_node(site: Site, actor: Actor, name: str, backend: str | None = None) -> NodeView:
    """One node, with all pools that may use it."""
    views = list_nodes(site, actor)
    with site.store.read() as connection:
        wanted = find_node(connection, name, backend).id
    for view in views:
        if view.node.id == wanted:
            return view
    raise NotFound(f"Node {name} not found.")


def find_node(connection: sa.Connection, name: str, backend: str | None = None) -> OfferedNode:
    """A node by its name; where several backends have one of that name, by its backend, too."""
    found = node_store.named(connection, name)
    if backend is not None:
        found = [each for each in found if each.backend == backend]
    if not found:
        where = "" if backend is None else f" of backend {backend}"
        raise NotFound(f"Node {name}{where} not found.")
    if len(found) > 1:
        named = " or ".join(str(each.id) for each in found)
        raise Conflict(f"Several backends have a node {name}: say {named}.")
    return found[0]


def offline_backends(site: Site) -> list[str]:
    """The backends on whose nodes nothing can be started now."""
    with site.store.read() as connection:
        return sorted(read_pool_setup(connection).faults)


def list_backends(site: Site, actor: Actor) -> list[BackendView]:
    """All backends that have ever answered, by name."""
    authorise(actor, Action.CONFIG_READ, "config/backend", site.role_names)
    with site.store.read() as connection:
        known = node_store.backends(connection)
        nodes = node_store.list_all(connection)
        notes = setting_store.backend_notes(connection)
    now_ms = site.clock.now_ms()
    return [
        BackendView(
            name,
            record.last_heartbeat_ms or 0,
            offline_reason(name, known, now_ms),
            sum(each.backend == name for each in nodes),
            sum(each.gpus for each in nodes if each.backend == name),
            notes.get(name, BackendNotes()),
        )
        for name, record in known.items()
    ]


def _view(
    node: OfferedNode,
    config: PoolSetup,
    wanted: dict[str, str] | None,
    platforms: Sequence[str] | None,
) -> NodeView:
    by_name = {pool.name: pool for pool in config.pools}
    sharing = [name for name, pool in by_name.items() if uses(pool, node)]
    asked = {name: name for name in sharing} if wanted is None else wanted
    shown: dict[str, tuple[str, ...]] = {}
    for name, parent in asked.items():
        if parent in sharing:
            found = _platforms(by_name[parent], node)
            chosen = tuple(each for each in found if platforms is None or each in platforms)
            if chosen:
                shown[name] = chosen
    return NodeView(node, shown, len(sharing))


def _platforms(pool: Pool, node: OfferedNode) -> tuple[str, ...]:
    """The platforms of a pool that a node belongs to; a pool without any has one for all."""
    if not pool.platforms:
        return (node.platform or "default",)
    if node.platform is None:
        return tuple(sorted(pool.platforms))
    return (node.platform,) if node.platform in pool.platforms else ()


def _held_by_node(rows: list[task_search.TaskRow]) -> dict[NodeId, Amounts]:
    held: dict[NodeId, Amounts] = {}
    for row in rows:
        node = row.task.node_id
        if node is None:
            continue
        before = held.get(node, Amounts())
        requests = row.spec.requests
        held[node] = Amounts(
            before.gpus + row.task.gpus,
            before.cpu_milli + requests.cpu_milli,
            before.memory_bytes + requests.memory_bytes,
            before.storage_bytes + row.spec.storage_bytes,
        )
    return held
