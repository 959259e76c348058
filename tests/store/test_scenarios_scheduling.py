"""Scenarios 143 to 175, as far as nothing has to run: priority, quota, preemption, borrowing."""

from __future__ import annotations

import pytest

from bough.model.cluster import Resources
from bough.model.workflow import GroupSpec, Priority, TaskSpec, TaskStatus, WorkflowSpec
from bough.model.workflow import WorkflowStatus as Status
from tests.store.scheduling import cluster, later, statuses
from tests.store.usecases import Filter, cancelling, query, settings, submit
from tests.store.world import job

HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW


@pytest.mark.parametrize("priority", [HIGH, NORMAL, LOW])
def test_scenario_143_only_low_may_borrow_and_be_evicted(world, priority):
    cluster(world, 4, p=2, q=2)
    own = later(world, 2, "p", priority)
    beyond = later(world, 2, "p", priority)
    world.settle()
    borrows = priority is LOW
    assert [Status.RUNNING, Status.RUNNING if borrows else Status.PENDING] == statuses(
        world, own, beyond
    )

    theirs = later(world, 2, "q", NORMAL)
    world.settle()
    assert [Status.RUNNING, Status.PENDING, Status.RUNNING] == statuses(world, own, beyond, theirs)

    urgent = later(world, 2, "p", HIGH)
    world.settle()
    # Guaranteed work gives way to nothing, also in its own pool.
    evicted = [Status.PENDING, Status.RUNNING] if borrows else [Status.RUNNING, Status.PENDING]
    assert evicted == statuses(world, own, urgent)


def test_scenario_143_work_is_normal_unless_it_says_otherwise(team):
    accepted = submit(team.site, team.admin, "team", job(1)).workflow
    assert NORMAL is accepted.priority


def test_scenarios_144_and_145_the_queue_is_by_priority_then_by_time(world):
    cluster(world, 2, p=2)
    running = [later(world, 1, "p", NORMAL) for _ in range(2)]
    world.settle()
    third, fourth, fifth, sixth = (
        later(world, 1, "p", each) for each in (LOW, NORMAL, HIGH, NORMAL)
    )
    world.settle()

    started = []
    for _ in range(4):
        world.finish(running.pop(0))
        (now,) = [
            each
            for each in (third, fourth, fifth, sixth)
            if world.status(each) is Status.RUNNING and each not in running
        ]
        started.append(now)
        running.append(now)

    assert [fifth, fourth, sixth, third] == started


def test_scenario_146_high_never_preempts_normal(world):
    cluster(world, 2, p=2)
    first = later(world, 2, "p", NORMAL)
    world.settle()
    second = later(world, 1, "p", HIGH)
    world.settle()

    assert [Status.RUNNING, Status.PENDING] == statuses(world, first, second)


def test_scenario_147_quota_counts_although_gpus_are_idle(world):
    cluster(world, 4, p=2)
    running = later(world, 2, "p", NORMAL)
    world.settle()
    waiting = later(world, 1, "p", HIGH)
    low = later(world, 1, "p", LOW)
    world.settle()

    assert [Status.RUNNING, Status.PENDING, Status.RUNNING] == statuses(
        world, running, waiting, low
    )


def test_scenario_148_low_does_not_count_towards_the_quota(world):
    cluster(world, 4, p=2)
    low = later(world, 2, "p", LOW)
    world.settle()
    normal = later(world, 2, "p", NORMAL)
    world.settle()

    assert [Status.RUNNING] * 2 == statuses(world, low, normal)
    usage = world.rows()["p"].usage
    assert (2, 4) == (usage.quota_used, usage.total_usage)


