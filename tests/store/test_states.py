"""What follows the end of an attempt: retries, gangs that start again, starts that fail."""

from __future__ import annotations

import pytest

from bough.model.backend import Sight, StartFault
from bough.model.workflow import Priority, TaskStatus
from bough.model.workflow import WorkflowStatus as Status
from tests.store.scheduling import statuses
from tests.store.slow_gangs import end, gang, gang_spec, history, now, slow_cluster
from tests.store.usecases import settings

HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW
T = TaskStatus


@pytest.fixture
def slow(world):
    return slow_cluster(world)


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


@pytest.mark.parametrize("sight", [Sight.STUCK, Sight.UNSTARTABLE])
@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        (None, "FAILED_START_ERROR", 3003),
        (StartFault.IMAGE_PULL, "FAILED_IMAGE_PULL", 3003),
        (StartFault.TIMEOUT, "FAILED_START_TIMEOUT", 3005),
    ],
)
def test_why_a_gang_could_not_be_started_is_its_status(slow, sight, fault, status, code):
    workflow = slow.submit(0, "p", NORMAL, spec=gang_spec())
    slow.scheduler._decide()
    bad = slow.tasks(workflow)[1].attempt
    slow.backend.show(bad, sight, message="not there", fault=fault)
    # First it, then the others of its group, are told to end.
    for _ in range(2):
        slow.settle()
        slow.backend.let_go()
    slow.settle()

    assert Status(status) is slow.status(workflow)
    assert {(T(status), code)} == {(task.status, task.exit_code) for task in slow.tasks(workflow)}


def test_what_is_stuck_holds_its_place_and_is_told_to_end_after_that_is_stored(slow):
    workflow = slow.submit(0, "p", NORMAL, spec=gang_spec())
    slow.scheduler._decide()
    stuck = slow.tasks(workflow)[1].attempt
    slow.backend.show(stuck, Sight.STUCK, message="not there", fault=StartFault.TIMEOUT)
    slow.settle()

    (found,) = [task for task in slow.tasks(workflow) if task.attempt == stuck]
    assert (T.INITIALIZING, "stuck_start_timeout") == (found.status, found.releasing)
    assert "not there" == found.failure_message


def test_what_is_stuck_may_be_tried_again(slow):
    changes = {"default_exit_actions": {"RESCHEDULE": "3003"}}
    settings.patch_workflow_settings(slow.site, slow.admin, changes)
    workflow = slow.submit(0, "p", NORMAL, spec=gang_spec())
    slow.scheduler._decide()
    slow.backend.show(slow.tasks(workflow)[1].attempt, Sight.STUCK)
    for _ in range(2):
        slow.settle()
        slow.backend.let_go()
    slow.settle()

    assert [(1, T.RUNNING)] * 3 == now(slow, workflow)
    assert [T.RESCHEDULED, T.RUNNING] == history(slow, workflow, "task-1")


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
