"""What follows when a workflow is preempted or cancelled: notice, grace, another try or the end."""

from __future__ import annotations

import pytest

from bough.model.cluster import Resources
from bough.model.workflow import GroupSpec, Priority, TaskSpec, TaskStatus, WorkflowSpec
from bough.model.workflow import WorkflowStatus as Status
from tests.store.scheduling import later, statuses
from tests.store.slow_gangs import end, gang, history, now, slow_cluster
from tests.store.usecases import cancelling, query

HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW
T = TaskStatus


@pytest.fixture
def slow(world):
    return slow_cluster(world)


# Preemption


def test_a_preempted_gang_has_notice_and_holds_its_gpus_until_it_is_gone(slow):
    low = gang(slow, LOW, tasks=4, gpus=2)
    high = later(slow, 4, "p", HIGH)
    slow.settle()

    (stop,) = slow.backend.stops
    assert ("preempt", 30, 4) == (stop.reason, stop.grace_s, len(stop.attempts))
    assert [Status.RUNNING, Status.PENDING] == statuses(slow, low, high)
    slow.backend.let_go(*stop.attempts[:3])
    slow.settle()
    # Its own room is free, but the gang that is ending has not ended: nothing of it starts again.
    assert [Status.RUNNING, Status.RUNNING] == statuses(slow, low, high)
    assert 3 == sum(status is T.SCHEDULING for _, status in now(slow, low))
    slow.backend.let_go()
    slow.settle()

    assert [Status.PENDING, Status.RUNNING] == statuses(slow, low, high)
    assert [(1, T.SCHEDULING)] * 4 == now(slow, low)
    assert [T.FAILED_PREEMPTED, T.SCHEDULING] == history(slow, low, "task-3")
    slow.finish(high)
    assert [(1, T.RUNNING)] * 4 == now(slow, low)


@pytest.mark.parametrize("first", ["task-0", "task-1"])
def test_a_preempted_gang_comes_again_as_a_whole_with_its_lead(slow, first):
    """Whatever the others say about it themselves, and whichever of them ends first."""
    members = (
        TaskSpec("task-0", Resources(gpus=4), lead=True),
        TaskSpec("task-1", Resources(gpus=4), exit_actions={"FAIL": "3006"}),
    )
    low = slow.submit(0, "p", LOW, spec=WorkflowSpec("gang", (GroupSpec("group", members),)))
    slow.settle()
    high = later(slow, 8, "p", HIGH)
    slow.settle()
    attempts = {task.name: task.attempt for task in slow.tasks(low)}
    slow.backend.let_go(attempts[first])
    slow.settle()
    slow.backend.let_go()
    slow.settle()
    slow.finish(high)

    assert [(1, T.RUNNING)] * 2 == now(slow, low)
    assert [T.FAILED_PREEMPTED, T.RUNNING] == history(slow, low, "task-1")


def test_room_that_is_made_for_a_group_is_not_taken_by_a_later_one(slow):
    low = gang(slow, LOW, tasks=1, gpus=8)
    normal = later(slow, 8, "p", NORMAL)
    slow.settle()
    high = later(slow, 8, "p", HIGH)
    slow.settle()

    again = slow.restarted()
    again.settle()

    assert [Status.PENDING, Status.RUNNING, Status.PENDING] == statuses(again, low, normal, high)


def test_no_group_keeps_a_claim_to_room_that_is_not_made_any_more(slow):
    gang(slow, LOW, tasks=1, gpus=8)
    normal = later(slow, 8, "p", NORMAL)
    slow.settle()
    assert slow.scheduler.live.builder.take().snapshot.progress

    cancelling.cancel(slow.site, slow.admin, normal.workflow_id)
    slow.settle()

    assert {} == slow.scheduler.live.builder.take().snapshot.progress


def test_what_an_elastic_gang_gives_back_is_no_failure(slow):
    elastic = gang(slow, LOW, tasks=8, minimum=4)
    later(slow, 3, "p", HIGH)
    slow.settle()
    (stop,) = slow.backend.stops
    assert ("give_back", 3) == (stop.reason, len(stop.attempts))
    slow.backend.let_go()
    slow.settle()

    assert Status.RUNNING is slow.status(elastic)
    given_back = [task for task in slow.tasks(elastic, every=True) if task.status.finished]
    for_whom = "for job-1/group of root (HIGH in pool p)"
    text = f"Given back by an elastic group: preempt at pool p, {for_whom}."
    assert {(T.RESCHEDULED, text)} == {(task.status, task.failure_message) for task in given_back}
    assert (0, T.RUNNING) == now(slow, elastic)[0]


# Cancelling


