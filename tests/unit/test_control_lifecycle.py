"""What the statuses of tasks mean for groups and workflows, and what follows an end."""

from __future__ import annotations

from bough.control.workflows.lifecycle import (
    CANCEL,
    DRAIN,
    EXEC_TIMEOUT,
    FELLOW,
    GIVE_BACK,
    LEAD,
    RESTART,
    START,
    VANISHED,
    AttemptOutcome,
    follow_lead,
    group_status,
    is_overtaken,
    moved,
    overrides,
    verdict,
    workflow_status,
)
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

T, W, E = TaskStatus, WorkflowStatus, TaskEvent
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
        # Nothing is left of it but what waits: the whole group waits for its next attempt.
        ((T.SCHEDULING, T.COMPLETED), T.SCHEDULING),
    ]
    for (one, other), expected in cases:
        assert expected is group_status(SPEC, [task(one), task(other, lead=False)])


def test_a_group_goes_on_while_single_tasks_of_it_are_tried_again():
    members = [task(T.INITIALIZING), task(T.SCHEDULING, lead=False, retry_id=1)]

    assert T.INITIALIZING is group_status(SPEC, members)
    assert T.RUNNING is group_status(SPEC, members, T.RUNNING)
    waiting = [task(T.SCHEDULING, retry_id=1), task(T.SCHEDULING, lead=False, retry_id=1)]
    assert T.SCHEDULING is group_status(SPEC, waiting, T.RUNNING)


def test_a_finished_group_ends_as_its_lead_did():
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


NOON_MS = 1_767_614_400_000


def seen(exit_code: int | None = None, sight: Sight = Sight.ENDED, **fields: object) -> Observation:
    return Observation("u/0", sight, NOON_MS, exit_code, **fields)  # type: ignore[arg-type]


def judge(
    attempt: Task, end: Observation, earlier: tuple[Task, ...] = (), **settings: object
) -> AttemptOutcome:
    found = WorkflowSettings(**settings)  # type: ignore[arg-type]
    return verdict(attempt, TaskSpec("lead"), {}, found, end, earlier)


def test_what_ends_by_itself_ends_by_its_exit_code():
    assert AttemptOutcome(E.COMPLETE, 0, "") == judge(task(), seen(0))
    assert AttemptOutcome(E.FAIL, 3, "Task ended with exit code 3.") == judge(task(), seen(3))
    assert AttemptOutcome(E.FAIL, 4000, "Task ended with exit code 4000.") == judge(task(), seen())


def test_signals_are_told_apart_from_exit_codes():
    killed = judge(task(), seen(137, signal=9))
    unheard_of = judge(task(), seen(128 + 77, signal=77))

    assert AttemptOutcome(E.FAIL, 137, "Task was killed by SIGKILL.") == killed
    assert "Task was killed by signal 77." == unheard_of.message
    assert "Task ended with exit code 137." == judge(task(), seen(137)).message


def test_what_was_preempted_is_tried_again_by_default():
    told = task(releasing="reclaim", released_ms=NOON_MS)

    found = judge(told, seen(0))

    text = (
        "Task was preempted at 2026-01-05 12:00:00 UTC. "
        "Exit Action: RESCHEDULE the task for exit code 3006."
    )
    assert AttemptOutcome(E.PREEMPT, 3006, text, again=True) == found
    assert T.FAILED_PREEMPTED is found.status


def test_what_was_evicted_or_lost_is_tried_again_by_default_however_often():
    drained = task(releasing=DRAIN, node="n1", retry_id=9)
    vanished = task(releasing=VANISHED, node="n1")
    before = tuple(task(T.FAILED_EVICTED, retry_id=number) for number in range(9))

    found = judge(drained, seen(143), before)
    assert (E.EVICT, 3004, True) == (found.event, found.exit_code, found.again)
    assert found.message.startswith("Task was evicted from node n1, which is drained. Exit Action")
    gone = judge(vanished, seen(sight=Sight.LOST))
    assert (T.FAILED_EVICTED, 3004, True) == (gone.status, gone.exit_code, gone.again)
    assert gone.message.startswith("Task was lost with its node n1.")
    lost = judge(task(node="n1"), seen(sight=Sight.LOST))
    assert (T.FAILED_BACKEND_ERROR, 3001, True) == (lost.status, lost.exit_code, lost.again)
    assert lost.message.startswith("Task was lost on node n1.")


