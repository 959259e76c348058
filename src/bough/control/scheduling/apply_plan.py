"""Applies a plan: tasks get nodes or are told to end, with a message to their backends.

One transaction. A plan for another version (quotas, nodes or another plan came in between) is
discarded whole. What happened meanwhile to a single workflow, a cancellation or an end, only frees
room, so it voids the decisions about that group alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
import sqlalchemy as sa

from bough.control.config.policy import grace_s
from bough.control.pools.pool_words import PoolWords
from bough.control.scheduling.snapshot import GroupEntry, SnapshotView
from bough.control.scheduling.wait_causes import PlanSaid
from bough.control.site import Site
from bough.control.workflows.lifecycle import GIVE_BACK, preempted_text
from bough.control.workflows.load_changes import open_groups, write_changes
from bough.control.workflows.preemptions import PreemptionRecord, preemption_of
from bough.control.workflows.workflow_changes import WorkflowChange
from bough.model.change_record import EventKind, StoredEvent
from bough.model.plan import Bind, Eviction, Plan
from bough.model.workflow import Task
from bough.store import change_records as record_store
from bough.store import settings as setting_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store
from bough.store.database import again_if_given_up


class Applied(msgspec.Struct, frozen=True):
    """The result of applying a plan."""

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


@again_if_given_up
def apply(
    site: Site, view: SnapshotView, plan: Plan, excesses: Mapping[str, str] | None = None
) -> Applied:
    """Apply a plan, as far as it is still possible.

    excesses:  by gang that ends for others: what was used beyond a quota there.
    """
    outlook = _WaitingGroups(site, view, plan)
    if not plan.binds and not plan.evictions:
        if outlook:
            with site.store.write() as connection:
                outlook.lock(connection)
                outlook.write(connection)
        outlook.note()
        return Applied()
    with site.store.write() as connection:
        if not setting_store.raise_if(connection, setting_store.VERSION, plan.version):
            return Applied(stale=True)
        gangs = {each.workload for each in (*plan.binds, *plan.evictions)}
        outlook.lock(connection, {view.entries[each].workflow.uuid for each in gangs})
        work = _Decisions(site, connection, view, excesses or {})
        work.lock(gangs)
        work.bind(plan.binds)
        for eviction in plan.evictions:
            work.evict(eviction)
        work.write()
        outlook.write(connection)
    outlook.note()
    return Applied(started=work.started, evicted=work.evicted, void=work.void)


class _Decisions:
    """The decisions of a plan, made changes of the workflows that they are about."""

    def __init__(
        self,
        site: Site,
        connection: sa.Connection,
        view: SnapshotView,
        excesses: Mapping[str, str],
    ) -> None:
        self._site = site
        self._excesses = excesses
        self._connection = connection
        self._entries = view.entries
        self._nodes = view.nodes
        self._grace_s = grace_s(view.policy)
        self._now_ms = site.clock.now_ms()
        self._words = PoolWords(site)
        self._changes: list[WorkflowChange] = []
        #: By gang, for those that are as the plan thought.
        self._valid: dict[str, WorkflowChange] = {}
        self.started = 0
        self.evicted = 0
        self.void = 0

    def lock(self, gangs: Iterable[str]) -> None:
        """Lock the workflows, and see which groups are as they were."""
        entries = {name: self._entries[name] for name in sorted(gangs)}
        groups = [(entry.group, entry.pool) for entry in entries.values()]
        self._changes = open_groups(self._site, self._connection, groups, grace_s=self._grace_s)
        alive = {
            change.workflow.uuid: change
            for change in self._changes
            if not change.workflow.status.finished
        }
        for name, entry in entries.items():
            change = alive.get(entry.workflow.uuid)
            if change is not None and _same(entry, change.latest(entry.group)):
                self._valid[name] = change

    def bind(self, binds: Iterable[Bind]) -> None:
        """Give tasks their nodes, gang by gang."""
        by_gang: dict[str, list[Bind]] = {}
        for bind in binds:
            by_gang.setdefault(bind.workload, []).append(bind)
        for name, members in by_gang.items():
            change = self._valid.get(name)
            if change is None:
                self.void += 1
                continue
            nodes = {bind.pod: self._nodes[bind.node] for bind in members}
            growth = [bind.pod for bind in members if bind.growth]
            change.bind(self._entries[name].group, nodes, growth)
            self.started += 1

    def evict(self, eviction: Eviction) -> None:
        """Tell tasks to end."""
        change = self._valid.get(eviction.workload)
        if change is None:
            self.void += 1
            return
        group = self._entries[eviction.workload].group
        holding = {
            task.name
            for task in change.latest(group)
            if task.status.holds_node and task.releasing is None
        }
        going = holding & set(eviction.pods) if eviction.pods else holding
        # What an elastic gang gives back while it goes on is no failure.
        reason = eviction.rule.value if going == holding else GIVE_BACK
        told = self._preemption(eviction, group.name, sorted(going), reason)
        # A victim is told for which gang it ends; otherwise its message follows from the reason.
        message = preempted_text(reason, told.message, told.at_ms) if told.preemptor else ""
        change.preempt(group, told, reason, message)
        self.evicted += 1

    def write(self) -> None:
        """Write everything."""
        write_changes(self._connection, self._changes, self._now_ms)

    def _preemption(
        self, eviction: Eviction, group: str, pods: list[str], reason: str
    ) -> PreemptionRecord:
        preemptor = self._entries.get(eviction.preemptor or "")
        workflow = None if preemptor is None else preemptor.workflow
        told = preemption_of(eviction, group, pods, reason, workflow, self._words, self._now_ms)
        excess = self._excesses.get(eviction.workload)
        if excess is None:
            return told
        return msgspec.structs.replace(told, message=f"{told.message}: {excess}")


def _same(entry: GroupEntry, latest: Sequence[Task]) -> bool:
    """Whether a group is as the plan thought, but for tasks that have come to run since."""
    thought = {task.name: task for task in entry.tasks}
    return thought.keys() == {task.name for task in latest} and all(
        thought[task.name].attempt == task.attempt
        and thought[task.name].releasing == task.releasing
        and thought[task.name].status.holds_node == task.status.holds_node
        and thought[task.name].status.finished == task.status.finished
        for task in latest
    )


class _WaitingGroups:
    """What a plan says about groups that wait: why, and for which of them room is being made."""

    def __init__(self, site: Site, view: SnapshotView, plan: Plan) -> None:
        self._site = site
        self._view = view
        said = PlanSaid(view.snapshot, view.policy, plan, view.offline, PoolWords(site))
        self._news = view.waits.compare(said)
        self._nominated = {
            view.entries[each.workload].group.uuid: each.pods for each in plan.nominations
        }
        before, after = view.nominated, self._nominated
        about = {*before, *after}
        self._changed = {uuid for uuid in about if before.get(uuid) != after.get(uuid)}

    def __bool__(self) -> bool:
        """Whether anything of it has to be written."""
        return bool(self._news or self._changed)

    def lock(self, connection: sa.Connection, decided: Collection[str] = ()) -> None:
        """Lock the workflows of the groups that it is about, and those that are decided upon."""
        about = {
            self._view.groups[uuid][0].workflow.uuid
            for uuid in (*self._news.groups, *self._changed)
            if uuid in self._view.groups
        }
        workflow_store.hold(connection, about.union(decided))

    def write(self, connection: sa.Connection) -> None:
        """Write what is not stored yet."""
        self._news.write(connection)
        nominations = [(uuid, self._nominated.get(uuid)) for uuid in sorted(self._changed)]
        task_store.write_nominations(connection, nominations)
        record_store.add_events(connection, self._events())

    def note(self) -> None:
        """Remember what was just written."""
        self._view.waits.note(self._news)
        self._view.nominated.clear()
        self._view.nominated.update(self._nominated)

    def _events(self) -> list[StoredEvent]:
        """An event for each group that waits for something of another kind than before."""
        now_ms = self._site.clock.now_ms()
        events: list[StoredEvent] = []
        for uuid, (reason, message) in self._news.kinds.items():
            entry = self._view.groups[uuid][0]
            data = {
                "group": entry.group.name,
                "reason": reason,
                "message": f"{reason}: {message}",
            }
            subject, pool = entry.workflow.workflow_id, entry.pool
            events.append(StoredEvent(EventKind.WAITING, now_ms, subject, pool, data=data))
        return events
