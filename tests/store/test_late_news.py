"""What is seen late: ends that came before the word to end, and servers that were away."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from bough.control.scheduling.apply_plan import apply
from bough.core.cycle.plan import plan
from bough.model.backend import Observation, Sight
from bough.model.cluster import Resources
from bough.model.policy import OSMO
from bough.model.workflow import GroupSpec, Priority, TaskSpec, TaskStatus, WorkflowSpec
from bough.model.workflow import WorkflowStatus as Status
from bough.store.schema import GROUPS
from tests.store.backends import grudging
from tests.store.scheduling import cluster, later, statuses
from tests.store.usecases import cancelling, observations, query, settings, timeouts

HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW
T = TaskStatus


@pytest.fixture
def slow(world):
    """2 GPUs of pool `p`, where tasks take their time to end."""
    cluster(world, 2, p=2)
    grudging(world)
    return world


def submit(world, tasks: int = 1, priority: Priority = NORMAL, gpus: int = 2, **fields: object):
    """A gang that has all GPUs, running."""
    members = tuple(
        TaskSpec(f"task-{number}", Resources(gpus=gpus // tasks), lead=number == 0)
        for number in range(tasks)
    )
    limits = {name: fields.pop(name) for name in ("exec_timeout_s",) if name in fields}
    group = GroupSpec("group", members, **fields)  # type: ignore[arg-type]
    workflow = world.submit(0, "p", priority, spec=WorkflowSpec("late", (group,), **limits))
    world.settle()
    assert Status.RUNNING is world.status(workflow)
    return workflow


def see(world, attempt: str, code: int, at_ms: int) -> None:
    """A backend tells of an end."""
    observations.observe(world.site, [Observation(attempt, Sight.ENDED, at_ms, code)])


def preempt(world, priority: Priority = HIGH):
    """Let all be preempted that is LOW, a minute after it began."""
    world.time.pass_minutes(1)
    winner = later(world, 2, "p", priority)
    world.scheduler._decide()
    return winner


@pytest.mark.parametrize(
    ("code", "status", "message"),
    [
        (0, Status.COMPLETED, None),
        (7, Status.FAILED, "Task ended with exit code 7."),
    ],
)
def test_what_had_ended_before_it_was_preempted_does_not_run_again(slow, code, status, message):
    low = submit(slow, priority=LOW)
    winner = preempt(slow)
    (task,) = slow.tasks(low)
    assert "preempt" == task.releasing

    see(slow, task.attempt, code, slow.time.ms - 1)
    slow.settle()

    assert [status, Status.RUNNING] == statuses(slow, low, winner)
    ended = slow.get(low)
    assert (message, slow.time.ms - 1) == (ended.failure_message, ended.ended_ms)
    assert [(code, 0)] == [(t.exit_code, t.retry_id) for t in slow.tasks(low, every=True)]


def test_what_ends_well_after_it_was_preempted_was_preempted(slow):
    low = submit(slow, priority=LOW)
    preempt(slow)
    (task,) = slow.tasks(low)

    see(slow, task.attempt, 0, slow.time.ms)
    slow.settle()

    assert [(1, None), (0, 3006)] == [
        (t.retry_id, t.exit_code) for t in slow.tasks(low, every=True)
    ]


def test_a_unit_that_had_ended_is_not_given_back(slow):
    low = submit(slow, tasks=2, priority=LOW, minimum=1)
    slow.time.pass_minutes(1)
    later(slow, 1, "p", HIGH)
    slow.scheduler._decide()
    (told,) = [task for task in slow.tasks(low) if task.releasing]

    see(slow, told.attempt, 0, slow.time.ms - 1)
    slow.settle()

    assert [T.RUNNING, T.COMPLETED] == [task.status for task in slow.tasks(low, every=True)]


def test_what_had_ended_before_its_time_was_over_is_in_time(slow):
    workflow = submit(slow, tasks=2, exec_timeout_s=60)
    slow.time.pass_minutes(1)
    assert 1 == timeouts.check_due(slow.site)
    lead, other = slow.tasks(workflow)

    see(slow, lead.attempt, 0, slow.time.ms - 1)
    slow.settle()
    slow.backend.let_go(other.attempt)
    slow.settle()

    ended = slow.get(workflow)
    assert (Status.COMPLETED, None) == (ended.status, ended.failure_message)


def test_a_group_whose_lead_is_completed_is_not_out_of_time_while_the_others_end(slow):
    workflow = submit(slow, tasks=2, exec_timeout_s=60)
    lead, other = slow.tasks(workflow)
    see(slow, lead.attempt, 0, slow.time.ms)
    slow.time.pass_minutes(1)

    assert 0 == timeouts.check_due(slow.site)
    slow.settle()
    slow.backend.let_go(other.attempt)
    slow.settle()

    assert Status.COMPLETED is slow.status(workflow)


@pytest.mark.parametrize(("code", "status"), [(0, Status.COMPLETED), (7, Status.RUNNING)])
def test_a_group_that_had_done_its_work_does_not_start_again(slow, code, status):
    changes = {"max_retry_per_task": 1, "default_exit_actions": {"RESCHEDULE": "3"}}
    settings.patch_workflow_settings(slow.site, slow.admin, changes)
    workflow = submit(slow, tasks=2, ignore_nonlead_status=False)
    slow.time.pass_minutes(1)
    lead, other = slow.tasks(workflow)
    see(slow, other.attempt, 3, slow.time.ms)
    assert "restart" == slow.tasks(workflow)[0].releasing

    see(slow, lead.attempt, code, slow.time.ms - 1)
    slow.settle()

    assert status is slow.status(workflow)


def test_what_was_cancelled_is_cancelled_whenever_it_ended(slow):
    workflow = submit(slow)
    (task,) = slow.tasks(workflow)
    slow.time.pass_minutes(1)
    cancelling.cancel(slow.site, slow.admin, workflow.workflow_id)

    see(slow, task.attempt, 0, slow.time.ms - 1)

    assert Status.FAILED_CANCELED is slow.status(workflow)


def test_the_time_of_an_end_is_when_it_was_not_when_it_was_seen(slow):
    workflow = submit(slow)
    (task,) = slow.tasks(workflow)
    end_ms = slow.time.ms + 60_000
    slow.time.pass_minutes(100)

    see(slow, task.attempt, 0, end_ms)

    (ended,) = slow.tasks(workflow)
    assert (end_ms, end_ms) == (ended.ended_ms, slow.get(workflow).ended_ms)


@pytest.mark.parametrize("wrong_minutes", [-60, 60])
def test_no_task_ends_before_it_began_or_in_the_future(slow, wrong_minutes):
    workflow = submit(slow)
    (task,) = slow.tasks(workflow)
    slow.time.pass_minutes(1)

    see(slow, task.attempt, 0, slow.time.ms + wrong_minutes * 60_000)

    expected = task.started_ms if wrong_minutes < 0 else slow.time.ms
    assert expected == slow.tasks(workflow)[0].ended_ms


def test_the_same_end_is_noted_once(slow):
    settings.patch_workflow_settings(slow.site, slow.admin, {"max_lost_retries": 1})
    workflow = submit(slow)
    (task,) = slow.tasks(workflow)
    lost = Observation(task.attempt, Sight.LOST, slow.time.ms)

    for _ in range(3):
        assert (task.attempt,) == observations.observe(slow.site, [lost, lost])
    late = Observation(task.attempt, Sight.RUNNING, slow.time.ms - 1)
    observations.observe(slow.site, [late])

    assert [(1, T.SCHEDULING), (0, T.FAILED_BACKEND_ERROR)] == [
        (each.retry_id, each.status) for each in slow.tasks(workflow, every=True)
    ]


def test_what_is_cancelled_while_a_plan_is_made_waits_for_nothing(slow):
    submit(slow)
    waiting = later(slow, 1, "p", NORMAL)
    view = slow.scheduler.live.builder.take()
    decided = plan(view.snapshot, OSMO)
    assert [f"{waiting.workflow_id}/group"] == [each.workload for each in decided.waits]
    cancelling.cancel(slow.site, slow.admin, waiting.workflow_id)

    apply(slow.site, view, decided)

    (group,) = query.get_workflow(slow.site, slow.admin, waiting.uuid).groups
    assert (T.FAILED_CANCELED, None, None) == (
        group.status,
        group.wait_reason,
        group.wait_message,
    )


def test_a_workflow_whose_record_is_broken_stops_no_other(slow, caplog):
    one, other = submit(slow, gpus=1), submit(slow, gpus=1)
    attempts = [slow.tasks(each)[0].attempt for each in (one, other)]
    with slow.site.store.write() as connection:
        wrong = sa.update(GROUPS).where(GROUPS.c.workflow_uuid == one.uuid)
        connection.execute(wrong.values(status=T.WAITING))

    ends = [Observation(each, Sight.ENDED, slow.time.ms, 0) for each in attempts]
    known = observations.observe(slow.site, ends)

    assert ((attempts[1],), Status.COMPLETED) == (known, slow.status(other))
    text = f"the record of workflow {one.uuid} is broken: a group that is WAITING cannot become"
    assert [True] == [each.getMessage().startswith(text) for each in caplog.records]
