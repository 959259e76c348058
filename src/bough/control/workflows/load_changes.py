"""Cases are opened here, with everything locked, and written down, few statements for many.

Must not know what is changed about a case.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from bough.control.config.settings import read_workflow_settings
from bough.control.site import Site
from bough.control.workflows.workflow_changes import Case
from bough.model.subpool import Subpool
from bough.model.workflow import Group, Task, Workflow
from bough.store import pools as pool_store
from bough.store import records as record_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store


def open_case(site: Site, connection: sa.Connection, name: str) -> Case | None:
    """Lock a workflow, by identifier or uuid; `None`: there is none."""
    workflow = workflow_store.lock(connection, name)
    return None if workflow is None else _open(site, connection, [workflow])[0]


def open_cases(site: Site, connection: sa.Connection, uuids: Sequence[str]) -> list[Case]:
    """Lock workflows, always in the same order."""
    return _open(site, connection, workflow_store.lock_all(connection, uuids))


def write_cases(connection: sa.Connection, cases: Sequence[Case], now_ms: int) -> None:
    """Write down what has changed, a few statements for all of them."""
    task_store.update_tasks(connection, [task for case in cases for task in case.changed_tasks])
    task_store.insert_tasks(connection, [task for case in cases for task in case.new_tasks])
    task_store.update_groups(connection, [group for case in cases for group in case.changed_groups])
    workflow_store.update_all(connection, [case.workflow for case in cases if case.changed])
    record_store.add_events(connection, [event for case in cases for event in case.events()])
    errands = [errand for case in cases for errand in case.errands()]
    record_store.add_errands(connection, errands, now_ms)


def _open(site: Site, connection: sa.Connection, workflows: list[Workflow]) -> list[Case]:
    uuids = [workflow.uuid for workflow in workflows]
    groups: dict[str, list[Group]] = {}
    for group in task_store.groups_of(connection, uuids):
        groups.setdefault(group.workflow_uuid, []).append(group)
    tasks: dict[str, list[Task]] = {}
    for task in task_store.tasks_of(connection, uuids):
        tasks.setdefault(task.workflow_uuid, []).append(task)
    doors = {
        name: pool_store.find(connection, name)
        for name in sorted({workflow.pool for workflow in workflows})
    }
    grace_s = read_workflow_settings(connection).termination_grace_s
    now_ms = site.clock.now_ms()
    cases: list[Case] = []
    for workflow in workflows:
        found = doors[workflow.pool]
        subpool = found if isinstance(found, Subpool) else None
        pool = workflow.pool if subpool is None else subpool.parent
        cases.append(
            Case(
                workflow,
                groups.get(workflow.uuid, []),
                tasks.get(workflow.uuid, []),
                pool=pool,
                queue=site.leaf_queue(pool, None if subpool is None else subpool.subpool),
                now_ms=now_ms,
                grace_s=grace_s,
            )
        )
    return cases
