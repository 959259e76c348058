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
    Transition(_E.QUEUE, (None,), _T.SCHEDULING, "submitted, or another attempt of a task"),
    Transition(_E.HOLD_BACK, (None,), _T.WAITING, "submitted; what it waits for has not ended"),
    Transition(
        _E.RELEASE, (_T.WAITING,), _T.SCHEDULING, "all that it waits for has ended as it must"
    ),
    Transition(_E.BIND, QUEUED, _T.INITIALIZING, "a plan has given it a node and its GPUs"),
    Transition(_E.RUN, (_T.INITIALIZING,), _T.RUNNING, "its backend sees it run"),
    Transition(
        _E.COMPLETE, HOLDING, _T.COMPLETED, "ended with exit code 0, or the exit action COMPLETE"
    ),
    Transition(_E.FAIL, HOLDING, _T.FAILED, "ended with another exit code, or by a signal"),
    Transition(
        _E.RESCHEDULE,
        HOLDING,
        _T.RESCHEDULED,
        "the exit action RESCHEDULE; another attempt follows",
    ),
    Transition(
        _E.RESTART, HOLDING, _T.RESCHEDULED, "ended to start again with its group; another follows"
    ),
    Transition(
        _E.GIVE_BACK, HOLDING, _T.RESCHEDULED, "given back by an elastic group; another follows"
    ),
    Transition(
        _E.PREEMPT, HOLDING, _T.FAILED_PREEMPTED, "ended for others; by default another follows"
    ),
    Transition(
        _E.EVICT,
        HOLDING,
        _T.FAILED_EVICTED,
        "its node was drained, or is no longer there; by default another follows",
    ),
    Transition(
        _E.LOSE,
        HOLDING,
        _T.FAILED_BACKEND_ERROR,
        "gone without a word while its node is there; by default another follows",
    ),
    Transition(
        _E.CANNOT_START,
        _STANDING,
        _T.FAILED_START_ERROR,
        "it, or another task that its group needs, could not be started",
    ),
    Transition(
        _E.IMAGE_PULL,
        _STANDING,
        _T.FAILED_IMAGE_PULL,
        "its image, or that of another task that its group needs, could not be pulled",
    ),
    Transition(
        _E.START_TIMEOUT,
        _STANDING,
        _T.FAILED_START_TIMEOUT,
        "it, or another task that its group needs, took too long to start",
    ),
    Transition(_E.LEAD_COMPLETED, _STANDING, _T.COMPLETED, "the lead of its group is completed"),
    Transition(_E.LEAD_FAILED, _STANDING, _T.FAILED, "the lead of its group has failed"),
    Transition(
        _E.FELLOW_FAILED,
        _STANDING,
        _T.FAILED,
        "another task has failed, of a group in which every task counts",
    ),
    Transition(
        _E.UPSTREAM_FAILED,
        (_T.WAITING,),
        _T.FAILED_UPSTREAM,
        "what its group comes after has failed",
    ),
    Transition(
        _E.EXEC_TIMEOUT, _STANDING, _T.FAILED_EXEC_TIMEOUT, "its group ran longer than its limit"
    ),
    Transition(
        _E.QUEUE_TIMEOUT, QUEUED, _T.FAILED_QUEUE_TIMEOUT, "its group waited longer than its limit"
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
    Transition("hold_back", (None,), _T.WAITING, "submitted; what it waits for has not ended"),
    Transition(
        "release", (_T.WAITING,), _T.SCHEDULING, "all that it waits for has ended as it must"
    ),
    Transition("bind", QUEUED, _T.INITIALIZING, "its tasks have got their nodes together"),
    Transition("run", (_T.INITIALIZING,), _T.RUNNING, "one of its tasks runs, or has ended"),
    Transition(
        "queue_again",
        HOLDING,
        _T.SCHEDULING,
        "all that it had is gone; it waits for another attempt",
    ),
    Transition("complete", HOLDING, _T.COMPLETED, "all have ended; tasks that count completed"),
    *(
        Transition("fail", HOLDING, status, "all have ended; a task that counts failed")
        for status in _FAILURES
    ),
    Transition(
        "upstream_failed", (_T.WAITING,), _T.FAILED_UPSTREAM, "what it comes after has failed"
    ),
    Transition("queue_timeout", QUEUED, _T.FAILED_QUEUE_TIMEOUT, "it waited longer than its limit"),
    Transition("cancel", UNFINISHED, _T.FAILED_CANCELED, "its workflow was cancelled"),
)

WORKFLOW_TRANSITIONS: tuple[Transition[WorkflowStatus], ...] = (
    Transition("submit", (None,), _W.PENDING, "accepted"),
    Transition("refuse", (None,), _W.FAILED_SUBMISSION, "asks for more than its pool guarantees"),
    Transition("run", (_W.PENDING,), _W.RUNNING, "one of its groups runs"),
    Transition("queue_again", (_W.RUNNING,), _W.PENDING, "all groups that have not ended wait"),
    Transition("complete", ALIVE, _W.COMPLETED, "all groups are completed"),
    *(
        Transition("fail", ALIVE, _W(status.value), "all groups have ended, and one has failed")
        for status in (*_FAILURES, _T.FAILED_QUEUE_TIMEOUT)
    ),
    Transition("cancel", ALIVE, _W.FAILED_CANCELED, "it was cancelled"),
)

#: What the exit codes of attempts mean; of several the highest counts.
EXIT_CODES: tuple[tuple[str, str], ...] = (
    ("0", "the task is completed"),
    ("1-255", "the task's own; 128 and the number of the signal where a signal killed it"),
    (f"{ExitCode.UPSTREAM}", "what its group comes after has failed"),
    (f"{ExitCode.BACKEND}", "the backend lost it"),
    (f"{ExitCode.SERVER}", "the server could not go on with it"),
    (f"{ExitCode.START_ERROR}", "it, or another task that its group needs, could not be started"),
    (f"{ExitCode.EVICTED}", "its node was drained, or is no longer there"),
    (f"{ExitCode.START_TIMEOUT}", "it took too long to start"),
    (f"{ExitCode.PREEMPTED}", "it ended for others, or was given back by an elastic group"),
    (f"{ExitCode.UNKNOWN}", "how it ended was not seen"),
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
