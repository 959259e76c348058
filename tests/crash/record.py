"""Everything that a server has written down, read at rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa

from bough.model.change_record import StoredEvent
from bough.model.pool import Pool
from bough.model.subpool import Subpool
from bough.model.workflow import Group, Task, Workflow
from bough.store import Store, event_order
from bough.store import pools as pool_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store
from bough.store.schema import OUTBOX

_MANY = 1_000_000


class Record(NamedTuple):
    """The database at one moment."""

    #: By identifier.
    workflows: Mapping[str, Workflow]
    #: By the uuid of their workflow.
    groups: Mapping[str, list[Group]]
    tasks: Mapping[str, list[Task]]
    #: In the order in which they were written, by what they are about.
    events: Mapping[str, list[StoredEvent]]
    pools: list[Pool]
    subpools: list[Subpool]
    #: What backends are still to be told.
    messages: int

    @property
    def attempts(self) -> dict[str, tuple[Workflow, Task]]:
        """Every attempt of every task, by its identity."""
        owners = {each.uuid: each for each in self.workflows.values()}
        return {
            task.attempt: (owners[uuid], task) for uuid, each in self.tasks.items() for task in each
        }


def read_record(database: str) -> Record:
    """Read all of a database."""
    store = Store.open(database)
    try:
        with store.read() as connection:
            return _read(connection)
    finally:
        store.close()


def _read(connection: sa.Connection) -> Record:
    found = workflow_store.search(connection, workflow_store.Filter(limit=_MANY))
    uuids = [each.uuid for each in found]
    groups: dict[str, list[Group]] = {uuid: [] for uuid in uuids}
    tasks: dict[str, list[Task]] = {uuid: [] for uuid in uuids}
    for start in range(0, len(uuids), 500):
        part = uuids[start : start + 500]
        for group in task_store.groups_of(connection, part):
            groups[group.workflow_uuid].append(group)
        for task in task_store.tasks_of(connection, part):
            tasks[task.workflow_uuid].append(task)
    events: dict[str, list[StoredEvent]] = {}
    for event in event_order.events_after(connection, 0, limit=_MANY):
        events.setdefault(event.subject, []).append(event)
    return Record(
        workflows={each.workflow_id: each for each in found},
        groups=groups,
        tasks=tasks,
        events=events,
        pools=pool_store.list_pools(connection),
        subpools=pool_store.list_subpools(connection),
        messages=connection.execute(sa.select(sa.func.count()).select_from(OUTBOX)).scalar_one(),
    )
