"""What runs where, and on what: tasks across workflows, and nodes with what is used of them.

Must not know how a table is printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from bough.control.people.access import authorise
from bough.control.pools.pool_config import Estate, read_estate, uses
from bough.control.site import Site
from bough.errors import NotFound
from bough.model.access import Action, Actor
from bough.model.cluster import Resources
from bough.model.pool import Machine
from bough.model.workflow import Group, Task, TaskStatus, Workflow
from bough.store import pools as pool_store
from bough.store import tasks as task_store
from bough.store.tasks import TaskFilter


class TaskRow(msgspec.Struct, frozen=True):
    """A task with what it is part of."""

    task: Task
    workflow: Workflow
    #: What it asked for.
    requests: Resources
    storage_bytes: int


class Occupation(msgspec.Struct, frozen=True):
    """A node, who may use it, and what is used of it."""

    machine: Machine
    #: Top-level pools: how a pool is divided makes no difference to a node.
    pools: tuple[str, ...]
    gpus: int
    cpu_milli: int
    memory_bytes: int
    storage_bytes: int

    @property
    def kind(self) -> str:
        """Whether it is one pool's, several pools', or nobody's."""
        if not self.pools:
            return "UNUSED"
        return "RESERVED" if len(self.pools) == 1 else "SHARED"


def list_tasks(site: Site, actor: Actor, wanted: TaskFilter) -> list[TaskRow]:
    """The newest tasks that a filter lets through."""
    authorise(actor, Action.TASK_LIST, names=site.role_names)
    with site.store.read() as connection:
        for pool in wanted.pools or ():
            if pool_store.find(connection, pool) is None:
                raise NotFound(f"Pool {pool} not found.")
        found = task_store.search(connection, wanted)
    return [_row(*each) for each in found]


def list_occupations(
    site: Site, actor: Actor, names: Sequence[str] | None = None
) -> list[Occupation]:
    """Nodes with what is used of them: all, or those of some pools; a subpool has its pool's."""
    authorise(actor, Action.RESOURCE_LIST, names=site.role_names)
    with site.store.read() as connection:
        estate = read_estate(connection)
        statuses = (TaskStatus.INITIALIZING, TaskStatus.RUNNING)
        running = task_store.search(connection, TaskFilter(statuses=statuses, limit=None))
    rows = [_row(*each) for each in running]
    wanted = None if names is None else _top_level(estate, names)
    found = [_occupation(estate, machine, rows) for machine in estate.machines]
    return [each for each in found if wanted is None or not wanted.isdisjoint(each.pools)]


def _row(task: Task, workflow: Workflow, group: Group) -> TaskRow:
    spec = next(each for each in group.spec.tasks if each.name == task.name)
    return TaskRow(task, workflow, spec.requests, spec.storage_bytes)


def _top_level(estate: Estate, names: Sequence[str]) -> set[str]:
    parents = {each.name: each.parent for each in estate.subpools}
    known = {pool.name for pool in estate.pools} | set(parents)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise NotFound(f"Pools {', '.join(unknown)} not found")
    return {parents.get(name, name) for name in names}


def _occupation(estate: Estate, machine: Machine, rows: Iterable[TaskRow]) -> Occupation:
    here = [row for row in rows if row.task.node == machine.name]
    return Occupation(
        machine,
        tuple(pool.name for pool in estate.pools if uses(pool, machine)),
        sum(row.requests.gpus for row in here),
        sum(row.requests.cpu_milli for row in here),
        sum(row.requests.memory_bytes for row in here),
        sum(row.storage_bytes for row in here),
    )
