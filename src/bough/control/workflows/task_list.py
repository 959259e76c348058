"""Tasks of all workflows: list them, and add up what they hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from bough.control.people.access import authorise
from bough.control.site import Site
from bough.control.workflows.query import get_workflow
from bough.errors import NotFound
from bough.model.access import Action, Actor
from bough.model.workflow import Priority
from bough.store import pools as pool_store
from bough.store import task_search
from bough.store.task_search import Depth, TaskFilter, TaskRow

__all__ = ["Depth", "Held", "TaskFilter", "TaskRow", "get_task", "list_tasks", "sum_up", "waiting"]


class Held(msgspec.Struct, frozen=True):
    """What some tasks ask for together."""

    user: str
    pool: str
    priority: Priority
    #: `None` where those of several workflows are added up.
    workflow_id: str | None
    gpus: int
    cpu_milli: int
    memory_bytes: int
    storage_bytes: int


class _Key(NamedTuple):
    user: str
    pool: str
    priority: Priority
    workflow_id: str | None


def list_tasks(site: Site, actor: Actor, wanted: TaskFilter) -> list[TaskRow]:
    """Attempts of tasks, the newest first. A pool stands for itself alone."""
    authorise(actor, Action.TASK_LIST, names=site.role_names)
    with site.store.read() as connection:
        for pool in wanted.pools or ():
            if pool_store.find(connection, pool) is None:
                raise NotFound(f"Pool {pool} not found.")
        return task_search.search(connection, wanted)


def get_task(site: Site, actor: Actor, workflow: str, name: str) -> TaskRow:
    """The latest attempt of a task, in the archive too."""
    view = get_workflow(site, actor, workflow)
    for group in view.groups:
        for task in view.tasks[group.name]:
            if task.name == name:
                spec = next(each for each in group.spec.tasks if each.name == name)
                found = view.workflow
                return TaskRow(
                    task, spec, found.workflow_id, found.submitted_by, found.pool, found.priority
                )
    raise NotFound(f"Workflow {view.workflow.workflow_id} has no task {name[:60]}.")


def sum_up(rows: Iterable[TaskRow], *, by_workflow: bool) -> list[Held]:
    """Add up by user, pool and priority, or by workflow; in the order of their first task."""
    sums: dict[_Key, list[int]] = {}
    for row in rows:
        key = _Key(row.user, row.pool, row.priority, row.workflow_id if by_workflow else None)
        total = sums.setdefault(key, [0, 0, 0, 0])
        requests = row.spec.requests
        amounts = (row.task.gpus, requests.cpu_milli, requests.memory_bytes, row.spec.storage_bytes)
        for index, amount in enumerate(amounts):
            total[index] += amount
    return [Held(*key, *total) for key, total in sums.items()]


def waiting(site: Site, actor: Actor) -> list[Depth]:
    """How many workflows wait in each pool, for metrics."""
    authorise(actor, Action.METRICS_READ, names=site.role_names)
    with site.store.read() as connection:
        return task_search.depths(connection)
