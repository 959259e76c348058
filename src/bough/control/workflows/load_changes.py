"""Loads and locks workflows for changes, and writes the changes: few statements for many."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from bough.control.config.settings import read_workflow_settings
from bough.control.site import Site
from bough.control.workflows.workflow_changes import WorkflowChange
from bough.model.subpool import Subpool
from bough.model.workflow import Group, Task, Workflow
from bough.store import change_records as record_store
from bough.store import pools as pool_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store


def open_change(site: Site, connection: sa.Connection, name: str) -> WorkflowChange | None:
    """Lock a workflow, by identifier or uuid; `None`: there is none."""
    workflow = workflow_store.lock(connection, name)
    return None if workflow is None else _open(site, connection, [workflow])[0]


def open_changes(
    site: Site, connection: sa.Connection, uuids: Sequence[str]
) -> list[WorkflowChange]:
    """Lock workflows, always in the same order."""
    return _open(site, connection, workflow_store.lock_all(connection, uuids))


def open_groups(
    site: Site,
    connection: sa.Connection,
    groups: Sequence[tuple[Group, str]],
    *,
    grace_s: int,
) -> list[WorkflowChange]:
    """Lock the workflows of groups, each with its top-level pool, and load nothing else of them.

    Only tasks of these groups can be changed, and nothing can be settled.
    """
    of_workflow: dict[str, list[Group]] = {}
    for group, _ in groups:
        of_workflow.setdefault(group.workflow_uuid, []).append(group)
    pools = {group.workflow_uuid: pool for group, pool in groups}
    workflows = workflow_store.lock_all(connection, sorted(of_workflow))
    tasks: dict[str, list[Task]] = {}
    for task in task_store.tasks_of_groups(connection, sorted(group.uuid for group, _ in groups)):
        tasks.setdefault(task.workflow_uuid, []).append(task)
    return [
        WorkflowChange(
            workflow,
            of_workflow[workflow.uuid],
            tasks.get(workflow.uuid, []),
            pool=pools[workflow.uuid],
            queue="",
            now_ms=site.clock.now_ms(),
            grace_s=grace_s,
        )
        for workflow in workflows
    ]


def write_changes(
    connection: sa.Connection, changes: Sequence[WorkflowChange], now_ms: int
) -> None:
    """Write what has changed, a few statements for all of them."""
    workflow_store.update_all(connection, [change.workflow for change in changes if change.changed])
    task_store.update_tasks(
        connection, [task for change in changes for task in change.changed_tasks]
    )
    task_store.insert_tasks(connection, [task for change in changes for task in change.new_tasks])
    task_store.update_groups(
        connection, [group for change in changes for group in change.changed_groups]
    )
    record_store.add_events(connection, [event for change in changes for event in change.events()])
    messages = [message for change in changes for message in change.messages()]
    record_store.add_outbox(connection, messages, now_ms)


def _open(site: Site, connection: sa.Connection, workflows: list[Workflow]) -> list[WorkflowChange]:
    uuids = [workflow.uuid for workflow in workflows]
    groups: dict[str, list[Group]] = {}
    for group in task_store.groups_of(connection, uuids):
        groups.setdefault(group.workflow_uuid, []).append(group)
    tasks: dict[str, list[Task]] = {}
    for task in task_store.tasks_of(connection, uuids):
        tasks.setdefault(task.workflow_uuid, []).append(task)
    pools = {
        name: pool_store.find(connection, name)
        for name in sorted({workflow.pool for workflow in workflows})
    }
    grace_s = read_workflow_settings(connection).termination_grace_s
    now_ms = site.clock.now_ms()
    changes: list[WorkflowChange] = []
    for workflow in workflows:
        found = pools[workflow.pool]
        subpool = found if isinstance(found, Subpool) else None
        pool = workflow.pool if subpool is None else subpool.parent
        changes.append(
            WorkflowChange(
                workflow,
                groups.get(workflow.uuid, []),
                tasks.get(workflow.uuid, []),
                pool=pool,
                queue=site.leaf_queue(pool, None if subpool is None else subpool.subpool),
                now_ms=now_ms,
                grace_s=grace_s,
            )
        )
    return changes
