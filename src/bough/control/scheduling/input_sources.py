"""Which attempts left what tasks read: of each input that is a task, the attempt that completed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import sqlalchemy as sa

from bough.model.task_template import InputSpec
from bough.model.workflow import Group, TaskSpec, TaskStatus, Workflow
from bough.store import archive as archive_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store

#: By the identifier of a workflow and the name of a task.
Sources = Mapping[tuple[str, str], str]
NO_SOURCES: Sources = MappingProxyType({})


def read_sources(
    connection: sa.Connection, groups: Iterable[Group], workflows: Mapping[str, Workflow]
) -> Sources:
    """The attempts that left what these groups read; nothing is asked where they read nothing."""
    wanted = {
        (each.workflow or workflows[group.workflow_uuid].workflow_id, each.task)
        for group in groups
        for task in group.spec.tasks
        for each in _inputs(task)
        if each.task is not None
    }
    if not wanted:
        return NO_SOURCES
    identifiers = {each.uuid: each.workflow_id for each in workflows.values()}
    others = {name for name, _ in wanted} - set(identifiers.values())
    found = workflow_store.named(connection, sorted(others)) if others else []
    identifiers |= {each.uuid: each.workflow_id for each in found}
    names = {workflow for workflow, _ in wanted}
    uuids = sorted(uuid for uuid, name in identifiers.items() if name in names)
    completed = task_store.completed(connection, uuids, {task for _, task in wanted})
    left = {(identifiers[each.workflow_uuid], each.name): each.attempt for each in completed}
    return _archived(connection, sorted(others - {each.workflow_id for each in found})) | left


def sources_of(sources: Sources, workflow: Workflow, task: TaskSpec) -> tuple[str, ...]:
    """The attempt that left each input of a task; empty where none did."""
    return tuple(
        sources.get((each.workflow or workflow.workflow_id, each.task or ""), "")
        for each in _inputs(task)
    )


def _archived(connection: sa.Connection, names: Sequence[str]) -> dict[tuple[str, str], str]:
    """The attempts of archived workflows that completed, the last of each task."""
    return {
        (past.workflow.workflow_id, task.name): task.attempt
        for past in (archive_store.named(connection, names) if names else ())
        for task in past.tasks
        if task.status is TaskStatus.COMPLETED
    }


def _inputs(task: TaskSpec) -> tuple[InputSpec, ...]:
    return () if task.launch is None else task.launch.inputs
