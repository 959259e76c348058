"""A plan becomes true: tasks get nodes or are told to end, and their backends are to be told.

One transaction. A plan for another version (quotas, nodes or another plan came in between) is
discarded whole. What happened meanwhile to a single workflow, a cancellation or an end, only frees
room, so it voids the decisions about that group alone. Must not know how the plan was made.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import sqlalchemy as sa

from bough.control.config.policy import grace_s
from bough.control.pools.queue_names import PoolNames
from bough.control.scheduling.snapshot import GroupEntry, SnapshotView
from bough.control.site import Site
from bough.control.workflows.lifecycle import GIVE_BACK, moved, preempted_text
from bough.control.workflows.preemptions import Preemption, preemption_data, preemption_of
from bough.control.workflows.workflow_changes import START, STOP
from bough.core.cycle.waits import Waits
from bough.core.explain.sentences import name_some
from bough.model.backend import Stop
from bough.model.plan import Bind, Eviction, Plan
from bough.model.reason import WaitReason
from bough.model.record import EventKind, OutboxMessage, StoredEvent
from bough.model.transitions import TaskEvent, next_status
from bough.model.workflow import QUEUED, Group, Task, TaskStatus
from bough.store import records as record_store
from bough.store import settings as setting_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store


class Applied(msgspec.Struct, frozen=True):
    """What became of a plan."""

    #: Nothing was done: the plan was for another version.
    stale: bool = False
    started: int = 0
    evicted: int = 0
    #: Decisions that came too late.
    void: int = 0

    @property
    def changed(self) -> bool:
        """Whether anything starts or ends."""
        return bool(self.started or self.evicted)


def apply(site: Site, view: SnapshotView, plan: Plan) -> Applied:
    """Make a plan true, all of it that still can be."""
    waits, nominated = _new_waits(view, plan), _nominated(view, plan)
    events = _wait_events(site, view, waits)
    if not plan.binds and not plan.evictions:
        if waits or nominated != view.nominated:
            with site.store.write() as connection:
                _write_outlook(connection, view, waits, nominated)
                record_store.add_events(connection, events)
            _note_outlook(view, waits, nominated)
        return Applied()
    with site.store.write() as connection:
        if not setting_store.raise_if(connection, setting_store.VERSION, plan.version):
            return Applied(stale=True)
        work = _Work(site, connection, view)
        work.lock(
            [*(each.workload for each in plan.binds), *(each.workload for each in plan.evictions)]
        )
        work.bind(plan.binds)
        for eviction in plan.evictions:
            work.evict(eviction)
        work.write()
        _write_outlook(connection, view, waits, nominated)
        record_store.add_events(connection, events)
    _note_outlook(view, waits, nominated)
    return Applied(started=work.started, evicted=work.evicted, void=work.void)


class _Work:
    """The rows that a plan changes."""

    def __init__(self, site: Site, connection: sa.Connection, view: SnapshotView) -> None:
        self._connection = connection
        self._entries = view.entries
        self._now_ms = site.clock.now_ms()
        self._grace_s = grace_s(view.policy)
        self._names = PoolNames(site)
        #: By gang, for those that are as the plan thought.
        self._tasks: dict[str, dict[str, Task]] = {}
        self._changed: dict[str, Task] = {}
        self._messages: list[OutboxMessage] = []
        self._events: list[StoredEvent] = []
        self.started = 0
        self.evicted = 0
        self.void = 0

    def lock(self, gangs: Iterable[str]) -> None:
        """Lock the workflows, and see which groups are as they were."""
        entries = {name: self._entries[name] for name in dict.fromkeys(gangs)}
        uuids = {entry.workflow.uuid for entry in entries.values()}
        alive = {
            workflow.uuid
            for workflow in workflow_store.lock_all(self._connection, sorted(uuids))
            if not workflow.status.finished
        }
        groups = sorted(entry.group.uuid for entry in entries.values())
        now: dict[str, dict[str, Task]] = {}
        for task in task_store.tasks_of_groups(self._connection, groups):
            now.setdefault(task.group_uuid, {})[task.name] = task
        for name, entry in entries.items():
            latest = now.get(entry.group.uuid, {})
            if entry.workflow.uuid in alive and _same(entry, latest):
                self._tasks[name] = latest

    def bind(self, binds: Iterable[Bind]) -> None:
        """Give tasks their nodes, gang by gang."""
        by_gang: dict[str, list[Bind]] = {}
        for bind in binds:
            by_gang.setdefault(bind.workload, []).append(bind)
        for name, members in by_gang.items():
            tasks = self._tasks.get(name)
            if tasks is None:
                self.void += 1
                continue
            for bind in members:
                self._change(
                    name,
                    msgspec.structs.replace(
                        tasks[bind.pod],
                        status=next_status(tasks[bind.pod].status, TaskEvent.BIND),
                        node=bind.node,
                        growth=bind.growth,
                        scheduled_ms=self._now_ms,
                    ),
                )
            self._start(name, [bind.pod for bind in members])

    def evict(self, eviction: Eviction) -> None:
        """Tell tasks to end."""
        tasks = self._tasks.get(eviction.workload)
        if tasks is None:
            self.void += 1
            return
        holding = {
            name
            for name, task in tasks.items()
            if task.status.holds_node and task.releasing is None
        }
        going = holding & set(eviction.pods) if eviction.pods else holding
        # What an elastic gang gives back while it goes on is no failure.
        reason = eviction.rule.value if going == holding else GIVE_BACK
        told = self._preemption(eviction, sorted(going), reason)
        # Who ends for others is told for whom; what else it says follows from the reason.
        message = preempted_text(reason, told.message, told.at_ms) if told.preemptor else None
        for name in told.tasks:
            released = msgspec.structs.replace(
                tasks[name],
                releasing=reason,
                released_ms=self._now_ms,
                failure_message=message,
            )
            self._change(eviction.workload, released)
        self._stop(eviction.workload, told, reason)

    def write(self) -> None:
        """Write everything down."""
        task_store.update_tasks(self._connection, self._changed.values())
        task_store.update_groups(self._connection, self._groups())
        record_store.add_outbox(self._connection, self._messages, self._now_ms)
        record_store.add_events(self._connection, self._events)

    def _groups(self) -> Iterable[Group]:
        """Groups that leave the queue; the ones that run already stay as they are."""
        for name, tasks in self._tasks.items():
            group = self._entries[name].group
            starts = any(task.status is TaskStatus.INITIALIZING for task in tasks.values())
            if starts and group.status in QUEUED:
                workflow = self._entries[name].workflow
                yield msgspec.structs.replace(
                    moved(group, TaskStatus.INITIALIZING, workflow, self._now_ms),
                    scheduled_ms=group.scheduled_ms or self._now_ms,
                    nominated=False,
                    wait_reason=None,
                    wait_message=None,
                )

    def _change(self, gang: str, task: Task) -> None:
        self._tasks[gang][task.name] = task
        self._changed[task.attempt] = task

    def _start(self, gang: str, pods: list[str]) -> None:
        """Have a gang started; what it is made of is looked up when the backend is told."""
        entry = self._entries[gang]
        started = [self._tasks[gang][pod] for pod in pods]
        workflow = entry.workflow
        payload = {
            "group": entry.group.uuid,
            "attempts": {task.attempt: task.node for task in started},
        }
        self._messages.append(OutboxMessage(START, workflow.backend, workflow.workflow_id, payload))
        self._happen(
            entry,
            EventKind.TASK_STATUS,
            TaskStatus.INITIALIZING,
            {"group": entry.group.name, "nodes": {task.name: task.node for task in started}},
        )
        self.started += 1

    def _preemption(self, eviction: Eviction, pods: list[str], reason: str) -> Preemption:
        group = self._entries[eviction.workload].group.name
        preemptor = self._entries.get(eviction.preemptor or "")
        workflow = None if preemptor is None else preemptor.workflow
        return preemption_of(eviction, group, pods, reason, workflow, self._names, self._now_ms)

    def _stop(self, gang: str, told: Preemption, reason: str) -> None:
        entry = self._entries[gang]
        attempts = tuple(self._tasks[gang][name].attempt for name in told.tasks)
        workflow = entry.workflow
        payload = msgspec.to_builtins(Stop(attempts, reason, self._grace_s))
        self._messages.append(OutboxMessage(STOP, workflow.backend, workflow.workflow_id, payload))
        kind = EventKind.PREEMPTED
        self._happen(entry, kind, "given back:" if told.given_back else "", preemption_data(told))
        self.evicted += 1

    def _happen(
        self, entry: GroupEntry, kind: EventKind, message: str, data: dict[str, object]
    ) -> None:
        name = entry.workflow.workflow_id
        self._events.append(StoredEvent(kind, self._now_ms, name, entry.pool, message, data))


def _same(entry: GroupEntry, latest: dict[str, Task]) -> bool:
    """Whether a group is as the plan thought, but for tasks that have come to run since."""
    thought = {task.name: task for task in entry.tasks}
    return thought.keys() == latest.keys() and all(
        thought[name].attempt == task.attempt
        and thought[name].releasing == task.releasing
        and thought[name].status.holds_node == task.status.holds_node
        and thought[name].status.finished == task.status.finished
        for name, task in latest.items()
    )


def _new_waits(view: SnapshotView, plan: Plan) -> list[tuple[str, str, str]]:
    """Why each group waits, where that is not what is written down."""
    known, entries = view.waits, view.entries
    news: list[tuple[str, str, str]] = []
    for wait in Waits(view.snapshot, view.policy, plan).every():
        entry = entries[wait.workload]
        uuid, reason, message = entry.group.uuid, wait.reason, wait.message
        if known[uuid] != (reason, message):
            news.append((uuid, reason, message))
    for nomination in plan.nominations:
        uuid = entries[nomination.workload].group.uuid
        told = (WaitReason.NOMINATED.value, _say_nominated(nomination.waits_for))
        if known[uuid] != told:
            news.append((uuid, *told))
    return news


def _say_nominated(waits_for: tuple[str, ...]) -> str:
    made = name_some(waits_for) if waits_for else "those that were told to end"
    return f"it starts as soon as {made} made room for it"


def _wait_events(
    site: Site, view: SnapshotView, waits: list[tuple[str, str, str]]
) -> list[StoredEvent]:
    """An event for each group that waits for something of another kind than before."""
    known, now_ms, names = view.waits, site.clock.now_ms(), PoolNames(site)
    news = {uuid: (reason, text) for uuid, reason, text in waits if known[uuid][0] != reason}
    return [
        StoredEvent(
            EventKind.WAITING,
            now_ms,
            entry.workflow.workflow_id,
            entry.pool,
            data={
                "group": entry.group.name,
                "reason": news[entry.group.uuid][0],
                "message": names.in_text("{}: {}".format(*news[entry.group.uuid])),
            },
        )
        for entry in view.entries.values()
        if entry.group.uuid in news
    ]


def _nominated(view: SnapshotView, plan: Plan) -> frozenset[str]:
    """For whom room is being made, by uuid, so that nobody takes it when it is free."""
    return frozenset(view.entries[each.workload].group.uuid for each in plan.nominations)


def _write_outlook(
    connection: sa.Connection,
    view: SnapshotView,
    waits: list[tuple[str, str, str]],
    nominated: frozenset[str],
) -> None:
    task_store.write_waits(connection, waits)
    news = sorted(nominated ^ view.nominated)
    task_store.write_nominations(connection, [(uuid, uuid in nominated) for uuid in news])


def _note_outlook(
    view: SnapshotView, waits: list[tuple[str, str, str]], nominated: frozenset[str]
) -> None:
    """All of this is written down now."""
    view.waits.update({uuid: (reason, text) for uuid, reason, text in waits})
    view.nominated.clear()
    view.nominated.update(nominated)
