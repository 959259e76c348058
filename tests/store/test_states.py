"""What follows what: ends of attempts, retries, gangs that start again, notice and grace."""

from __future__ import annotations

import pytest

from bough.model.backend import Sight, StartFault
from bough.model.cluster import Resources
from bough.model.workflow import GroupSpec, Priority, TaskSpec, TaskStatus, WorkflowSpec
from bough.model.workflow import WorkflowStatus as Status
from tests.store.backends import grudging
from tests.store.scheduling import cluster, later, statuses
from tests.store.usecases import query, settings

HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW
T = TaskStatus


@pytest.fixture
def slow(world):
    """8 GPUs of pool `p`, where tasks take their time to end; one retry is allowed."""
    cluster(world, 8, p=8)
    grudging(world)
    settings.patch_workflow_settings(world.site, world.admin, {"max_retry_per_task": 1})
    return world


def gang_spec(tasks: int = 3, gpus: int = 1, **fields: object) -> WorkflowSpec:
    """A gang whose tasks are tried again after exit code 3."""
    members = tuple(
        TaskSpec(
            f"task-{number}",
            Resources(gpus=gpus),
            lead=number == 0,
            exit_actions={"RESCHEDULE": "3"},
        )
        for number in range(tasks)
    )
    return WorkflowSpec("gang", (GroupSpec("group", members, **fields),))  # type: ignore[arg-type]


def gang(world, priority: Priority = NORMAL, **fields):
    """The same, running."""
    workflow = world.submit(0, "p", priority, spec=gang_spec(**fields))
    world.settle()
    assert Status.RUNNING is world.status(workflow)
    return workflow


def end(world, workflow, **codes: int) -> None:
    """Let tasks of a workflow end by themselves with these exit codes."""
    for task in world.tasks(workflow):
        code = codes.get(task.name.replace("-", "_"))
        if code is not None:
            world.backend.show(task.attempt, Sight.ENDED, code)
    world.settle()


def now(world, workflow) -> list[tuple[int, TaskStatus]]:
    return [(task.retry_id, task.status) for task in world.tasks(workflow)]


def history(world, workflow, name: str) -> list[TaskStatus]:
    """Every attempt of a task, the first one first."""
    tasks = [task for task in world.tasks(workflow, every=True) if task.name == name]
    return [task.status for task in sorted(tasks, key=lambda task: task.retry_id)]


# Leads and the others


def test_the_others_end_as_their_lead_did(slow):
    done, failed = gang(slow, tasks=2), gang(slow, tasks=2)
    end(slow, done, task_0=0)
    end(slow, failed, task_0=7)

    assert ["lead", "lead"] == [stop.reason for stop in slow.backend.stops]
    assert [Status.RUNNING] * 2 == statuses(slow, done, failed)
    slow.backend.let_go()
    slow.settle()

    assert [Status.COMPLETED, Status.FAILED] == statuses(slow, done, failed)
    assert [(0, T.COMPLETED)] * 2 == now(slow, done)
    assert [(0, T.FAILED)] * 2 == now(slow, failed)
    assert "Task ended with exit code 7." == slow.get(failed).failure_message


def test_a_lead_that_is_tried_again_restarts_the_others(slow):
    workflow = gang(slow)

    end(slow, workflow, task_0=3)
    assert [(1, T.SCHEDULING), (0, T.RUNNING), (0, T.RUNNING)] == now(slow, workflow)
    assert Status.RUNNING is slow.status(workflow)
    (stop,) = slow.backend.stops
    assert ("restart", 30, 2) == (stop.reason, stop.grace_s, len(stop.attempts))

    slow.backend.let_go(stop.attempts[0])
    slow.settle()
    # Whole or absent: nothing starts while one of them is still there.
    assert {T.SCHEDULING, T.RUNNING} == {status for _, status in now(slow, workflow)}
    assert 1 == sum(status is T.RUNNING for _, status in now(slow, workflow))
    slow.backend.let_go()
    slow.settle()

    assert [(1, T.RUNNING)] * 3 == now(slow, workflow)
    assert [T.RESCHEDULED, T.RUNNING] == history(slow, workflow, "task-1")
    assert 3 == len(slow.backend.starts[-1].launches)


def test_one_that_had_failed_comes_again_with_its_lead(slow):
    workflow = gang(slow)
    end(slow, workflow, task_1=1)
    assert [(0, T.RUNNING), (0, T.FAILED), (0, T.RUNNING)] == now(slow, workflow)

    end(slow, workflow, task_0=3)
    slow.backend.let_go()
    slow.settle()

    assert [(1, T.RUNNING)] * 3 == now(slow, workflow)
    assert [T.FAILED, T.RUNNING] == history(slow, workflow, "task-1")


