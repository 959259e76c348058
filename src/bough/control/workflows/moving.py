"""Moving waiting work to another pool or priority; it keeps its submit time.

It is checked as a submission to the new pool, so nothing comes in that could not be submitted
there, and nothing is lost by having waited.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import audit, happen
from bough.control.people.access import authorise, resource_of
from bough.control.pools import subpool_drain
from bough.control.site import Site
from bough.control.workflows import admission
from bough.control.workflows.admission import TargetPool
from bough.control.workflows.archive import missing
from bough.control.workflows.draft_rows import cut_timeouts
from bough.control.workflows.lifecycle import limit_of
from bough.control.workflows.target_pool import enter, find_target, hold_setup
from bough.errors import Conflict, Invalid, NotFound
from bough.model.access import Action, Actor
from bough.model.change_record import EventKind
from bough.model.workflow import Group, Priority, Task, Workflow, WorkflowSpec
from bough.store import pools as pool_store
from bough.store import settings as setting_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store


def move_workflow(
    site: Site, actor: Actor, name: str, pool: str | None = None, priority: Priority | None = None
) -> Workflow:
    """Move a workflow to another pool or priority while it holds no GPUs."""
    if pool is None and priority is None:
        raise Invalid("Say where the workflow goes (pool), or its new priority, or both.")
    with site.store.write() as connection:
        known = _require(site, connection, actor, name)
        target = _door(site, connection, actor, known, pool)
        # A plan that was made before this knows it in its old queue.
        setting_store.raise_counter(connection, setting_store.VERSION)
        before = workflow_store.lock(connection, known.uuid)
        if before is None:
            raise NotFound(f"Workflow {name} not found.")
        groups = task_store.groups_of(connection, (before.uuid,))
        _check_waits(before, task_store.tasks_of(connection, (before.uuid,)), groups, target)
        after = _moved(before, target, priority or before.priority)
        left = [group for group in groups if not group.status.finished]
        spec = WorkflowSpec(after.name, tuple(group.spec for group in left))
        admission.refuse(target, spec, after.priority)
        _write(site, connection, actor, target, before, after, left)
    if before.pool != after.pool:
        subpool_drain.check_drain(site, before.pool)
    site.wake()
    return after


def _require(site: Site, connection: sa.Connection, actor: Actor, name: str) -> Workflow:
    authorise(actor, Action.WORKFLOW_LIST, names=site.role_names)
    workflow = workflow_store.find(connection, name)
    if workflow is None:
        raise missing(connection, name)
    found = pool_store.find(connection, workflow.pool)
    resource = resource_of(found or workflow.pool)
    authorise(actor, Action.WORKFLOW_UPDATE, resource, site.role_names)
    return workflow


def _door(
    site: Site, connection: sa.Connection, actor: Actor, workflow: Workflow, pool: str | None
) -> TargetPool:
    """Its new target; a workflow that stays in its pool is not checked against the pool's state."""
    if pool is not None and pool != workflow.pool:
        return enter(site, actor, hold_setup(connection, pool), pool)
    return find_target(hold_setup(connection, workflow.pool), workflow.pool)


def _check_waits(
    workflow: Workflow, tasks: Iterable[Task], groups: Iterable[Group], target: TargetPool
) -> None:
    if workflow.status.finished:
        raise Invalid(f"Workflow {workflow.workflow_id} is already finished.")
    names = {group.uuid: group.name for group in groups}
    for task in tasks:
        if not task.status.holds_node:
            continue
        group = names[task.group_uuid]
        if task.gpus:
            raise Conflict(
                f"Workflow {workflow.workflow_id} cannot be moved: its group {group} holds GPUs. "
                "Only a workflow that waits can be moved; cancel it and submit it again."
            )
        if target.pool.backend != workflow.backend:
            raise Conflict(
                f"Workflow {workflow.workflow_id} cannot be moved to pool {target.name}, which has "
                f"other nodes: its group {group} runs."
            )


def _moved(before: Workflow, target: TargetPool, priority: Priority) -> Workflow:
    moved = msgspec.structs.replace(
        before, pool=target.name, backend=target.pool.backend, priority=priority
    )
    return cut_timeouts(moved, target.pool)


def _write(
    site: Site,
    connection: sa.Connection,
    actor: Actor,
    target: TargetPool,
    before: Workflow,
    after: Workflow,
    groups: Iterable[Group],
) -> None:
    queue = site.leaf_queue(
        target.pool.name, None if target.subpool is None else target.subpool.subpool
    )
    workflow_store.update(connection, after)
    task_store.update_groups(connection, [_requeued(group, after, queue) for group in groups])
    was, now = ({"pool": each.pool, "priority": each.priority} for each in (before, after))
    subject = f"workflow/{after.workflow_id}"
    audit(connection, site, actor, Action.WORKFLOW_UPDATE, subject, was, now)
    message = f"moved from {before.pool}, {before.priority} to {after.pool}, {after.priority}"
    kind = EventKind.WORKFLOW_MOVED
    happen(
        connection, site, kind, after.workflow_id, pool=target.pool.name, message=message, data=now
    )


def _requeued(group: Group, workflow: Workflow, queue: str) -> Group:
    """A group in its new queue, without the reasons and nominations of the old one."""
    limit_s = limit_of(workflow, group.status)
    due_ms = group.due_ms
    if limit_s is not None and group.since_ms is not None:
        due_ms = group.since_ms + limit_s * 1_000
    return msgspec.structs.replace(
        group, queue=queue, nominated=False, wait_cause=None, due_ms=due_ms
    )
