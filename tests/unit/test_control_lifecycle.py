"""What the statuses of tasks mean for groups and workflows, and what follows an end."""

from __future__ import annotations

from bough.control.lifecycle import (
    CANCEL,
    GIVE_BACK,
    LEAD,
    Verdict,
    group_status,
    verdict,
    workflow_status,
)
from bough.model.settings import WorkflowSettings
from bough.model.workflow import GroupSpec, Task, TaskSpec, TaskStatus, WorkflowStatus

T, W = TaskStatus, WorkflowStatus
SPEC = GroupSpec("g", (TaskSpec("lead", lead=True), TaskSpec("other")))


def task(status: TaskStatus = T.RUNNING, *, lead: bool = True, **fields: object) -> Task:
    return Task(
        "u",
        "w",
        "g",
        "lead" if lead else "other",
        fields.pop("retry_id", 0),  # type: ignore[arg-type]
        status,
        1,
        lead,
        **fields,
    )  # type: ignore[arg-type]


def test_a_group_that_is_not_over():
    cases = [
        ((T.WAITING, T.WAITING), T.WAITING),
        ((T.SCHEDULING, T.SCHEDULING), T.SCHEDULING),
        ((T.INITIALIZING, T.SCHEDULING), T.INITIALIZING),
        ((T.INITIALIZING, T.RUNNING), T.RUNNING),
        ((T.COMPLETED, T.SCHEDULING), T.RUNNING),
    ]
    for (one, other), expected in cases:
        assert expected is group_status(SPEC, [task(one), task(other, lead=False)])


def test_a_group_that_is_over_ends_as_its_lead_did():
    cases = [
        ((T.COMPLETED, T.COMPLETED), T.COMPLETED),
        ((T.COMPLETED, T.FAILED), T.COMPLETED),
        ((T.FAILED, T.COMPLETED), T.FAILED),
        ((T.COMPLETED, T.FAILED_PREEMPTED), T.FAILED_PREEMPTED),
        ((T.FAILED_START_ERROR, T.COMPLETED), T.FAILED_START_ERROR),
        ((T.FAILED_UPSTREAM, T.FAILED_UPSTREAM), T.FAILED_UPSTREAM),
    ]
    for (one, other), expected in cases:
        assert expected is group_status(SPEC, [task(one), task(other, lead=False)])


def test_every_task_counts_where_the_group_says_so():
    strict = GroupSpec("g", SPEC.tasks, ignore_nonlead_status=False)

    members = [task(T.COMPLETED), task(T.FAILED, lead=False)]

    assert T.FAILED is group_status(strict, members)


def test_a_workflow_is_as_its_groups_are():
    cases = [
        ((T.SCHEDULING, T.WAITING), W.PENDING),
        ((T.COMPLETED, T.SCHEDULING), W.PENDING),
        ((T.RUNNING, T.WAITING), W.RUNNING),
        ((T.COMPLETED, T.COMPLETED), W.COMPLETED),
        ((T.FAILED, T.FAILED_UPSTREAM), W.FAILED),
        ((T.FAILED_PREEMPTED, T.COMPLETED), W.FAILED_PREEMPTED),
        ((T.FAILED, T.FAILED_CANCELED), W.FAILED_CANCELED),
        ((T.FAILED_EXEC_TIMEOUT, T.FAILED), W.FAILED_EXEC_TIMEOUT),
        ((T.FAILED_PREEMPTED, T.FAILED_START_ERROR), W.FAILED),
    ]
    for groups, expected in cases:
        assert expected is workflow_status(groups)


def judge(attempt: Task, exit_code: int = 0, preemptions: int = 0, **settings: object) -> Verdict:
    return verdict(
        attempt,
        TaskSpec("lead"),
        {},
        WorkflowSettings(**settings),  # type: ignore[arg-type]
        exit_code=exit_code,
        preemptions=preemptions,
    )


def test_what_ends_by_itself_ends_by_its_exit_code():
    assert (T.COMPLETED, False) == (judge(task()).status, judge(task()).again)
    assert (T.FAILED, 3) == (judge(task(), 3).status, judge(task(), 3).exit_code)


def test_what_was_preempted_is_tried_again_by_default():
    found = judge(task(releasing="reclaim"), 143)

    assert (
        Verdict(
            T.FAILED_PREEMPTED,
            3006,
            "Exit Action: RESCHEDULE the task for exit code 3006.",
            again=True,
        )
        == found
    )


def test_preemptions_are_not_counted_as_retries():
    actions = {"RESCHEDULE": "1,3006"}
    fields = {"default_exit_actions": actions, "max_retry_per_task": 1}

    first = judge(task(retry_id=2), 1, preemptions=2, **fields)
    second = judge(task(retry_id=3), 1, preemptions=2, **fields)

    assert (T.RESCHEDULED, True) == (first.status, first.again)
    assert (T.FAILED, False) == (second.status, second.again)
    assert "No exit action applied due to retry limit 1." == second.message


def test_what_was_cancelled_given_back_or_lost_its_lead():
    assert T.FAILED_CANCELED is judge(task(releasing=CANCEL), 143).status
    given_back = judge(task(releasing=GIVE_BACK), 143)
    assert (T.RESCHEDULED, True) == (given_back.status, given_back.again)
    followed = judge(task(releasing=LEAD), 143)
    assert (T.FAILED, False) == (followed.status, followed.again)