def test_what_its_backend_loses_again_and_again_is_given_up():
    before = (task(T.FAILED_BACKEND_ERROR), task(T.FAILED_BACKEND_ERROR, retry_id=1))

    found = judge(task(retry_id=2), seen(sight=Sight.LOST), before, max_lost_retries=2)

    assert (E.LOSE, False) == (found.event, found.again)
    assert found.message.endswith("No exit action applied due to retry limit 2.")


def test_what_cannot_be_started_fails_unless_its_actions_say_otherwise():
    end = seen(sight=Sight.UNSTARTABLE, message="no such file: /bin/nothing")

    assert AttemptOutcome(E.CANNOT_START, 3003, "no such file: /bin/nothing") == judge(task(), end)
    again = judge(task(), end, default_exit_actions={"RESCHEDULE": "3003"}, max_retry_per_task=1)
    assert (T.RESCHEDULED, True) == (again.status, again.again)


def test_only_retries_by_exit_actions_are_counted_as_such():
    actions = {"RESCHEDULE": "1,3006"}
    fields = {"default_exit_actions": actions, "max_retry_per_task": 1}
    no_fault = (
        task(T.FAILED_PREEMPTED),
        task(T.RESCHEDULED, retry_id=1, releasing=GIVE_BACK),
        task(T.RESCHEDULED, retry_id=2, releasing=RESTART),
        task(T.FAILED_EVICTED, retry_id=3),
    )

    first = judge(task(retry_id=4), seen(1), no_fault, **fields)
    used = (*no_fault, task(T.RESCHEDULED, retry_id=4))
    second = judge(task(retry_id=5), seen(1), used, **fields)

    assert (T.RESCHEDULED, True) == (first.status, first.again)
    assert (T.FAILED, False) == (second.status, second.again)
    text = "Task ended with exit code 1. No exit action applied due to retry limit 1."
    assert text == second.message


def test_exit_actions_of_the_task_come_before_the_pools_and_those_before_the_settings():
    def found(own: dict[str, str], pool: dict[str, str]) -> TaskStatus:
        spec, settings = TaskSpec("lead", exit_actions=own), WorkflowSettings()
        return verdict(task(releasing="preempt"), spec, pool, settings, seen(143)).status

    assert T.FAILED_PREEMPTED is found({}, {})
    assert T.COMPLETED is found({}, {"COMPLETE": "3000-3999"})
    assert T.FAILED_PREEMPTED is found({"FAIL": "3006"}, {"COMPLETE": "3006"})


def test_an_exit_action_that_changes_something_is_told():
    def found(end: Observation, attempt: Task | None = None, **own: str) -> tuple[TaskStatus, str]:
        spec = TaskSpec("lead", exit_actions=own)
        told = verdict(attempt or task(), spec, {}, WorkflowSettings(), end)
        return told.status, told.message

    text = "Task ended with exit code 16. Exit Action: COMPLETE the task for exit code 16."
    assert (T.COMPLETED, text) == found(seen(16), COMPLETE="0,16")
    assert (T.COMPLETED, "") == found(seen(0), COMPLETE="0,16")
    text = "Task ended with exit code 0. Exit Action: FAIL the task for exit code 0."
    assert (T.FAILED, text) == found(seen(0), FAIL="0")
    assert (T.FAILED, "Task ended with exit code 2.") == found(seen(2), FAIL="2")
    text = "Task was preempted. Exit Action: FAIL the task for exit code 3006."
    told = task(releasing="preempt")
    assert (T.FAILED_PREEMPTED, text) == found(seen(143), told, FAIL="3006")


