"""One workflow with its groups and tasks, open for changes: the only place that changes task rows.

Plans, observations, cancellations and drains change tasks through here; `settle` draws the
consequences for the group, the groups after it and the workflow. Every status goes through
model.transitions. `load_changes` loads, locks and writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from bough.control.workflows.lifecycle import (
    LEAD,
    RESTART,
    follow_lead,
    group_status,
    moved,
    overrides,
    workflow_status,
)
from bough.control.workflows.preemptions import PreemptionRecord, preemption_data
from bough.errors import Broken
from bough.model.backend import Stop
from bough.model.change_record import EventKind, OutboxMessage, StoredEvent
from bough.model.names import NodeId
from bough.model.transitions import TaskEvent, check_workflow, next_status
from bough.model.workflow import QUEUED, ExitCode, Group, Task, TaskStatus, Workflow

#: Kinds of outbox messages.
STOP = "stop"
START = "start"


class WorkflowChange:
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
        grace_s: int = 0,
    ) -> None:
        self.now_ms = now_ms
        self._before = workflow
        self.workflow = workflow
        #: The top-level pool, and the leaf that new attempts wait in.
        self.pool = pool
        self.queue = queue
        self._grace_s = grace_s
        self.groups = {group.uuid: group for group in groups}
        #: All attempts, and of each task of each group the latest.
        self._tasks: dict[str, Task] = {}
        self._latest: dict[str, dict[str, Task]] = {uuid: {} for uuid in self.groups}
        for task in tasks:
            self._keep(task)
        self._changed: dict[str, Task] = {}
        self._new: dict[str, Task] = {}
        self._changed_groups: dict[str, Group] = {}
        #: By attempt: why it is to end, and how soon.
        self._stops: dict[str, tuple[str, int]] = {}
        self._starts: list[OutboxMessage] = []
        #: Events about a whole group, and the attempts that they speak for.
        self._group_events: list[StoredEvent] = []
        self._told: set[str] = set()

    # Looking

    def task(self, attempt: str) -> Task | None:
        """An attempt as it is now."""
        return self._tasks.get(attempt)

    def latest(self, group: Group) -> list[Task]:
        """The latest attempt of every task of a group."""
        found = self._latest[group.uuid]
        return [found[spec.name] for spec in group.spec.tasks if spec.name in found]

    def earlier(self, task: Task) -> list[Task]:
        """The attempts of the same task before it."""
        attempts = (f"{task.uuid}/{retry_id}" for retry_id in range(task.retry_id))
        return [self._tasks[attempt] for attempt in attempts if attempt in self._tasks]

    def counted(self, task: Task) -> list[Task]:
        """The attempts that count against its retries: of its group, where every task counts."""
        group = self.groups[task.group_uuid]
        if group.spec.ignore_nonlead_status:
            return self.earlier(task)
        return [each for other in self.latest(group) for each in self.earlier(other)]

    def unfinished(self) -> list[Task]:
        """Unfinished attempts."""
        return [task for task in self._tasks.values() if not task.status.finished]

    def ended_lead(self, group: Group) -> Task | None:
        """The lead of a group, if it has ended for good."""
        leads = [task for task in self.latest(group) if task.lead]
        return leads[0] if leads and all(task.status.finished for task in leads) else None

    # Changing

    def put(self, task: Task, event: TaskEvent | None = None) -> None:
        """Replace an attempt by what it is now; its status follows from what happened to it."""
        before = self._tasks[task.attempt]
        if event is not None:
            status = next_status(before.status, event)
            task = msgspec.structs.replace(task, status=status)
        elif task.status is not before.status:
            raise Broken(f"task {task.attempt} became {task.status} although nothing happened")
        if before != task:
            self._keep(task)
            (self._new if task.attempt in self._new else self._changed)[task.attempt] = task

    def put_group(self, group: Group) -> None:
        """Replace a group by what it is now."""
        if self.groups[group.uuid] != group:
            self.groups[group.uuid] = group
            self._changed_groups[group.uuid] = group

    def put_workflow(self, workflow: Workflow) -> None:
        """Replace the record itself."""
        check_workflow(self.workflow.status, workflow.status)
        self.workflow = workflow

    def end(
        self,
        task: Task,
        event: TaskEvent,
        message: str = "",
        exit_code: int | None = None,
        at_ms: int | None = None,
    ) -> None:
        """End an attempt: now, or when it was seen to end."""
        began_ms = task.started_ms or task.scheduled_ms or 0
        ended_ms = self.now_ms if at_ms is None else min(self.now_ms, max(at_ms, began_ms))
        ended = msgspec.structs.replace(
            task,
            exit_code=task.exit_code if exit_code is None else exit_code,
            failure_message=message or task.failure_message,
            ended_ms=ended_ms,
        )
        self.put(ended, event)

    def retry(self, task: Task) -> None:
        """Queue another attempt; its group goes to the leaf of today, wherever it ran before."""
        again = Task(
            uuid=task.uuid,
            workflow_uuid=task.workflow_uuid,
            group_uuid=task.group_uuid,
            name=task.name,
            retry_id=task.retry_id + 1,
            status=next_status(None, TaskEvent.QUEUE),
            gpus=task.gpus,
            lead=task.lead,
            queued_ms=self.now_ms,
        )
        self._keep(again)
        self._new[again.attempt] = again
        self.put_group(msgspec.structs.replace(self.groups[task.group_uuid], queue=self.queue))

    def release(self, task: Task, reason: str, message: str = "", *, at_once: bool = False) -> None:
        """Tell an attempt on a node to end; it holds its GPUs until it is gone."""
        if overrides(reason, task.releasing):
            if task.releasing is None:
                self._stops[task.attempt] = (reason, self._grace_s)
            # Before it was told to end, it had only what it waited for to say.
            earlier = None if task.releasing is None else task.failure_message
            self.put(
                msgspec.structs.replace(
                    task,
                    releasing=reason,
                    released_ms=task.released_ms or self.now_ms,
                    failure_message=message or earlier,
                )
            )
        if at_once:
            self._stops[task.attempt] = (reason, 0)

    def bind(self, group: Group, nodes: Mapping[str, NodeId], growth: Iterable[str] = ()) -> None:
        """Give tasks of a group their nodes, by name, and have them started.

        `growth` names those beyond the minimum of the group. What they are made of is looked up
        when the backend is told.
        """
        beyond = frozenset(growth)
        latest = self._latest[group.uuid]
        for name, node in nodes.items():
            placed = msgspec.structs.replace(
                latest[name],
                # None yet, where a scheduler of the cluster chooses it.
                node=node.name or None,
                backend=node.backend,
                growth=name in beyond,
                scheduled_ms=self.now_ms,
            )
            self.put(placed, TaskEvent.BIND)
        if group.status in QUEUED:
            starting = msgspec.structs.replace(
                moved(group, TaskStatus.INITIALIZING, self.workflow, self.now_ms),
                scheduled_ms=group.scheduled_ms or self.now_ms,
                nominated=False,
                wait_cause=None,
            )
            self.put_group(starting)
        attempts = {latest[name].attempt: node for name, node in nodes.items()}
        for backend in sorted({node.backend for node in nodes.values()}):
            there = {each: node.name for each, node in attempts.items() if node.backend == backend}
            payload = {"group": group.uuid, "attempts": there}
            message = OutboxMessage(START, backend, self.workflow.workflow_id, payload)
            self._starts.append(message)
        data = {
            "group": group.name,
            "nodes": {name: node.name for name, node in nodes.items()},
            "backend": next(iter(nodes.values())).backend if nodes else self.workflow.backend,
        }
        self._tell(EventKind.TASK_STATUS, TaskStatus.INITIALIZING, data, attempts)

    def preempt(
        self, group: Group, preemption: PreemptionRecord, reason: str, message: str = ""
    ) -> None:
        """Tell the tasks that a preemption names to end."""
        tasks = [self._latest[group.uuid][name] for name in preemption.tasks]
        for task in tasks:
            self.release(task, reason, message)
        text = "given back:" if preemption.given_back else ""
        attempts = [task.attempt for task in tasks]
        self._tell(EventKind.PREEMPTED, text, preemption_data(preemption), attempts)

    def end_group(
        self,
        group: Group,
        reason: str,
        event: TaskEvent,
        message: str,
        exit_code: int | None = None,
    ) -> None:
        """End all of a group: at once where it has no node, otherwise when the backend is told."""
        for task in self.latest(group):
            if task.status.holds_node:
                self.release(task, reason, message)
            elif not task.status.finished:
                self.end(task, event, message, exit_code)

    def release_held(self) -> None:
        """Queue the first groups of a workflow that waited for others."""
        for group in self._held():
            self.put_group(msgspec.structs.replace(group, queued_ms=self.now_ms))
            for task in self.latest(group):
                queued = msgspec.structs.replace(task, queued_ms=self.now_ms)
                self.put(queued, TaskEvent.RELEASE)

    def fail_held(self, message: str) -> None:
        """End the first groups of a workflow that waited for others; the rest follows."""
        for group in self._held():
            for task in self.latest(group):
                self.end(task, TaskEvent.UPSTREAM_FAILED, message, ExitCode.UPSTREAM)

    def _held(self) -> list[Group]:
        groups = [each for each in self.groups.values() if not each.remaining_upstream]
        return [each for each in groups if each.status is TaskStatus.WAITING]

    def restart_others(self, task: Task) -> None:
        """A group starts again as a whole: what runs ends, what failed gets another attempt."""
        for other in self.latest(self.groups[task.group_uuid]):
            if other.name == task.name or other.status is TaskStatus.COMPLETED:
                continue
            if other.status.holds_node:
                self.release(other, RESTART)
            elif other.status.finished:
                self.retry(other)

    # Consequences

    def settle(self) -> None:
        """Draw all consequences of what changed."""
        touched = {task.group_uuid for task in (*self._changed.values(), *self._new.values())}
        by_name = {group.name: group.uuid for group in self.groups.values()}
        for group in sorted(self.groups.values(), key=lambda each: each.position):
            if group.status.finished:
                continue
            if group.remaining_upstream and self._follow_upstream(group, by_name):
                touched.add(group.uuid)
            if group.uuid in touched:
                self._follow_lead(group)
                self._settle_group(self.groups[group.uuid])
        self._settle_workflow()

    def _follow_lead(self, group: Group) -> None:
        """Where the lead of a group has ended for good, the others end as it did."""
        lead = self.ended_lead(group)
        if lead is None:
            return
        for task in self.latest(group):
            if task.status.holds_node:
                self.release(task, LEAD)
            elif not task.status.finished:
                found = follow_lead(lead.status)
                self.end(task, found.event, found.message)

    def _follow_upstream(self, group: Group, by_name: dict[str, str]) -> bool:
        """A group waits for those before it, and fails with them; whether anything changed."""
        before = [
            self.groups[by_name[each]] for each in group.remaining_upstream if each in by_name
        ]
        over = [each for each in before if each.status.finished]
        if not over and before:
            return False
        waiting = [task for task in self.latest(group) if task.status is TaskStatus.WAITING]
        failed = [each for each in over if each.status is not TaskStatus.COMPLETED]
        if failed:
            text = f"Group {failed[0].name} before it is {failed[0].status}."
            for task in waiting:
                self.end(task, TaskEvent.UPSTREAM_FAILED, text, ExitCode.UPSTREAM)
        remaining = tuple(each.name for each in before if not each.status.finished)
        released = group if remaining else msgspec.structs.replace(group, queued_ms=self.now_ms)
        self.put_group(msgspec.structs.replace(released, remaining_upstream=remaining))
        if not remaining and not failed:
            for task in waiting:
                queued = msgspec.structs.replace(task, queued_ms=self.now_ms)
                self.put(queued, TaskEvent.RELEASE)
        return True

    def _settle_group(self, group: Group) -> None:
        latest = self.latest(group)
        status = group_status(group.spec, latest, group.status)
        started = min((task.started_ms for task in latest if task.started_ms), default=None)
        scheduled = min((task.scheduled_ms for task in latest if task.scheduled_ms), default=None)
        bad = status.finished and status is not TaskStatus.COMPLETED
        waits = status in (TaskStatus.SCHEDULING, TaskStatus.WAITING)
        self.put_group(
            msgspec.structs.replace(
                moved(group, status, self.workflow, self.now_ms),
                started_ms=group.started_ms or started,
                scheduled_ms=group.scheduled_ms or scheduled,
                ended_ms=max(_ends(latest), default=self.now_ms) if status.finished else None,
                failure_message=_failure(latest) if bad else group.failure_message,
                nominated=group.nominated and not status.finished,
                wait_cause=group.wait_cause if waits else None,
            )
        )

    def _settle_workflow(self) -> None:
        if not self.groups or self.workflow.status.finished:
            return
        groups = sorted(self.groups.values(), key=lambda each: each.position)
        status = workflow_status([group.status for group in groups])
        started = min((each.started_ms for each in groups if each.started_ms), default=None)
        # What it ended for, before what merely went wrong as well.
        told = sorted(groups, key=lambda each: each.status.value != status.value)
        failures = [each.failure_message for each in told if each.failure_message]
        self.put_workflow(
            msgspec.structs.replace(
                self.workflow,
                status=status,
                started_ms=self.workflow.started_ms or started,
                ended_ms=max(_ends(groups), default=self.now_ms) if status.finished else None,
                failure_message=failures[0] if failures and status.failed else None,
            )
        )

    def _keep(self, task: Task) -> None:
        self._tasks[task.attempt] = task
        known = self._latest[task.group_uuid].get(task.name)
        if known is None or known.retry_id <= task.retry_id:
            self._latest[task.group_uuid][task.name] = task

    def _tell(
        self, kind: EventKind, message: str, data: dict[str, object], attempts: Iterable[str]
    ) -> None:
        """One event for many tasks of a group."""
        name = self.workflow.workflow_id
        self._group_events.append(StoredEvent(kind, self.now_ms, name, self.pool, message, data))
        self._told.update(attempts)

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
        name, pool, kind = self.workflow.workflow_id, self.pool, EventKind.TASK_STATUS
        events = [
            *self._group_events,
            *(
                StoredEvent(kind, self.now_ms, name, pool, task.status, _summary(task))
                for task in (*self._changed.values(), *self._new.values())
                if task.attempt not in self._told
            ),
        ]
        status = self.workflow.status
        if status is not self._before.status:
            data = {"before": self._before.status.value, "after": status.value}
            event = EventKind.WORKFLOW_STATUS
            events.append(StoredEvent(event, self.now_ms, name, pool, status, data))
        return events

    def messages(self) -> list[OutboxMessage]:
        """What the backend is told."""
        alike: dict[tuple[str, str, int], list[str]] = {}
        for attempt, (reason, grace_s) in self._stops.items():
            task = self._tasks[attempt]
            # What has ended meanwhile by itself need not be told.
            if grace_s == 0 or not task.status.finished:
                key = (task.backend or self.workflow.backend, reason, grace_s)
                alike.setdefault(key, []).append(attempt)
        name = self.workflow.workflow_id
        stops = [
            (backend, Stop(tuple(attempts), reason, grace_s))
            for (backend, reason, grace_s), attempts in alike.items()
        ]
        return [
            *self._starts,
            *(OutboxMessage(STOP, at, name, msgspec.to_builtins(stop)) for at, stop in stops),
        ]


def _failure(latest: list[Task]) -> str | None:
    """Why a group failed: the lead's word, if it has one."""
    bad = [
        task
        for task in latest
        if task.failure_message and task.status not in (TaskStatus.COMPLETED, TaskStatus.WAITING)
    ]
    bad.sort(key=lambda task: not task.lead)
    return bad[0].failure_message if bad else None


def _ends(records: Iterable[Group | Task]) -> list[int]:
    return [each.ended_ms for each in records if each.ended_ms is not None]


def _summary(task: Task) -> dict[str, object]:
    return {
        "task": task.name,
        "retry_id": task.retry_id,
        "status": task.status.value,
        "node": task.node,
        "backend": task.backend,
        "exit_code": task.exit_code,
        "message": task.failure_message,
    }
