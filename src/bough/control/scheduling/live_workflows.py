"""All unfinished workflows, kept in memory and in step with the store.

Only what has changed is read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import sqlalchemy as sa

from bough.model.change_record import EventKind
from bough.model.workflow import Group, Task, TaskStatus, Workflow
from bough.store import changed_subjects as change_store
from bough.store import pools as pool_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store
from bough.store.changed_subjects import ChangedSubject, Mark

#: What happens to a workflow; the subject is its identifier.
_OF_WORKFLOWS = (
    EventKind.WORKFLOW_SUBMITTED,
    EventKind.WORKFLOW_STATUS,
    EventKind.WORKFLOW_MOVED,
    EventKind.TASK_STATUS,
    EventKind.PREEMPTED,
)


class LiveGroup(msgspec.Struct, frozen=True):
    """A group that waits for its turn, or has its nodes, with what it is a part of."""

    workflow: Workflow
    group: Group
    #: The latest attempts, by name.
    tasks: tuple[Task, ...]


class LiveWorkflows:
    """The unfinished workflows as the store had them at the last look."""

    def __init__(self) -> None:
        #: By the group's uuid.
        self.groups: dict[str, LiveGroup] = {}
        self._groups: dict[str, tuple[str, ...]] = {}
        #: The identities of all pools, by name.
        self._pools: dict[str, str] = {}
        self._mark: Mark | None = None

    def refresh(self, connection: sa.Connection) -> frozenset[str] | None:
        """Look again; the groups that came, went or are not what they were.

        `None`: everything was read anew.
        """
        mark, changes = change_store.look(connection, self._mark)
        if changes is None or self._pools_moved(connection, changes):
            # A pool that was given another name takes its workflows along.
            self._read_all(connection)
            touched = None
        else:
            touched = self._read(connection, changes)
        self._mark = mark
        return touched

    def _pools_moved(self, connection: sa.Connection, changes: Iterable[ChangedSubject]) -> bool:
        """Whether a pool of these workflows was renamed or deleted, or another has its name."""
        if not any(each.kind is EventKind.POOL_CHANGED for each in changes):
            return False
        before, self._pools = self._pools, pool_store.identities(connection)
        used = {each.workflow.pool for each in self.groups.values()}
        return any(before.get(name) != self._pools.get(name) for name in used)

    def _read_all(self, connection: sa.Connection) -> None:
        self.groups.clear()
        self._groups.clear()
        self._pools = pool_store.identities(connection)
        self._enter(
            workflow_store.alive(connection),
            task_store.unfinished_groups(connection),
            task_store.tasks_of_unfinished_groups(connection),
        )

    def _read(self, connection: sa.Connection, changes: Iterable[ChangedSubject]) -> frozenset[str]:
        names = sorted({each.subject for each in changes if each.kind in _OF_WORKFLOWS})
        if not names:
            return frozenset()
        workflows = workflow_store.named(connection, names)
        touched: set[str] = set()
        for workflow in workflows:
            touched.update(self._groups.pop(workflow.uuid, ()))
        for uuid in touched:
            self.groups.pop(uuid, None)
        alive = [workflow for workflow in workflows if not workflow.status.finished]
        uuids = [workflow.uuid for workflow in alive]
        groups = task_store.groups_of(connection, uuids)
        touched.update(self._enter(alive, groups, task_store.tasks_of(connection, uuids)))
        return frozenset(touched)

    def _enter(
        self, workflows: Iterable[Workflow], groups: Iterable[Group], tasks: Sequence[Task]
    ) -> list[str]:
        """Add what stands; later attempts come later among the tasks."""
        by_uuid = {workflow.uuid: workflow for workflow in workflows}
        latest: dict[str, dict[str, Task]] = {}
        for task in tasks:
            latest.setdefault(task.group_uuid, {})[task.name] = task
        entered: list[str] = []
        for group in groups:
            workflow = by_uuid.get(group.workflow_uuid)
            if workflow is None or group.status.finished or group.status is TaskStatus.WAITING:
                continue
            members = tuple(latest.get(group.uuid, {}).values())
            self.groups[group.uuid] = LiveGroup(workflow, group, members)
            self._groups[workflow.uuid] = (*self._groups.get(workflow.uuid, ()), group.uuid)
            entered.append(group.uuid)
        return entered
