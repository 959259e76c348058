"""Cordoning and draining a node: it takes nothing new, and what is on it stays or ends.

And what no longer is there: nodes that are lost, backends that are gone.
"""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import NO_NOTE, Note, audit, node_happens
from bough.control.nodes import node_sync
from bough.control.nodes.backend_notes import forget_notes
from bough.control.nodes.node_list import find_node
from bough.control.people.access import authorise
from bough.control.pools import subpool_drain
from bough.control.pools.pool_setup import offline_reason
from bough.control.site import Site
from bough.control.workflows.lifecycle import DRAIN
from bough.control.workflows.load_changes import open_changes, write_changes
from bough.errors import Conflict, NotFound
from bough.model.access import Action, Actor
from bough.model.names import NodeId
from bough.model.pool import BackendRecord, OfferedNode
from bough.store import nodes as node_store
from bough.store import pools as pool_store
from bough.store import settings as setting_store
from bough.store import tasks as task_store
from bough.store.database import again_if_given_up


class Drained(msgspec.Struct, frozen=True):
    """A node that takes nothing new, and how many attempts leave it."""

    node: OfferedNode
    #: How many attempts were told to end, and how many stay until they end by themselves.
    told: int
    left: int


def set_cordoned(
    site: Site, actor: Actor, name: str, backend: str | None = None, *, cordoned: bool
) -> OfferedNode:
    """Cordon or uncordon a node; what runs goes on."""
    authorise(actor, Action.NODE_UPDATE, names=site.role_names)
    with site.store.write() as connection:
        setting_store.raise_version(connection)
        before = find_node(connection, name, backend)
        after = msgspec.structs.replace(before, cordoned=cordoned)
        node_store.put(connection, (after,))
        audit(connection, site, actor, Action.NODE_UPDATE, f"node/{before.id}", before, after)
        node_happens(connection, site, before.id, "cordoned" if cordoned else "uncordoned")
    site.wake()
    return after


def drain_node(
    site: Site, actor: Actor, name: str, backend: str | None = None, *, leave: bool = False
) -> Drained:
    """Cordon a node and end what is on it, which by default starts again elsewhere.

    `leave`: it stays until it ends by itself.
    """
    authorise(actor, Action.NODE_UPDATE, names=site.role_names)
    with site.store.write() as connection:
        # Before all else, so that no plan that still uses the node is applied.
        setting_store.raise_version(connection)
        before = find_node(connection, name, backend)
        node = msgspec.structs.replace(before, cordoned=True)
        node_store.put(connection, (node,))
        there = [
            task.attempt
            for task in task_store.holding(connection, node.backend, (node.name,))
            if task.releasing is None
        ]
        told = 0 if leave else _release(site, connection, node.id)
        drained = Drained(node, told, len(there) - told)
        audit(connection, site, actor, "node:Drain", f"node/{node.id}", before, drained)
        node_happens(connection, site, node.id, "drained")
    site.wake()
    return drained


class DeclaredLost(msgspec.Struct, frozen=True):
    """A machine that counts as dead, with all its nodes."""

    backend: str
    #: The machine and its folder; `None`: the node alone was declared lost.
    machine: str | None
    nodes: tuple[str, ...]
    #: How many attempts on them were lost.
    tasks: int


@again_if_given_up
def declare_lost(site: Site, actor: Actor, name: str, backend: str | None = None) -> DeclaredLost:
    """Count a node that does not answer as dead: what was on it is lost, and may start elsewhere.

    Where its backend belongs to one machine, all nodes of that machine are lost, and another
    machine may take its place. Should it come back, it first ends what it still runs.
    """
    authorise(actor, Action.NODE_UPDATE, names=site.role_names)
    with site.store.write() as connection:
        node = find_node(connection, name, backend)
        record = node_store.find_backend(connection, node.backend, lock=True)
        if record is None or record.fault is None:
            raise Conflict(
                f"Node {node.name} cannot be declared lost: backend {node.backend} answers.",
                hint="drain the node, and its work starts again elsewhere",
            )
        there = node_store.list_all(connection, node.backend) if record.machine else [node]
        node_sync.keep_cordoned(connection, there)
        setting_store.raise_version(connection)
        names = tuple(each.name for each in there)
        held = task_store.holding(connection, node.backend, names)
        lost = DeclaredLost(node.backend, record.place, names, len(held))
        audit(connection, site, actor, "node:DeclareLost", f"node/{node.id}", there, lost)
        _forget(site, connection, record, there)
        ended = node_sync.end_lost(site, connection, node.backend, names)
    for pool in sorted(ended):
        subpool_drain.check_drain(site, pool)
    site.wake()
    return lost


def remove_backend(site: Site, actor: Actor, name: str, note: Note = NO_NOTE) -> None:
    """Remove a backend that is gone, with its nodes. If it answers again, it comes back."""
    authorise(actor, Action.CONFIG_UPDATE, "config/backend", site.role_names)
    with site.store.write() as connection:
        forget_notes(connection, name)
        # Before all that follows, so that no plan that still uses its nodes is applied.
        setting_store.raise_version(connection)
        record = node_store.find_backend(connection, name, lock=True)
        if record is None:
            raise NotFound(f"Backend {name} not found.")
        _check_gone(site, connection, record)
        there = node_store.list_all(connection, name)
        node_sync.keep_cordoned(connection, there)
        node_store.remove_backend(connection, name)
        for each in there:
            node_happens(connection, site, each.id, "gone")
        before = {"backend": record, "nodes": [each.name for each in there]}
        subject = f"config/backend/{name}"
        audit(connection, site, actor, "config:Update", subject, before, {"removed": note})
    site.wake()


def _check_gone(site: Site, connection: sa.Connection, record: BackendRecord) -> None:
    name = record.name
    if offline_reason(name, {name: record}, site.clock.now_ms()) is None:
        raise Conflict(
            f"Backend {name} cannot be removed: it answers.",
            hint="start the server without it first",
        )
    for pool in pool_store.list_pools(connection):
        if pool.backend == name:
            raise Conflict(
                f"Backend {name} cannot be removed: pool {pool.name} uses it.",
                hint=f"name another: bough config set POOL --name {pool.name} backend=OTHER",
            )
    held = task_store.holding(connection, name)
    if held:
        raise Conflict(
            f"Backend {name} cannot be removed: a task is on its node {held[0].node}, of "
            f"{len(held)} in all.",
            hint=f"if they are lost: bough node declare-lost {held[0].node}",
        )


def _forget(
    site: Site, connection: sa.Connection, record: BackendRecord, nodes: list[OfferedNode]
) -> None:
    """Nodes are no longer there, and their machine is no longer that of its backend."""
    node_store.remove(connection, record.name, [each.name for each in nodes])
    for each in nodes:
        node_happens(connection, site, each.id, "declared lost")
    if record.machine is not None:
        node_store.put_speaker(connection, record.name, None, None, None, None)
        node_store.write_fault(
            connection, record.name, f"Machine {record.place} was declared lost."
        )


def _release(site: Site, connection: sa.Connection, node: NodeId) -> int:
    there = task_store.holding(connection, node.backend, (node.name,))
    changes = open_changes(site, connection, sorted({task.workflow_uuid for task in there}))
    told = 0
    for change in changes:
        for task in change.unfinished():
            if task.node_id == node and task.status.holds_node and task.releasing is None:
                change.release(task, DRAIN)
                told += 1
        change.settle()
    write_changes(connection, changes, site.clock.now_ms())
    return told