def test_what_is_cancelled_has_notice_and_holds_its_gpus_until_it_is_gone(slow):
    workflow = gang(slow, tasks=1, gpus=8)
    cancelling.cancel(slow.site, slow.admin, workflow.workflow_id, message="enough")
    waiting = later(slow, 1, "p", NORMAL)
    slow.settle()

    (stop,) = slow.backend.stops
    assert ("cancel", 30) == (stop.reason, stop.grace_s)
    assert [Status.RUNNING, Status.PENDING] == statuses(slow, workflow, waiting)
    slow.backend.let_go()
    slow.settle()

    ended = slow.get(workflow)
    text = "Task was canceled by user: root. enough"
    assert (Status.FAILED_CANCELED, "root", text) == (
        ended.status,
        ended.cancelled_by,
        ended.failure_message,
    )
    assert Status.RUNNING is slow.status(waiting)


def test_what_is_cancelled_by_force_has_none(slow):
    workflow = gang(slow, tasks=1)
    for force in (False, True):
        cancelling.cancel(slow.site, slow.admin, workflow.workflow_id, force=force)
    slow.settle()

    assert [30, 0] == [stop.grace_s for stop in slow.backend.stops]
    assert Status.RUNNING is slow.status(workflow)
    slow.backend.let_go()
    slow.settle()
    assert Status.FAILED_CANCELED is slow.status(workflow)
    again = cancelling.cancel(slow.site, slow.admin, workflow.workflow_id, force=True)
    assert slow.get(workflow) == again


def test_what_no_backend_will_see_end_is_ended_by_force(slow):
    workflow = gang(slow, tasks=1)
    slow.time.pass_minutes(10)

    ended = cancelling.cancel(slow.site, slow.admin, workflow.workflow_id, force=True)

    assert Status.FAILED_CANCELED is ended.status


def test_what_is_cancelled_while_it_is_preempted_does_not_come_again(slow):
    low = gang(slow, LOW, tasks=1, gpus=8)
    later(slow, 8, "p", NORMAL)
    slow.settle()

    cancelling.cancel(slow.site, slow.admin, low.workflow_id)
    slow.settle()
    slow.backend.let_go()
    slow.settle()

    assert Status.FAILED_CANCELED is slow.status(low)
    assert [T.FAILED_CANCELED] == history(slow, low, "task-0")


def test_all_groups_that_are_not_over_are_cancelled(slow):
    def chain(name: str, *upstream: str) -> GroupSpec:
        task = TaskSpec(f"{name}-task", Resources(gpus=1), lead=True)
        return GroupSpec(name, (task,), upstream=upstream)

    spec = WorkflowSpec("chain", (chain("a"), chain("b", "a"), chain("c", "b")))
    workflow = slow.submit(0, "p", NORMAL, spec=spec)
    slow.settle()
    slow.finish(workflow)

    cancelling.cancel(slow.site, slow.admin, workflow.workflow_id)
    slow.settle()
    slow.backend.let_go()
    slow.settle()

    view = query.get_workflow(slow.site, slow.admin, workflow.uuid)
    assert [T.COMPLETED, T.FAILED_CANCELED, T.FAILED_CANCELED] == [g.status for g in view.groups]
    assert Status.FAILED_CANCELED is view.workflow.status


def test_a_workflow_says_what_it_ended_for(slow):
    one = GroupSpec("a", (TaskSpec("one", Resources(gpus=1), lead=True),))
    two = GroupSpec("b", (TaskSpec("two", Resources(gpus=1), lead=True),))
    workflow = slow.submit(0, "p", NORMAL, spec=WorkflowSpec("both", (one, two)))
    slow.settle()
    end(slow, workflow, one=5)

    cancelling.cancel(slow.site, slow.admin, workflow.workflow_id, message="enough")
    slow.settle()
    slow.backend.let_go()
    slow.settle()

    ended = slow.get(workflow)
    text = "Task was canceled by user: root. enough"
    assert (Status.FAILED_CANCELED, text) == (ended.status, ended.failure_message)


def test_a_group_fails_with_those_before_it(slow):
    first = GroupSpec("a", (TaskSpec("one", Resources(gpus=1), lead=True),))
    second = GroupSpec("b", (TaskSpec("two", Resources(gpus=1), lead=True),), upstream=("a",))
    third = GroupSpec("c", (TaskSpec("three", Resources(gpus=1), lead=True),), upstream=("b",))
    workflow = slow.submit(0, "p", NORMAL, spec=WorkflowSpec("dag", (first, second, third)))
    slow.settle()

    end(slow, workflow, one=5)

    assert Status.FAILED is slow.status(workflow)
    assert [(T.FAILED, 5), (T.FAILED_UPSTREAM, 3000), (T.FAILED_UPSTREAM, 3000)] == [
        (task.status, task.exit_code) for task in slow.tasks(workflow)
    ]
