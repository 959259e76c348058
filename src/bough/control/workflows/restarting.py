"""Restarting a failed workflow: it is submitted again, without what was completed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bough.control.people.access import authorise, resource_of
from bough.control.site import Site
from bough.control.workflows.apps import app_of
from bough.control.workflows.archive import missing
from bough.control.workflows.query import read_element_spec
from bough.control.workflows.read_submission import check_uses
from bough.control.workflows.submission import Accepted, submit
from bough.errors import Invalid
from bough.model.access import Action, Actor
from bough.model.workflow import GroupSpec, TaskSpec, TaskStatus, WorkflowSpec
from bough.store import pools as pool_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store


def restart(site: Site, actor: Actor, workflow_id: str, pool: str | None = None) -> Accepted:
    """Submit a failed workflow again, without the groups that were completed.

    What the others read of those is read from the workflow in which they were completed.
    """
    with site.store.read() as connection:
        workflow = workflow_store.find(connection, workflow_id)
        if workflow is None:
            raise missing(connection, workflow_id)
        found = pool_store.find(connection, workflow.pool)
        resource = resource_of(found or workflow.pool)
        authorise(actor, Action.WORKFLOW_READ, resource, site.role_names)
        groups = task_store.groups_of(connection, (workflow.uuid,))
        text = workflow_store.spec_text(connection, workflow.uuid) or ""
        template = workflow_store.spec_text(connection, workflow.uuid, template=True)
        if workflow.array_id is not None:
            text = read_element_spec(connection, workflow)
    if not workflow.status.failed or not groups:
        raise Invalid(
            f"Workflow {workflow.workflow_id} is {workflow.status}; only a workflow that has run "
            "and failed can be restarted."
        )
    done = [group.spec for group in groups if group.status is TaskStatus.COMPLETED]
    names = {each.name for each in done}
    left = [group.spec for group in groups if group.name not in names]
    spec = WorkflowSpec(
        name=workflow.name,
        groups=tuple(_without(each, done, workflow.workflow_id) for each in left),
        labels=workflow.labels,
        exec_timeout_s=workflow.exec_timeout_s,
        queue_timeout_s=workflow.queue_timeout_s,
        text=text,
        template=template,
        app=app_of(workflow),
    )
    # The user who restarts it need not be the one who submitted it.
    check_uses(site, actor, spec)
    return submit(
        site, actor, pool or workflow.pool, spec, workflow.priority, restarts=workflow.workflow_id
    )


def _without(spec: GroupSpec, done: Sequence[GroupSpec], workflow_id: str) -> GroupSpec:
    """A group that waits for none that is done, and reads what those wrote where they wrote it."""
    groups = {group.name for group in done}
    tasks = {task.name for group in done for task in group.tasks}
    return msgspec.structs.replace(
        spec,
        upstream=tuple(name for name in spec.upstream if name not in groups),
        tasks=tuple(_reading_from(task, tasks, workflow_id) for task in spec.tasks),
    )


def _reading_from(task: TaskSpec, done: set[str], workflow_id: str) -> TaskSpec:
    task_template = task.launch
    if task_template is None:
        return task
    # What already is of another workflow stays so, through any number of restarts.
    inputs = tuple(
        msgspec.structs.replace(each, workflow=workflow_id)
        if each.task in done and each.workflow is None
        else each
        for each in task_template.inputs
    )
    return msgspec.structs.replace(
        task, launch=msgspec.structs.replace(task_template, inputs=inputs)
    )
