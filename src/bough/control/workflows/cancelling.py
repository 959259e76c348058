"""Cancelling a workflow: its tasks are told to end, and who may do that for others.

What a role may do with a workflow in a subpool follows from the pool.
"""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import audit
from bough.control.people.access import allows, authorise, resource_of
from bough.control.pools import subpool_drain
from bough.control.pools.pool_setup import offline_reason
from bough.control.site import Site
from bough.control.workflows.lifecycle import CANCEL
from bough.control.workflows.load_changes import open_change, write_changes
from bough.control.workflows.query import require_workflow
from bough.control.workflows.workflow_changes import WorkflowChange
from bough.errors import Forbidden, Invalid, NotFound
from bough.model.access import Action, Actor
from bough.model.pool import CancelRule
from bough.model.subpool import Subpool
from bough.model.transitions import TaskEvent
from bough.model.workflow import Task, Workflow
from bough.store import nodes as node_store
from bough.store import pools as pool_store

#: The longest message of a cancellation, in characters.
LONGEST_MESSAGE = 2_000


def cancel(
    site: Site, actor: Actor, name: str, *, message: str = "", force: bool = False
) -> Workflow:
    """Cancel a workflow. What is on a node is told to end, by force at once; it counts until then.

    By force, what was on a lost node or an absent backend is cancelled at once.
    """
    workflow = _cancel(site, actor, name, one_line(message), force=force)
    if workflow.status.finished:
        subpool_drain.check_drain(site, workflow.pool)
    site.wake()
    return workflow


def _cancel(site: Site, actor: Actor, name: str, message: str, *, force: bool) -> Workflow:
    with site.store.write() as connection:
        wanted = require_workflow(site, connection, actor, name, Action.WORKFLOW_CANCEL)
        told = (wanted.pool, wanted.submitted_by, wanted.workflow_id)
        authorise_cancel(site, connection, actor, *told)
        change = open_change(site, connection, name)
        if change is None:
            raise NotFound(f"Workflow {name} not found.")
        before = change.workflow
        if before.status.finished:
            if force:
                return before
            raise Invalid(f"Workflow {before.workflow_id} is already finished.")
        cancel_change(site, connection, change, actor.name, message, force=force)
        write_changes(connection, [change], change.now_ms)
        audit(
            connection,
            site,
            actor,
            Action.WORKFLOW_CANCEL,
            f"workflow/{before.workflow_id}",
            {"status": before.status},
            {"status": change.workflow.status, "message": message},
        )
        return change.workflow


def cancel_change(
    site: Site,
    connection: sa.Connection,
    change: WorkflowChange,
    by: str,
    message: str,
    *,
    force: bool = False,
) -> None:
    """Cancel a workflow that is open for changes."""
    text = f"Task was canceled by user: {by}. {message}".rstrip()
    change.put_workflow(msgspec.structs.replace(change.workflow, cancelled_by=by))
    for task in change.unfinished():
        if task.status.holds_node:
            change.release(task, CANCEL, text, at_once=force)
        if not task.status.holds_node or (force and _is_away(site, connection, change, task)):
            change.end(change.task(task.attempt) or task, TaskEvent.CANCEL, text)
    change.settle()


def authorise_cancel(
    site: Site, connection: sa.Connection, actor: Actor, name: str, owner: str, workflow_id: str
) -> None:
    """Refuse unless the actor may cancel it; a pool may let only admins cancel for others."""
    found = pool_store.find(connection, name)
    authorise(actor, Action.WORKFLOW_CANCEL, resource_of(found or name), site.role_names)
    pool = pool_store.find_pool(connection, found.parent) if isinstance(found, Subpool) else found
    if pool is None or pool.cancel is CancelRule.ANY or owner == actor.name:
        return
    # Those who may divide a pool are its admins.
    if not allows(actor, Action.SUBPOOL_UPDATE, resource_of(pool), site.role_names):
        raise Forbidden(
            f"Workflow {workflow_id} was submitted by {owner}: users of "
            f"pool {pool.name} can cancel their own workflows, and its admins all of them."
        )


def one_line(message: str) -> str:
    """A message in one line, without control characters."""
    if len(message) > LONGEST_MESSAGE:
        raise Invalid(
            f"The message has {len(message)} characters; at most {LONGEST_MESSAGE} are possible."
        )
    shown = "".join(each if each.isprintable() else " " for each in message)
    return " ".join(shown.split())


def _is_away(site: Site, connection: sa.Connection, change: WorkflowChange, task: Task) -> bool:
    """Whether no backend can say any more what became of an attempt."""
    backend = task.backend or change.workflow.backend
    now_ms, backends = site.clock.now_ms(), node_store.backends(connection)
    nodes = {node.name for node in node_store.list_all(connection, backend)}
    return task.node not in nodes or offline_reason(backend, backends, now_ms) is not None