def test_what_ended_well_and_is_not_tried_again_is_completed():
    fields = {"default_exit_actions": {"RESCHEDULE": "0"}, "max_retry_per_task": 1}
    before = (task(T.RESCHEDULED),)

    assert judge(task(), seen(0), **fields).again
    found = judge(task(retry_id=1), seen(0), before, **fields)

    text = "Task ended with exit code 0. No exit action applied due to retry limit 1."
    assert AttemptOutcome(E.COMPLETE, 0, text) == found


def test_what_was_told_for_good_ends_so_whatever_its_exit_code():
    cases = [
        (CANCEL, T.FAILED_CANCELED, 143, False),
        (EXEC_TIMEOUT, T.FAILED_EXEC_TIMEOUT, 143, False),
        (FELLOW, T.FAILED, 143, False),
        (START, T.FAILED_START_ERROR, 3003, False),
        (GIVE_BACK, T.RESCHEDULED, 3006, True),
        (RESTART, T.RESCHEDULED, 143, True),
    ]
    for reason, status, code, again in cases:
        found = judge(task(releasing=reason, failure_message="because"), seen(143))
        assert (status, code, "because", again) == (
            found.status,
            found.exit_code,
            found.message,
            found.again,
        )


def test_the_outcome_of_the_lead_is_that_of_the_others():
    assert T.COMPLETED is follow_lead(T.COMPLETED, seen(143)).status
    assert T.FAILED is follow_lead(T.FAILED_PREEMPTED, seen(0)).status
    assert None is follow_lead(T.COMPLETED).exit_code


def test_a_reason_stands_until_one_comes_after_which_nothing_follows():
    assert overrides("reclaim", None)
    assert not overrides(RESTART, "reclaim")
    assert overrides(CANCEL, "reclaim")
    assert overrides(CANCEL, EXEC_TIMEOUT)
    assert not overrides(EXEC_TIMEOUT, CANCEL)
    assert not overrides(CANCEL, CANCEL)
    assert not overrides("reclaim", CANCEL)
    assert overrides(FELLOW, RESTART)
    assert overrides(START, FELLOW)
    assert not overrides(FELLOW, EXEC_TIMEOUT)


def test_what_ended_by_itself_before_it_was_told_is_known_by_its_exit_code():
    def overtaken(reason: str | None, code: int | None = 0, sooner_ms: int = 1) -> bool:
        told = task(releasing=reason, released_ms=NOON_MS + sooner_ms)
        return is_overtaken(told, seen(code))

    early = ("preempt", "reclaim", "stale", DRAIN, GIVE_BACK, FELLOW, EXEC_TIMEOUT, RESTART)
    assert [False] * len(early) == [overtaken(reason, sooner_ms=0) for reason in early]
    assert [True] * len(early) == [overtaken(reason) for reason in early]
    assert not overtaken(RESTART, 1)
    assert overtaken("preempt", 1)
    assert not overtaken("preempt", None)
    assert [False] * 3 == [overtaken(reason) for reason in (CANCEL, START, LEAD)]


def test_the_limit_of_a_group_is_counted_from_when_it_came_to_its_status():
    workflow = Workflow(
        "w", "w-1", "w", 1, "ann", "p", "default", Priority.LOW, W.PENDING, 0,
        queue_timeout_s=10, exec_timeout_s=20,
    )  # fmt: skip
    group = Group("g", "w", "g", 0, "q", T.SCHEDULING, SPEC, 2, since_ms=0, due_ms=10_000)

    placed = moved(group, T.INITIALIZING, workflow, 5_000)
    running = moved(placed, T.RUNNING, workflow, 6_000)
    waiting = moved(running, T.SCHEDULING, workflow, 9_000)

    assert group is moved(group, T.SCHEDULING, workflow, 3_000)
    assert [(5_000, None), (6_000, 26_000), (9_000, 19_000)] == [
        (each.since_ms, each.due_ms) for each in (placed, running, waiting)
    ]
