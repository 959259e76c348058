"""Whatever happens to a workflow, in whatever order: its states stay what the table allows."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bough.control.workflows import observations
from bough.control.workflows.lifecycle import (
    CANCEL,
    DRAIN,
    EXEC_TIMEOUT,
    GIVE_BACK,
    VANISHED,
    moved,
)
from bough.control.workflows.workflow_changes import WorkflowChange
from bough.model.backend import Observation, Sight
from bough.model.settings import WorkflowSettings
from bough.model.transitions import TaskEvent
from bough.model.workflow import (
    Group,
    GroupSpec,
    Priority,
    Task,
    TaskSpec,
    TaskStatus,
    Workflow,
    WorkflowStatus,
)

SETTINGS = WorkflowSettings(max_retry_per_task=1, max_preemption_retries=2, max_lost_retries=1)
REASONS = ("preempt", "reclaim", "stale", DRAIN, VANISHED, GIVE_BACK)
#: What ends by itself ends well, badly, or with a code after which it is tried again.
CODES = (0, 1, 3)


@st.composite
def changes(draw) -> WorkflowChange:
    """A workflow of some groups, of which each may wait for those before it."""
    groups, tasks = [], []
    for position in range(draw(st.integers(1, 3))):
        name = f"g{position}"
        upstream = tuple(f"g{each}" for each in range(position) if draw(st.booleans()))
        members = tuple(
            TaskSpec(f"{name}-t{number}", lead=number == 0, exit_actions={"RESCHEDULE": "3,3003"})
            for number in range(draw(st.integers(1, 3)))
        )
        strict = draw(st.booleans())
        spec = GroupSpec(name, members, upstream, ignore_nonlead_status=not strict)
        status = TaskStatus.WAITING if upstream else TaskStatus.SCHEDULING
        groups.append(
            Group(name, "w", name, position, "q", status, spec, 0, remaining_upstream=upstream)
        )
        tasks += [
            Task(each.name, "w", name, each.name, 0, status, 0, each.lead) for each in members
        ]
    workflow = Workflow(
        "w", "w-1", "w", 1, "ann", "p", "default", Priority.LOW, WorkflowStatus.PENDING, 0
    )
    return WorkflowChange(workflow, groups, tasks, pool="p", queue="q", now_ms=1)


def bind(change: WorkflowChange, group: Group) -> None:
    """Give nodes to all of a group that waits, as a plan does."""
    waiting = [task for task in change.latest(group) if task.status is TaskStatus.SCHEDULING]
    if any(task.releasing for task in change.latest(group) if task.status.holds_node):
        return
    for task in waiting:
        change.put(msgspec.structs.replace(task, node="n"), TaskEvent.BIND)
    if waiting and group.status is TaskStatus.SCHEDULING:
        change.put_group(moved(group, TaskStatus.INITIALIZING, change.workflow, 1))


def release(change: WorkflowChange, task: Task, draw) -> None:
    """Tell an attempt to end, as an eviction, a drain or a cancellation does."""
    reason = draw(st.sampled_from((*REASONS, CANCEL, EXEC_TIMEOUT)))
    group = change.groups[task.group_uuid]
    if reason == CANCEL:
        for each in change.unfinished():
            if each.status.holds_node:
                change.release(each, CANCEL)
            else:
                change.end(each, TaskEvent.CANCEL)
    elif reason == EXEC_TIMEOUT:
        if group.status is TaskStatus.RUNNING:
            change.end_group(group, EXEC_TIMEOUT, TaskEvent.EXEC_TIMEOUT, "too long")
    else:
        change.release(task, reason)


def see(change: WorkflowChange, task: Task, draw) -> None:
    sights = [Sight.ENDED, Sight.LOST]
    if task.status is TaskStatus.INITIALIZING:
        sights += [Sight.RUNNING, Sight.STUCK, Sight.UNSTARTABLE]
    sight = draw(st.sampled_from(sights))
    code = draw(st.sampled_from(CODES)) if sight is Sight.ENDED else None
    # It may have ended before it was told to.
    at_ms = draw(st.sampled_from((0, 1)))
    observations._note(change, Observation(task.attempt, sight, at_ms, code), None, SETTINGS)


def check(change: WorkflowChange) -> None:
    for group in change.groups.values():
        latest = change.latest(group)
        assert group.status.finished == all(task.status.finished for task in latest)
        lead = change.ended_lead(group)
        if lead is not None:
            left = [task for task in latest if not task.status.finished]
            assert all(task.status.holds_node and task.releasing for task in left)
        for task in latest:
            earlier = change.earlier(task)
            assert task.retry_id == len(earlier)
            assert all(each.status.finished for each in earlier)
    over = all(group.status.finished for group in change.groups.values())
    assert over == change.workflow.status.finished


@given(changes(), st.data())
def test_whatever_happens_is_in_the_table(change, data):
    for _ in range(data.draw(st.integers(0, 25))):
        holding = [task for task in change.unfinished() if task.status.holds_node]
        step = data.draw(st.sampled_from(("bind", "see", "release")))
        if step == "bind" or not holding:
            groups = [each for each in change.groups.values() if not each.status.finished]
            if not groups:
                break
            bind(change, data.draw(st.sampled_from(groups)))
        else:
            task = data.draw(st.sampled_from(holding))
            (see if step == "see" else release)(change, task, data.draw)
        change.settle()
        check(change)


@given(changes(), st.data())
def test_every_workflow_ends_when_all_that_runs_does(change, data):
    for _ in range(100):
        for group in list(change.groups.values()):
            bind(change, change.groups[group.uuid])
        change.settle()
        for task in change.unfinished():
            now = change.task(task.attempt)
            if now is not None and now.status.holds_node:
                see(change, now, data.draw)
        change.settle()
        check(change)
        if change.workflow.status.finished:
            return
    raise AssertionError("it goes on for ever")
