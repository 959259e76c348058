"""Groups that wait, or run, for longer than their limit."""

from __future__ import annotations

import sqlalchemy as sa

from bough.model.workflow import Priority, TaskStatus, WorkflowSpec
from bough.model.workflow import WorkflowStatus as Status
from bough.store.schema import WORKFLOWS
from tests.store.scheduling import cluster, later
from tests.store.usecases import timeouts
from tests.store.world import one_group

NORMAL, LOW = Priority.NORMAL, Priority.LOW


def limited(world, gpus: int = 1, priority: Priority = NORMAL, tasks: int = 1, **limits: int):
    spec = WorkflowSpec("limited", (one_group(gpus, tasks),), **limits)
    world.time.ms += 1
    return world.submit(0, "p", priority, spec=spec)


def pass_seconds(world, seconds: int) -> None:
    world.time.ms += seconds * 1_000
    world.settle()


def test_a_group_that_runs_for_too_long_is_told_to_end(world):
    cluster(world, 2, p=2)
    workflow = limited(world, 2, tasks=2, exec_timeout_s=90)
    world.settle()

    pass_seconds(world, 89)
    assert Status.RUNNING is world.status(workflow)
    pass_seconds(world, 1)

    ended = world.get(workflow)
    text = "Task ran longer than the set limit of 90s."
    assert (Status.FAILED_EXEC_TIMEOUT, "system", text) == (
        ended.status,
        ended.cancelled_by,
        ended.failure_message,
    )
    assert {TaskStatus.FAILED_EXEC_TIMEOUT} == {task.status for task in world.tasks(workflow)}
    assert 2 == len(world.tasks(workflow, every=True))


def test_it_holds_its_gpus_until_it_is_gone(world):
    cluster(world, 1, p=1)
    workflow = limited(world, exec_timeout_s=60)
    world.settle()
    world.time.ms += 60_000

    assert 1 == timeouts.check_due(world.site)

    (task,) = world.tasks(workflow)
    assert (TaskStatus.RUNNING, "exec_timeout") == (task.status, task.releasing)
    assert 0 == timeouts.check_due(world.site)


def test_a_group_that_waits_for_too_long_fails(world):
    cluster(world, 1, p=1)
    later(world, 1, "p", NORMAL)
    world.settle()
    workflow = limited(world, queue_timeout_s=3_600)
    world.settle()

    pass_seconds(world, 3_600)

    ended = world.get(workflow)
    text = "Task stayed in queue longer than the set limit of 1h."
    assert (Status.FAILED_QUEUE_TIMEOUT, text) == (ended.status, ended.failure_message)


def test_only_the_time_in_the_queue_of_the_present_attempt_counts(world):
    cluster(world, 1, p=1)
    low = limited(world, priority=LOW, queue_timeout_s=100)
    world.settle()
    pass_seconds(world, 90)
    for _ in range(2):
        normal = later(world, 1, "p", NORMAL)
        world.settle()
        pass_seconds(world, 90)
        assert Status.PENDING is world.status(low)
        world.finish(normal)
        assert Status.RUNNING is world.status(low)


def test_the_time_before_a_preemption_is_no_time_of_the_next_attempt(world):
    cluster(world, 1, p=1)
    low = limited(world, priority=LOW, exec_timeout_s=100)
    world.settle()
    pass_seconds(world, 90)
    normal = later(world, 1, "p", NORMAL)
    world.settle()
    pass_seconds(world, 90)
    world.finish(normal)

    pass_seconds(world, 99)
    assert Status.RUNNING is world.status(low)
    pass_seconds(world, 1)
    assert Status.FAILED_EXEC_TIMEOUT is world.status(low)


def test_a_group_that_waits_for_others_is_not_in_the_queue_yet(world):
    cluster(world, 1, p=1)
    first, second = one_group(1, name="first"), one_group(1, name="second", upstream=("first",))
    spec = WorkflowSpec("serial", (first, second), queue_timeout_s=50)
    workflow = world.submit(0, "p", NORMAL, spec=spec)
    world.settle()
    pass_seconds(world, 500)
    assert Status.RUNNING is world.status(workflow)

    world.finish(workflow)

    assert Status.RUNNING is world.status(workflow)


def test_limits_survive_a_restart(world):
    cluster(world, 1, p=1)
    workflow = limited(world, exec_timeout_s=60)
    world.settle()
    pass_seconds(world, 59)

    again = world.restarted()
    again.settle()
    assert Status.RUNNING is again.status(workflow)
    pass_seconds(again, 1)

    assert Status.FAILED_EXEC_TIMEOUT is again.status(workflow)


def test_a_limit_that_has_grown_is_counted_anew(world):
    cluster(world, 1, p=1)
    workflow = limited(world, exec_timeout_s=60)
    world.settle()
    with world.site.store.write() as connection:
        grown = sa.update(WORKFLOWS).where(WORKFLOWS.c.uuid == workflow.uuid)
        connection.execute(grown.values(exec_timeout_s=120))

    pass_seconds(world, 60)
    assert Status.RUNNING is world.status(workflow)
    pass_seconds(world, 60)

    assert Status.FAILED_EXEC_TIMEOUT is world.status(workflow)


def test_a_timeout_counts_more_than_a_preemption_under_way(world):
    cluster(world, 1, p=1)
    low = limited(world, priority=LOW, exec_timeout_s=60)
    world.settle()
    world.time.ms += 60_000
    later(world, 1, "p", NORMAL)
    world.scheduler._decide()
    assert "preempt" == world.tasks(low)[0].releasing
    assert 1 == timeouts.check_due(world.site)

    world.settle()

    assert Status.FAILED_EXEC_TIMEOUT is world.status(low)
