"""Every transition between the statuses of tasks, groups and workflows, as a table.

No other file says what may follow what. What happens to an attempt of a task is an event, and the
event decides its next status. The status of a group or workflow follows from its parts; for these
the table lists the changes that are possible. The page docs/reference/states.md is made from this
file.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from bough.errors import Broken
from bough.model.workflow import (
    ALIVE,
    HOLDING,
    QUEUED,
    UNFINISHED,
    ExitCode,
    TaskStatus,
    WorkflowStatus,
)

Status = TypeVar("Status", TaskStatus, WorkflowStatus)


class TaskEvent(StrEnum):
    """What can happen to an attempt of a task."""

    QUEUE = "queue"
    HOLD_BACK = "hold_back"
    RELEASE = "release"
    BIND = "bind"
    RUN = "run"
    COMPLETE = "complete"
    FAIL = "fail"
    RESCHEDULE = "reschedule"
    RESTART = "restart"
    GIVE_BACK = "give_back"
    PREEMPT = "preempt"
    EVICT = "evict"
    LOSE = "lose"
    CANNOT_START = "cannot_start"
    IMAGE_PULL = "image_pull"
    START_TIMEOUT = "start_timeout"
    LEAD_COMPLETED = "lead_completed"
    LEAD_FAILED = "lead_failed"
    FELLOW_FAILED = "fellow_failed"
    UPSTREAM_FAILED = "upstream_failed"
    EXEC_TIMEOUT = "exec_timeout"
    QUEUE_TIMEOUT = "queue_timeout"
    CANCEL = "cancel"


class Transition(msgspec.Struct, Generic[Status], frozen=True):
    """One line of the table."""

    event: str
    #: From any of these; `None`: it did not exist before.
    sources: tuple[Status | None, ...]
    target: Status
    meaning: str


_T, _W, _E = TaskStatus, WorkflowStatus, TaskEvent
_STANDING = (*QUEUED, *HOLDING)

TASK_TRANSITIONS: tuple[Transition[TaskStatus], ...] = (
    Transition(_E.QUEUE, (None,), _T.SCHEDULING, "submitted, or a new attempt of a task"),
    Transition(
        _E.HOLD_BACK,
        (None,),
        _T.WAITING,
        "submitted, but its upstream groups or workflows have not ended",
    ),
    Transition(
        _E.RELEASE,
        (_T.WAITING,),
        _T.SCHEDULING,
        "its upstream groups and workflows have ended as required",
    ),
    Transition(_E.BIND, QUEUED, _T.INITIALIZING, "the scheduler has assigned a node and GPUs"),
    Transition(_E.RUN, (_T.INITIALIZING,), _T.RUNNING, "the backend reports that it runs"),
    Transition(
        _E.COMPLETE, HOLDING, _T.COMPLETED, "exited with code 0, or the exit action is COMPLETE"
    ),
    Transition(_E.FAIL, HOLDING, _T.FAILED, "exited with another code, or was killed by a signal"),
    Transition(
        _E.RESCHEDULE,
        HOLDING,
        _T.RESCHEDULED,
        "the exit action is RESCHEDULE; a new attempt follows",
    ),
    Transition(
        _E.RESTART,
        HOLDING,
        _T.RESCHEDULED,
        "stopped to restart together with its group; a new attempt follows",
    ),
    Transition(
        _E.GIVE_BACK,
        HOLDING,
        _T.RESCHEDULED,
        "given back by an elastic group; a new attempt follows",
    ),
    Transition(
        _E.PREEMPT,
        HOLDING,
        _T.FAILED_PREEMPTED,
        "preempted for another workload; by default, a new attempt follows",
    ),
    Transition(
        _E.EVICT,
        HOLDING,
        _T.FAILED_EVICTED,
        "its node was drained or is gone; by default, a new attempt follows",
    ),
    Transition(
        _E.LOSE,
        HOLDING,
        _T.FAILED_BACKEND_ERROR,
        "lost while its node still exists; by default, a new attempt follows",
    ),
    Transition(
        _E.CANNOT_START,
        _STANDING,
        _T.FAILED_START_ERROR,
        "the task, or another one that its group needs, could not be started",
    ),
    Transition(
        _E.IMAGE_PULL,
        _STANDING,
        _T.FAILED_IMAGE_PULL,
        "the image of the task, or of another one that its group needs, could not be pulled",
    ),
    Transition(
        _E.START_TIMEOUT,
        _STANDING,
        _T.FAILED_START_TIMEOUT,
        "the task, or another one that its group needs, took too long to start",
    ),
    Transition(
        _E.LEAD_COMPLETED, _STANDING, _T.COMPLETED, "the lead task of its group has completed"
    ),
    Transition(_E.LEAD_FAILED, _STANDING, _T.FAILED, "the lead task of its group has failed"),
    Transition(
        _E.FELLOW_FAILED,
        _STANDING,
        _T.FAILED,
        "another task of its group has failed, and every task of the group counts",
    ),
    Transition(
        _E.UPSTREAM_FAILED,
        (_T.WAITING,),
        _T.FAILED_UPSTREAM,
        "an upstream group or workflow has failed",
    ),
    Transition(
        _E.EXEC_TIMEOUT,
        _STANDING,
        _T.FAILED_EXEC_TIMEOUT,
        "its group exceeded its execution timeout",
    ),
    Transition(
        _E.QUEUE_TIMEOUT, QUEUED, _T.FAILED_QUEUE_TIMEOUT, "its group exceeded its queue timeout"
    ),
    Transition(_E.CANCEL, UNFINISHED, _T.FAILED_CANCELED, "its workflow was cancelled"),
)

_FAILURES = (
    _T.FAILED,
    _T.FAILED_PREEMPTED,
    _T.FAILED_EVICTED,
    _T.FAILED_BACKEND_ERROR,
    _T.FAILED_START_ERROR,
    _T.FAILED_IMAGE_PULL,
    _T.FAILED_START_TIMEOUT,
    _T.FAILED_EXEC_TIMEOUT,
)

GROUP_TRANSITIONS: tuple[Transition[TaskStatus], ...] = (
    Transition("queue", (None,), _T.SCHEDULING, "submitted"),
    Transition(
        "hold_back",
        (None,),
        _T.WAITING,
        "submitted, but its upstream groups or workflows have not ended",
    ),
    Transition(
        "release",
        (_T.WAITING,),
        _T.SCHEDULING,
        "its upstream groups and workflows have ended as required",
    ),
    Transition(
        "bind",
        QUEUED,
        _T.INITIALIZING,
        "the scheduler has assigned nodes to its tasks, all at once",
    ),
    Transition("run", (_T.INITIALIZING,), _T.RUNNING, "one of its tasks is running or has ended"),
    Transition(
        "queue_again",
        HOLDING,
        _T.SCHEDULING,
        "all its attempts have ended; new ones are queued",
    ),
    Transition(
        "complete",
        HOLDING,
        _T.COMPLETED,
        "all tasks have ended, and those that count have completed",
    ),
    *(
        Transition("fail", HOLDING, status, "all tasks have ended, and one that counts has failed")
        for status in _FAILURES
    ),
    Transition(
        "upstream_failed",
        (_T.WAITING,),
        _T.FAILED_UPSTREAM,
        "an upstream group or workflow has failed",
    ),
    Transition(
        "queue_timeout", QUEUED, _T.FAILED_QUEUE_TIMEOUT, "the group exceeded its queue timeout"
    ),
    Transition("cancel", UNFINISHED, _T.FAILED_CANCELED, "its workflow was cancelled"),
)

WORKFLOW_TRANSITIONS: tuple[Transition[WorkflowStatus], ...] = (
    Transition("submit", (None,), _W.PENDING, "accepted"),
    Transition("refuse", (None,), _W.FAILED_SUBMISSION, "requests more than its pool guarantees"),
    Transition("run", (_W.PENDING,), _W.RUNNING, "one of its groups is running"),
    Transition(
        "queue_again",
        (_W.RUNNING,),
        _W.PENDING,
        "none of its groups is running any more, and some are waiting",
    ),
    Transition("complete", ALIVE, _W.COMPLETED, "all groups have completed"),
    *(
        Transition("fail", ALIVE, _W(status.value), "all groups have ended, and one has failed")
        for status in (*_FAILURES, _T.FAILED_QUEUE_TIMEOUT)
    ),
    Transition("cancel", ALIVE, _W.FAILED_CANCELED, "the workflow was cancelled"),
)

#: What the exit codes of attempts mean; of several the highest counts.
EXIT_CODES: tuple[tuple[str, str], ...] = (
    ("0", "the task has completed"),
    ("1-255", "the exit code of the task itself; 128 + N if signal N killed it"),
    (f"{ExitCode.UPSTREAM}", "an upstream group or workflow has failed"),
    (f"{ExitCode.BACKEND}", "the backend lost the task"),
    (f"{ExitCode.SERVER}", "the server failed to process the task"),
    (
        f"{ExitCode.START_ERROR}",
        "the task, or another one that its group needs, could not be started",
    ),
    (f"{ExitCode.EVICTED}", "its node was drained or is gone"),
    (f"{ExitCode.START_TIMEOUT}", "the task took too long to start"),
    (f"{ExitCode.PREEMPTED}", "the task was preempted, or given back by an elastic group"),
    (f"{ExitCode.UNKNOWN}", "unknown: the backend did not see how the task ended"),
)

_AFTER: dict[tuple[TaskStatus | None, TaskEvent], TaskStatus] = {
    (source, TaskEvent(each.event)): each.target
    for each in TASK_TRANSITIONS
    for source in each.sources
}
_GROUP_STEPS = {(source, each.target) for each in GROUP_TRANSITIONS for source in each.sources}
_WORKFLOW_STEPS = {
    (source, each.target) for each in WORKFLOW_TRANSITIONS for source in each.sources
}


def next_status(status: TaskStatus | None, event: TaskEvent) -> TaskStatus:
    """The status of an attempt after an event; `None`: of one that is new."""
    found = _AFTER.get((status, event))
    if found is None:
        raise Broken(f"a task that is {_shown(status)} cannot {event.value}")
    return found


def check_group(before: TaskStatus | None, after: TaskStatus) -> None:
    """Refuse a change of a group's status that is not in the table."""
    if before is not after and (before, after) not in _GROUP_STEPS:
        raise Broken(f"a group that is {_shown(before)} cannot become {after}")


def check_workflow(before: WorkflowStatus | None, after: WorkflowStatus) -> None:
    """Refuse a change of a workflow's status that is not in the table."""
    if before is not after and (before, after) not in _WORKFLOW_STEPS:
        raise Broken(f"a workflow that is {_shown(before)} cannot become {after}")


def _shown(status: TaskStatus | WorkflowStatus | None) -> str:
    return "new" if status is None else status.value