def test_another_one_that_is_tried_again_comes_alone(slow):
    workflow = gang(slow)

    end(slow, workflow, task_2=3)

    assert [(0, T.RUNNING), (0, T.RUNNING), (1, T.RUNNING)] == now(slow, workflow)
    assert [] == slow.backend.stops


def test_another_one_restarts_all_where_every_task_counts(slow):
    workflow = gang(slow, ignore_nonlead_status=False)

    end(slow, workflow, task_2=3)
    assert Status.RUNNING is slow.status(workflow)
    slow.backend.let_go()
    slow.settle()

    assert [(1, T.RUNNING)] * 3 == now(slow, workflow)


def test_another_one_that_fails_ends_all_where_every_task_counts(slow):
    workflow = gang(slow, ignore_nonlead_status=False)
    end(slow, workflow, task_1=0)

    end(slow, workflow, task_2=5)
    (stop,) = slow.backend.stops
    assert ("fellow", 30, 1) == (stop.reason, stop.grace_s, len(stop.attempts))
    slow.backend.let_go()
    slow.settle()

    ended = slow.get(workflow)
    text = "Task task-2 of its group has failed. Task ended with exit code 5."
    assert (Status.FAILED, text) == (ended.status, ended.failure_message)
    assert [(0, T.FAILED), (0, T.COMPLETED), (0, T.FAILED)] == now(slow, workflow)


def test_another_one_that_fails_ends_no_other_where_only_the_lead_counts(slow):
    workflow = gang(slow)

    end(slow, workflow, task_2=5)

    assert [] == slow.backend.stops
    assert [(0, T.RUNNING), (0, T.RUNNING), (0, T.FAILED)] == now(slow, workflow)


@pytest.mark.parametrize("second", ["task_0", "task_1", "task_2"])
def test_a_limit_of_retries_ends_all_where_every_task_counts(slow, second):
    workflow = gang(slow, ignore_nonlead_status=False)
    for task in ("task_2", second):
        end(slow, workflow, **{task: 3})
        slow.backend.let_go()
        slow.settle()

    assert ["restart", "fellow"] == [stop.reason for stop in slow.backend.stops]
    assert Status.FAILED is slow.status(workflow)
    assert [(1, T.FAILED)] * 3 == now(slow, workflow)


def test_all_that_end_at_once_come_again_once(slow):
    workflow = gang(slow, ignore_nonlead_status=False)

    end(slow, workflow, task_0=3, task_1=3, task_2=3)

    assert [(1, T.RUNNING)] * 3 == now(slow, workflow)
    assert [] == slow.backend.stops


def test_a_limit_of_retries_ends_the_whole_group(slow):
    workflow = gang(slow, tasks=2)
    for _ in range(2):
        end(slow, workflow, task_0=3)
        slow.backend.let_go()
        slow.settle()

    assert Status.FAILED is slow.status(workflow)
    text = "Task ended with exit code 3. No exit action applied due to retry limit 1."
    assert text == slow.get(workflow).failure_message
    assert [T.RESCHEDULED, T.FAILED] == history(slow, workflow, "task-1")


def test_what_has_ended_is_not_needed_any_more(slow):
    """A gang goes on with those that are left, and one of these can come again."""
    workflow = gang(slow)
    end(slow, workflow, task_1=0)

    end(slow, workflow, task_2=3)

    assert [(0, T.RUNNING), (0, T.COMPLETED), (1, T.RUNNING)] == now(slow, workflow)


# Starts that fail, and losses


def test_a_gang_of_which_one_cannot_be_started_ends(slow):
    workflow = slow.submit(0, "p", NORMAL, spec=gang_spec())
    slow.scheduler._decide()
    bad = slow.tasks(workflow)[1].attempt
    slow.backend.show(bad, Sight.UNSTARTABLE, message="no such file: train.sh")
    slow.settle()
    slow.backend.let_go()
    slow.settle()

    assert Status.FAILED_START_ERROR is slow.status(workflow)
    assert {(T.FAILED_START_ERROR, 3003)} == {
        (task.status, task.exit_code) for task in slow.tasks(workflow)
    }
    text = "Task task-1 of its group could not be started. no such file: train.sh"
    assert text == slow.get(workflow).failure_message


