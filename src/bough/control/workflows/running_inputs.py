"""Lets a workflow that reads from running workflows wait for them instead of failing."""

from __future__ import annotations

import msgspec

from bough.control.site import Site
from bough.model.workflow import Predecessor, WorkflowSpec
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store


def wait_for_inputs(site: Site, spec: WorkflowSpec) -> WorkflowSpec:
    """The same workflow, made to start after those that have not produced its inputs yet.

    It does not matter how they end: what counts is whether the task it reads from completed, and
    that is checked when the reader starts.
    """
    wanted: dict[str, set[str]] = {}
    for group in spec.groups:
        for task in group.tasks:
            for each in task.launch.inputs if task.launch is not None else ():
                if each.workflow is not None and each.task is not None:
                    wanted.setdefault(each.workflow, set()).add(each.task)
    if not wanted:
        return spec
    known = {each.workflow for each in spec.after}
    with site.store.read() as connection:
        found = workflow_store.named(connection, sorted(set(wanted) - known))
        alive = {each.uuid: each.workflow_id for each in found if not each.status.finished}
        names = {task for tasks in wanted.values() for task in tasks}
        completed = task_store.completed(connection, sorted(alive), names) if alive else []
    left = {(alive[each.workflow_uuid], each.name) for each in completed}
    more = tuple(
        Predecessor(name)
        for name in sorted(alive.values())
        if any((name, task) not in left for task in wanted[name])
    )
    return msgspec.structs.replace(spec, after=(*spec.after, *more)) if more else spec
