"""One workflow with its groups and tasks, open for changes within a transaction.

Changes are made to tasks; `settle` draws the consequences (group, downstream groups, workflow), and
`write_cases` writes down what differs. Must not know who makes the change, nor why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import sqlalchemy as sa

from bough.control.lifecycle import LEAD, group_status, workflow_status
from bough.control.site import Site
from bough.model.backend import Stop
from bough.model.record import Errand, EventKind, StoredEvent
from bough.model.subpool import Subpool
from bough.model.workflow import (
    ExitCode,
    Group,
    Task,
    TaskStatus,
    Workflow,
)
from bough.store import pools as pool_store
from bough.store import records as record_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store

STOP = "stop"
START = "start"


class Case:
    """A workflow that is locked and being changed."""

    def __init__(
        self,
        workflow: Workflow,
        groups: Iterable[Group],
        tasks: Iterable[Task],
        *,
        pool: str,
        queue: str,
        now_ms: int,
    ) -> None:
        self.now_ms = now_ms
        self._before = workflow
        self.workflow = workflow
        #: The top-level pool, and the leaf that new attempts wait in.
        self.pool = pool
        self.queue = queue
        self.groups = {group.uuid: group for group in groups}
        #: All attempts; later ones replace earlier ones in `latest`.
        self._tasks = {task.attempt: task for task in tasks}
        self._changed: dict[str, Task] = {}
        self._new: dict[str, Task] = {}
        self._changed_groups: dict[str, Group] = {}
        self._stops: list[tuple[str, str]] = []

    # Looking

    def task(self, attempt: str) -> Task | None:
        """An attempt as it is now."""
        return self._tasks.get(attempt)

    def latest(self, group: Group) -> list[Task]:
        """The latest attempt of every task of a group."""
        found: dict[str, Task] = {}
        for task in self._tasks.values():
            if task.group_uuid == group.uuid:
                known = found.get(task.name)
                if known is None or known.retry_id < task.retry_id:
                    found[task.name] = task
        return [found[spec.name] for spec in group.spec.tasks if spec.name in found]

    def attempts(self, task: Task) -> list[Task]:
        """Every attempt of the same task."""
        return [each for each in self._tasks.values() if each.uuid == task.uuid]

    def unfinished(self) -> list[Task]:
        """Attempts that are not over."""
        return [task for task in self._tasks.values() if not task.status.finished]

    # Changing

    def put(self, task: Task) -> None:
        """Replace an attempt by what it is now."""
        if self._tasks[task.attempt] != task:
            self._tasks[task.attempt] = task
            if task.attempt in self._new:
                self._new[task.attempt] = task
            else:
                self._changed[task.attempt] = task

    def put_group(self, group: Group) -> None:
        """Replace a group by what it is now."""
        if self.groups[group.uuid] != group:
            self.groups[group.uuid] = group
            self._changed_groups[group.uuid] = group

    def put_workflow(self, workflow: Workflow) -> None:
        """Replace the record itself."""
        self.workflow = workflow

    def end(
        self, task: Task, status: TaskStatus, message: str = "", exit_code: int | None = None
    ) -> None:
        """An attempt is over."""
        self.put(
            msgspec.structs.replace(
                task,
                status=status,
                exit_code=task.exit_code if exit_code is None else exit_code,
                failure_message=message or task.failure_message,
                releasing=None,
                ended_ms=self.now_ms,
            )
        )

    def retry(self, task: Task) -> None:
        """Queue another attempt; its group goes to the leaf of today, wherever it ran before."""
        again = Task(
            uuid=task.uuid,
            workflow_uuid=task.workflow_uuid,
            group_uuid=task.group_uuid,
            name=task.name,
            retry_id=task.retry_id + 1,
            status=TaskStatus.SCHEDULING,
            gpus=task.gpus,
            lead=task.lead,
            queued_ms=self.now_ms,
        )
        self._tasks[again.attempt] = again
        self._new[again.attempt] = again
        self.put_group(msgspec.structs.replace(self.groups[task.group_uuid], queue=self.queue))

    def release(self, task: Task, reason: str, message: str = "") -> None:
        """Tell an attempt on a node to end; it holds its GPUs until it is gone."""
        if task.releasing is None:
            self.put(
                msgspec.structs.replace(
                    task, releasing=reason, failure_message=message or task.failure_message
                )
            )
            self._stops.append((task.attempt, reason))

    # Consequences

    def settle(self) -> None:
        """Draw all consequences; `write_cases` writes them down."""
        self._follow_leads()
        for group in sorted(self.groups.values(), key=lambda each: each.position):
            self._settle_group(self.groups[group.uuid])
        self._settle_workflow()

    def _follow_leads(self) -> None:
        """Where the lead of a group is over for good, the others end as it did."""
        for group in self.groups.values():
            latest = self.latest(group)
            leads = [task for task in latest if task.lead]
            if not leads or not all(task.status.finished for task in leads):
                continue
            for task in latest:
                if task.status.holds_node:
                    self.release(task, LEAD)
                elif not task.status.finished:
                    self.end(task, leads[0].status, "The lead of the group has ended.")

    def _settle_group(self, group: Group) -> None:
        if group.status.finished:
            return
        self._follow_upstream(group)
        group = self.groups[group.uuid]
        latest = self.latest(group)
        status = group_status(group.spec, latest)
        started = min((task.started_ms for task in latest if task.started_ms), default=None)
        scheduled = min((task.scheduled_ms for task in latest if task.scheduled_ms), default=None)
        failures = [task.failure_message for task in latest if task.failure_message]
        waits = status in (TaskStatus.SCHEDULING, TaskStatus.WAITING)
        self.put_group(
            msgspec.structs.replace(
                group,
                status=status,
                started_ms=group.started_ms or started,
                scheduled_ms=group.scheduled_ms or scheduled,
                ended_ms=self.now_ms if status.finished else None,
                failure_message=failures[0]
                if failures and status.finished and status is not TaskStatus.COMPLETED
                else group.failure_message,
                wait_reason=group.wait_reason if waits else None,
                wait_message=group.wait_message if waits else None,
            )
        )

    def _follow_upstream(self, group: Group) -> None:
        """A group waits for those before it, and fails with them."""
        if not group.remaining_upstream:
            return
        by_name = {each.name: each for each in self.groups.values()}
        before = [by_name[name] for name in group.remaining_upstream if name in by_name]
        waiting = [task for task in self.latest(group) if task.status is TaskStatus.WAITING]
        failed = [
            each
            for each in before
            if each.status.finished and each.status is not TaskStatus.COMPLETED
        ]
        if failed:
            text = f"Group {failed[0].name} before it is {failed[0].status}."
            for task in waiting:
                self.end(task, TaskStatus.FAILED_UPSTREAM, text, ExitCode.UPSTREAM)
        remaining = tuple(each.name for each in before if not each.status.finished)
        released = group if remaining else msgspec.structs.replace(group, queued_ms=self.now_ms)
        self.put_group(msgspec.structs.replace(released, remaining_upstream=remaining))
        if not remaining and not failed:
            for task in waiting:
                self.put(
                    msgspec.structs.replace(
                        task, status=TaskStatus.SCHEDULING, queued_ms=self.now_ms
                    )
                )

    def _settle_workflow(self) -> None:
        if not self.groups or self.workflow.status.finished:
            return
        status = workflow_status([group.status for group in self.groups.values()])
        started = min(
            (each.started_ms for each in self.groups.values() if each.started_ms), default=None
        )
        failures = [each.failure_message for each in self.groups.values() if each.failure_message]
        self.workflow = msgspec.structs.replace(
            self.workflow,
            status=status,
            started_ms=self.workflow.started_ms or started,
            ended_ms=self.now_ms if status.finished else None,
            failure_message=failures[0] if failures and status.failed else None,
        )

    # For writing down

    @property
    def changed(self) -> bool:
        """Whether the record itself is not what it was."""
        return self.workflow != self._before

    @property
    def changed_tasks(self) -> Iterable[Task]:
        """Attempts that are not what they were."""
        return self._changed.values()

    @property
    def new_tasks(self) -> Iterable[Task]:
        """Attempts that were not there before."""
        return self._new.values()

    @property
    def changed_groups(self) -> Iterable[Group]:
        """Groups that are not what they were."""
        return self._changed_groups.values()

    def events(self) -> list[StoredEvent]:
        """What happened."""
        name, pool = self.workflow.workflow_id, self.pool
        events = [
            StoredEvent(EventKind.TASK_STATUS, self.now_ms, name, pool, task.status, _summary(task))
            for task in (*self._changed.values(), *self._new.values())
        ]
        status = self.workflow.status
        if status is not self._before.status:
            data = {"before": self._before.status.value, "after": status.value}
            kind = EventKind.WORKFLOW_STATUS
            events.append(StoredEvent(kind, self.now_ms, name, pool, status, data))
        return events

    def errands(self) -> list[Errand]:
        """What the backend is to be told."""
        by_reason: dict[str, list[str]] = {}
        for attempt, reason in self._stops:
            by_reason.setdefault(reason, []).append(attempt)
        name, backend = self.workflow.workflow_id, self.workflow.backend
        return [
            Errand(STOP, backend, name, msgspec.to_builtins(Stop(tuple(attempts), reason)))
            for reason, attempts in by_reason.items()
        ]


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
    cases: list[Case] = []
    for workflow in workflows:
        found = doors[workflow.pool]
        subpool = found if isinstance(found, Subpool) else None
        pool = workflow.pool if subpool is None else subpool.parent
        queue = site.leaf_queue(pool, None if subpool is None else subpool.subpool)
        members, attempts = groups.get(workflow.uuid, []), tasks.get(workflow.uuid, [])
        now_ms = site.clock.now_ms()
        cases.append(Case(workflow, members, attempts, pool=pool, queue=queue, now_ms=now_ms))
    return cases


def _summary(task: Task) -> dict[str, object]:
    return {
        "task": task.name,
        "retry_id": task.retry_id,
        "status": task.status.value,
        "node": task.node,
        "exit_code": task.exit_code,
        "message": task.failure_message,
    }