def test_scenarios_149_and_150_a_preempted_workflow_is_queued_again_in_its_old_place(world):
    cluster(world, 2, p=2)
    first, second = later(world, 1, "p", LOW), later(world, 1, "p", NORMAL)
    world.settle()
    third, fourth = later(world, 1, "p", LOW), later(world, 1, "p", LOW)
    world.settle()
    fifth = later(world, 1, "p", NORMAL)
    world.settle()

    assert [Status.PENDING, Status.RUNNING, Status.RUNNING] == statuses(world, first, second, fifth)
    latest, before = world.tasks(first, every=True)
    assert (1, TaskStatus.SCHEDULING, None) == (latest.retry_id, latest.status, latest.exit_code)
    assert (0, TaskStatus.FAILED_PREEMPTED, 3006) == (
        before.retry_id,
        before.status,
        before.exit_code,
    )
    world.finish(fifth)
    assert [Status.RUNNING, Status.PENDING, Status.PENDING] == statuses(world, first, third, fourth)
    world.finish(second)
    assert [Status.RUNNING, Status.RUNNING, Status.PENDING] == statuses(world, first, third, fourth)


def test_scenario_151_all_three_conditions_are_needed(world):
    cluster(world, 3, p=2)
    normal, low = later(world, 2, "p", NORMAL), later(world, 1, "p", LOW)
    world.settle()
    beyond, another_low = later(world, 1, "p", NORMAL), later(world, 1, "p", LOW)
    world.settle()

    assert [Status.RUNNING, Status.RUNNING, Status.PENDING, Status.PENDING] == statuses(
        world, normal, low, beyond, another_low
    )


def test_scenario_151_nothing_is_preempted_where_nothing_is_low(world):
    cluster(world, 2, p=2, q=2)
    theirs = later(world, 2, "q", NORMAL)
    world.settle()
    ours = later(world, 1, "p", HIGH)
    world.settle()

    assert [Status.RUNNING, Status.PENDING] == statuses(world, theirs, ours)


def test_scenario_152_what_would_exceed_the_quota_preempts_nothing(world):
    cluster(world, 4, p=4)
    later(world, 3, "p", NORMAL)
    low = later(world, 1, "p", LOW)
    world.settle()
    two = later(world, 2, "p", NORMAL)
    world.settle()
    assert [Status.RUNNING, Status.PENDING] == statuses(world, low, two)
    cancelling.cancel(world.site, world.admin, two.workflow_id)

    one = later(world, 1, "p", NORMAL)
    world.settle()

    assert [Status.PENDING, Status.RUNNING] == statuses(world, low, one)


def test_scenario_153_nothing_is_preempted_in_vain_and_the_newest_goes_first(world):
    cluster(world, 4, p=4)
    lows = [later(world, 1, "p", LOW) for _ in range(3)]
    world.settle()
    one = later(world, 1, "p", NORMAL)
    world.settle()
    assert [Status.RUNNING] * 4 == statuses(world, *lows, one)

    later(world, 1, "p", NORMAL)
    world.settle()

    assert [Status.RUNNING, Status.RUNNING, Status.PENDING] == statuses(world, *lows)


def preempted_with(world, **actions: str):
    """A LOW workflow with exit actions, after it was preempted."""
    task = TaskSpec("task", Resources(gpus=1), lead=True, exit_actions=actions)
    spec = WorkflowSpec("low", (GroupSpec("group", (task,)),))
    low = world.submit(0, "p", LOW, spec=spec)
    world.settle()
    later(world, 1, "p", NORMAL)
    world.settle()
    return low


def test_scenario_154_exit_actions_decide_what_follows_a_preemption(world):
    cluster(world, 1, p=1)
    cases = [
        ({"RESCHEDULE": "3006"}, Status.PENDING),
        ({"FAIL": "3006"}, Status.FAILED_PREEMPTED),
        ({"COMPLETE": "3006"}, Status.COMPLETED),
    ]
    for actions, expected in cases:
        low = preempted_with(world, **actions)
        assert expected is world.status(low)
        page = query.list_workflows(
            world.site, world.admin, Filter(statuses=(Status.RUNNING, Status.PENDING))
        )
        for each in page.workflows:
            world.cancel(each)


def test_scenario_155_preemptions_can_be_limited(world):
    cluster(world, 1, p=1)
    changes = {"max_preemption_retries": 0}
    settings.patch_workflow_settings(world.site, world.admin, changes)

    low = preempted_with(world)

    assert Status.FAILED_PREEMPTED is world.status(low)
    message = world.get(low).failure_message
    assert message.startswith("Task was preempted at ")
    assert message.endswith(". No exit action applied due to retry limit 0.")
    assert ", for job-1/group of root (NORMAL in pool p)" in message