def test_a_gang_of_which_one_cannot_be_started_may_be_tried_again(slow):
    changes = {"default_exit_actions": {"RESCHEDULE": "3003"}}
    settings.patch_workflow_settings(slow.site, slow.admin, changes)
    workflow = slow.submit(0, "p", NORMAL, spec=gang_spec())
    slow.scheduler._decide()
    slow.backend.show(slow.tasks(workflow)[1].attempt, Sight.UNSTARTABLE)
    slow.settle()
    slow.backend.let_go()
    slow.settle()

    assert [(1, T.RUNNING)] * 3 == now(slow, workflow)
    assert [T.RESCHEDULED, T.RUNNING] == history(slow, workflow, "task-1")


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        (StartFault.IMAGE_PULL, "FAILED_IMAGE_PULL", 3003),
        (StartFault.TIMEOUT, "FAILED_START_TIMEOUT", 3005),
    ],
)
def test_why_a_gang_could_not_be_started_is_its_status(slow, fault, status, code):
    workflow = slow.submit(0, "p", NORMAL, spec=gang_spec())
    slow.scheduler._decide()
    bad = slow.tasks(workflow)[1].attempt
    slow.backend.show(bad, Sight.UNSTARTABLE, message="not there", fault=fault)
    slow.settle()
    slow.backend.let_go()
    slow.settle()

    assert Status(status) is slow.status(workflow)
    assert {(T(status), code)} == {(task.status, task.exit_code) for task in slow.tasks(workflow)}


def test_what_a_task_waits_for_while_it_is_started_is_read_until_it_runs(slow):
    workflow = slow.submit(0, "p", NORMAL, spec=gang_spec())
    slow.scheduler._decide()
    attempt = slow.tasks(workflow)[1].attempt
    said = []
    for sight, message in (
        (Sight.STARTING, "ErrImagePull: no such image"),
        (Sight.STARTING, "ContainerCreating"),
        (Sight.RUNNING, ""),
    ):
        slow.backend.show(attempt, sight, message=message)
        slow.settle()
        said.append((slow.tasks(workflow)[1].status, slow.tasks(workflow)[1].failure_message))

    assert [
        (T.INITIALIZING, "ErrImagePull: no such image"),
        (T.INITIALIZING, "ContainerCreating"),
        (T.RUNNING, None),
    ] == said


def test_what_is_lost_comes_again_and_counts_as_no_retry(slow):
    settings.patch_workflow_settings(slow.site, slow.admin, {"max_retry_per_task": 0})
    workflow = gang(slow, tasks=1)
    (task,) = slow.tasks(workflow)

    slow.backend.show(task.attempt, Sight.LOST)
    slow.settle()

    assert [(1, T.RUNNING)] == now(slow, workflow)
    _, lost = slow.tasks(workflow, every=True)
    assert (T.FAILED_BACKEND_ERROR, 3001) == (lost.status, lost.exit_code)
    assert lost.attempt not in {each.attempt for each in slow.backend.observe()}


def test_a_signal_is_named(slow):
    workflow = gang(slow, tasks=1)

    slow.backend.show(slow.tasks(workflow)[0].attempt, Sight.ENDED, 137, signal=9)
    slow.settle()

    assert "Task was killed by SIGKILL." == slow.get(workflow).failure_message


def test_what_ends_before_it_was_seen_to_run_has_run_nevertheless(slow):
    workflow = slow.submit(0, "p", NORMAL, spec=gang_spec(tasks=1))
    slow.scheduler._decide()
    slow.backend.show(slow.tasks(workflow)[0].attempt, Sight.ENDED, 0)
    slow.settle()

    done = slow.get(workflow)
    assert (Status.COMPLETED, slow.time.ms) == (done.status, done.started_ms)


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

    query.cancel(slow.site, slow.admin, normal.workflow_id)
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
    query.cancel(slow.site, slow.admin, workflow.workflow_id, message="enough")
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
        query.cancel(slow.site, slow.admin, workflow.workflow_id, force=force)
    slow.settle()

    assert [30, 0] == [stop.grace_s for stop in slow.backend.stops]
    assert Status.RUNNING is slow.status(workflow)
    slow.backend.let_go()
    slow.settle()
    assert Status.FAILED_CANCELED is slow.status(workflow)
    again = query.cancel(slow.site, slow.admin, workflow.workflow_id, force=True)
    assert slow.get(workflow) == again


def test_what_no_backend_will_see_end_is_ended_by_force(slow):
    workflow = gang(slow, tasks=1)
    slow.time.pass_minutes(10)

    ended = query.cancel(slow.site, slow.admin, workflow.workflow_id, force=True)

    assert Status.FAILED_CANCELED is ended.status


def test_what_is_cancelled_while_it_is_preempted_does_not_come_again(slow):
    low = gang(slow, LOW, tasks=1, gpus=8)
    later(slow, 8, "p", NORMAL)
    slow.settle()

    query.cancel(slow.site, slow.admin, low.workflow_id)
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

    query.cancel(slow.site, slow.admin, workflow.workflow_id)
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

    query.cancel(slow.site, slow.admin, workflow.workflow_id, message="enough")
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
