"""The rows of a submission, before anything is stored."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from bough.control.fields import read_duration_s
from bough.control.site import Site
from bough.control.workflows.admission import TargetPool
from bough.control.workflows.lifecycle import limit_of
from bough.model.access import Actor
from bough.model.pool import Pool
from bough.model.settings import WorkflowSettings
from bough.model.transitions import TaskEvent, next_status
from bough.model.workflow import (
    Group,
    GroupSpec,
    Priority,
    Task,
    Workflow,
    WorkflowSpec,
    WorkflowStatus,
)

Timeout = TypeVar("Timeout", int, int | None)


def draft_workflow(
    site: Site,
    number: int,
    actor: Actor,
    target: TargetPool,
    spec: WorkflowSpec,
    priority: Priority,
    settings: WorkflowSettings,
) -> Workflow:
    """The record of a workflow that comes in, under a number of its name."""
    pool = target.pool
    return Workflow(
        uuid=site.ids.uuid(),
        workflow_id=_identifier(spec.name, number),
        name=spec.name,
        number=number,
        submitted_by=actor.name,
        pool=target.name,
        backend=pool.backend,
        priority=priority,
        status=WorkflowStatus.PENDING,
        submitted_ms=site.clock.now_ms(),
        labels=spec.labels,
        app_uuid=None if spec.app is None else spec.app.uuid,
        app_version=None if spec.app is None else spec.app.version,
        exec_timeout_s=_timeout(
            spec.exec_timeout_s,
            (pool.default_exec_timeout, settings.default_exec_timeout_s),
            pool.max_exec_timeout,
        ),
        queue_timeout_s=_timeout(
            spec.queue_timeout_s,
            (pool.default_queue_timeout, settings.default_queue_timeout_s),
            pool.max_queue_timeout,
        ),
    )


def with_number(workflow: Workflow, number: int) -> Workflow:
    """The record of a workflow that was drafted before its number was drawn."""
    identifier = _identifier(workflow.name, number)
    return msgspec.structs.replace(workflow, number=number, workflow_id=identifier)


def _identifier(name: str, number: int) -> str:
    return f"{name}-{number}"


def cut_timeouts(workflow: Workflow, pool: Pool) -> Workflow:
    """A workflow that comes to a pool from another one, with no longer timeouts than allowed."""
    return msgspec.structs.replace(
        workflow,
        exec_timeout_s=_at_most(workflow.exec_timeout_s, pool.max_exec_timeout),
        queue_timeout_s=_at_most(workflow.queue_timeout_s, pool.max_queue_timeout),
    )


def draft_group(
    site: Site,
    workflow: Workflow,
    spec: GroupSpec,
    position: int,
    queue: str,
    *,
    held: bool = False,
) -> Group:
    """The record of one of its groups, which waits in a queue or for the groups before it.

    If held, the whole workflow waits for others.
    """
    held = held or bool(spec.upstream)
    event = TaskEvent.HOLD_BACK if held else TaskEvent.QUEUE
    status = next_status(None, event)
    limit_s = limit_of(workflow, status)
    since_ms = workflow.submitted_ms
    return Group(
        uuid=site.ids.uuid(),
        workflow_uuid=workflow.uuid,
        name=spec.name,
        position=position,
        queue=queue,
        status=status,
        spec=spec,
        gpus=spec.gpus,
        remaining_upstream=spec.upstream,
        queued_ms=None if held else since_ms,
        since_ms=since_ms,
        due_ms=None if limit_s is None else since_ms + limit_s * 1_000,
    )


def draft_tasks(site: Site, group: Group) -> list[Task]:
    """The first attempts of the tasks of a group."""
    lone = len(group.spec.tasks) == 1
    return [
        Task(
            uuid=site.ids.uuid(),
            workflow_uuid=group.workflow_uuid,
            group_uuid=group.uuid,
            name=spec.name,
            retry_id=0,
            status=group.status,
            gpus=spec.requests.gpus,
            lead=spec.lead or lone,
            queued_ms=group.queued_ms,
        )
        for spec in group.spec.tasks
    ]


def _timeout(asked: int | None, defaults: tuple[str, int], most: str) -> int:
    """The requested timeout, else the pool's default, else the server's.

    At most the pool's maximum.
    """
    by_pool, by_all = defaults
    timeout = asked
    if timeout is None:
        timeout = read_duration_s("timeout", by_pool) if by_pool else by_all
    return _at_most(timeout, most)


def _at_most(timeout: Timeout, most: str) -> Timeout:
    if timeout is None or not most:
        return timeout
    return min(timeout, read_duration_s("timeout", most))
