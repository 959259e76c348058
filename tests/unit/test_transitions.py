"""The table of states is complete, and says no to what cannot be."""

from __future__ import annotations

import pytest

from bough.errors import Broken
from bough.model.transitions import (
    GROUP_TRANSITIONS,
    TASK_TRANSITIONS,
    WORKFLOW_TRANSITIONS,
    TaskEvent,
    check_group,
    check_workflow,
    next_status,
)
from bough.model.workflow import UNFINISHED, TaskStatus, WorkflowStatus

T, W, E = TaskStatus, WorkflowStatus, TaskEvent


def test_every_event_has_its_line():
    assert [event.value for event in TaskEvent] == list(
        dict.fromkeys(each.event for each in TASK_TRANSITIONS)
    )


@pytest.mark.parametrize("table", [TASK_TRANSITIONS, GROUP_TRANSITIONS, WORKFLOW_TRANSITIONS])
def test_nothing_follows_an_end_and_everything_can_end(table):
    reached = {each.target for each in table}
    left = {source for each in table for source in each.sources if source is not None}

    assert not [status for status in left if status.finished]
    assert {status for status in reached if not status.finished} <= left


def test_an_event_decides_the_next_status():
    life = [(None, E.HOLD_BACK), (T.WAITING, E.RELEASE), (T.SCHEDULING, E.BIND)]
    life += [(T.INITIALIZING, E.RUN), (T.RUNNING, E.PREEMPT)]

    assert [T.WAITING, T.SCHEDULING, T.INITIALIZING, T.RUNNING, T.FAILED_PREEMPTED] == [
        next_status(status, event) for status, event in life
    ]
    assert {T.FAILED_CANCELED} == {next_status(status, E.CANCEL) for status in UNFINISHED}


@pytest.mark.parametrize(
    ("status", "event", "message"),
    [
        (T.SCHEDULING, E.RUN, "a task that is SCHEDULING cannot run"),
        (T.COMPLETED, E.CANCEL, "a task that is COMPLETED cannot cancel"),
        (None, E.BIND, "a task that is new cannot bind"),
        (T.RUNNING, E.QUEUE_TIMEOUT, "a task that is RUNNING cannot queue_timeout"),
    ],
)
def test_what_cannot_happen_is_a_bug(status, event, message):
    with pytest.raises(Broken, match=message):
        next_status(status, event)


def test_groups_and_workflows_change_only_as_the_table_says():
    check_group(T.RUNNING, T.SCHEDULING)
    check_group(T.COMPLETED, T.COMPLETED)
    check_workflow(W.RUNNING, W.PENDING)
    with pytest.raises(Broken, match="a group that is WAITING cannot become RUNNING"):
        check_group(T.WAITING, T.RUNNING)
    with pytest.raises(Broken, match="a group that is FAILED cannot become SCHEDULING"):
        check_group(T.FAILED, T.SCHEDULING)
    with pytest.raises(Broken, match="a workflow that is new cannot become RUNNING"):
        check_workflow(None, W.RUNNING)
