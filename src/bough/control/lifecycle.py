"""What the statuses of tasks mean for their group, and those of groups for their workflow. Pure.

Must not know the store, nor who saw what happen.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from bough.control.fields import exit_action
from bough.model.settings import WorkflowSettings
from bough.model.workflow import (
    QUEUED,
    ExitCode,
    GroupSpec,
    Task,
    TaskSpec,
    TaskStatus,
    WorkflowStatus,
)

#: Why an attempt was told to end, beside the rules of eviction.
CANCEL = "cancel"
#: The lead of its group has ended.
LEAD = "lead"
#: An elastic gang gives it back, which is no failure.
GIVE_BACK = "give_back"


class Verdict(msgspec.Struct, frozen=True):
    """What becomes of an attempt that ended."""

    status: TaskStatus
    exit_code: int
    message: str
    #: Whether another attempt follows.
    again: bool = False


def verdict(
    task: Task,
    spec: TaskSpec,
    pool_actions: dict[str, str],
    settings: WorkflowSettings,
    *,
    exit_code: int,
    preemptions: int,
    message: str = "",
) -> Verdict:
    """What becomes of an attempt, by how it ended and what was told to it before."""
    if task.releasing == CANCEL:
        return Verdict(TaskStatus.FAILED_CANCELED, exit_code, task.failure_message or "")
    if task.releasing == GIVE_BACK:
        text = "Given back by an elastic group."
        return Verdict(TaskStatus.RESCHEDULED, ExitCode.PREEMPTED, text, again=True)
    preempted = task.releasing is not None and task.releasing != LEAD
    code = ExitCode.PREEMPTED if preempted else exit_code
    failed = TaskStatus.FAILED_PREEMPTED if preempted else TaskStatus.FAILED
    action = exit_action(code, spec.exit_actions, pool_actions, settings.default_exit_actions)
    if action == "COMPLETE" or (action is None and code == 0):
        return Verdict(TaskStatus.COMPLETED, code, message)
    if action != "RESCHEDULE" or task.releasing == LEAD:
        return Verdict(failed, code, message)
    limit = settings.max_preemption_retries if preempted else settings.max_retry_per_task
    used = preemptions if preempted else task.retry_id - preemptions
    if limit is not None and used >= limit:
        text = f"No exit action applied due to retry limit {limit}."
        return Verdict(failed, code, f"{message}{text}")
    text = f"Exit Action: RESCHEDULE the task for exit code {code}."
    status = TaskStatus.FAILED_PREEMPTED if preempted else TaskStatus.RESCHEDULED
    return Verdict(status, code, f"{message}{text}", again=True)


def group_status(spec: GroupSpec, latest: Sequence[Task]) -> TaskStatus:
    """The status of a group, from the latest attempts of its tasks."""
    statuses = [task.status for task in latest]
    open_statuses = [status for status in statuses if not status.finished]
    if open_statuses:
        if len(open_statuses) < len(statuses) or TaskStatus.RUNNING in statuses:
            return TaskStatus.RUNNING
        if TaskStatus.INITIALIZING in statuses:
            return TaskStatus.INITIALIZING
        return TaskStatus.SCHEDULING if set(statuses) & set(QUEUED) else TaskStatus.WAITING
    considered = [
        task.status for task in latest if task.lead or not spec.ignore_nonlead_status
    ] or statuses
    return _worst(statuses, considered)


def _worst(statuses: Collection[TaskStatus], considered: Collection[TaskStatus]) -> TaskStatus:
    for status in (
        TaskStatus.FAILED_UPSTREAM,
        TaskStatus.FAILED_CANCELED,
        TaskStatus.FAILED_SERVER_ERROR,
        TaskStatus.FAILED_PREEMPTED,
    ):
        if status in statuses:
            return status
    failed = [each for each in considered if each is not TaskStatus.COMPLETED]
    if not failed:
        return TaskStatus.COMPLETED
    return failed[0] if len(set(failed)) == 1 else TaskStatus.FAILED


def workflow_status(groups: Collection[TaskStatus]) -> WorkflowStatus:
    """The status of a workflow, from those of its groups."""
    if any(not status.finished for status in groups):
        running = TaskStatus.RUNNING in groups
        return WorkflowStatus.RUNNING if running else WorkflowStatus.PENDING
    failed = {each for each in groups if each is not TaskStatus.COMPLETED}
    if not failed:
        return WorkflowStatus.COMPLETED
    for status in (
        TaskStatus.FAILED_CANCELED,
        TaskStatus.FAILED_SERVER_ERROR,
        TaskStatus.FAILED_EXEC_TIMEOUT,
        TaskStatus.FAILED_QUEUE_TIMEOUT,
    ):
        if status in failed:
            return WorkflowStatus(status.value)
    failed.discard(TaskStatus.FAILED_UPSTREAM)
    return WorkflowStatus(failed.pop().value) if len(failed) == 1 else WorkflowStatus.FAILED
