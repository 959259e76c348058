"""What follows when an attempt ends, and the resulting status of its group and workflow. Pure.

Which status may follow which is in model.transitions.
"""

from __future__ import annotations

import signal
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

import msgspec

from bough.control.fields import exit_action
from bough.model.backend import Observation, Sight, StartFault
from bough.model.plan import EvictionRule
from bough.model.settings import WorkflowSettings
from bough.model.transitions import TaskEvent, check_group, next_status
from bough.model.workflow import (
    QUEUED,
    ExitCode,
    Group,
    GroupSpec,
    Task,
    TaskSpec,
    TaskStatus,
    Workflow,
    WorkflowStatus,
)

# Why an attempt was told to end, beside the rules of eviction.
CANCEL = "cancel"
#: The lead of its group has ended.
LEAD = "lead"
#: An elastic gang gives it back, which is no failure.
GIVE_BACK = "give_back"
#: Its group starts again, and it with it.
RESTART = "restart"
#: Another task has failed, of a group in which every task counts.
FELLOW = "fellow"
#: Another task that its group needs could not be started.
START = "start"
#: The same, as an image could not be pulled, or as it took too long.
IMAGE_PULL = "image_pull"
START_TIMEOUT = "start_timeout"
#: It does not start itself: for good, for want of its image, or in time.
_STUCK: dict[StartFault | None, str] = {
    None: "stuck",
    StartFault.IMAGE_PULL: "stuck_image_pull",
    StartFault.TIMEOUT: "stuck_start_timeout",
}
#: Its group ran longer than its limit.
EXEC_TIMEOUT = "exec_timeout"
#: Its node is being drained.
DRAIN = "drain"
#: Its node is no longer there.
VANISHED = "vanished"

_PREEMPTING = {
    EvictionRule.PREEMPT.value,
    EvictionRule.RECLAIM.value,
    EvictionRule.RECLAIM_WHILE_BORROWING.value,
    EvictionRule.FAIR_SHARE.value,
    EvictionRule.MOVE.value,
}
_EVICTING = {DRAIN, VANISHED, EvictionRule.STALE.value}
#: What becomes of an attempt whatever its exit code and its exit actions: the event, the code that
#: it has at least, and whether another follows.
_SETTLED: dict[str, tuple[TaskEvent, int, bool]] = {
    CANCEL: (TaskEvent.CANCEL, 0, False),
    EXEC_TIMEOUT: (TaskEvent.EXEC_TIMEOUT, 0, False),
    FELLOW: (TaskEvent.FELLOW_FAILED, 0, False),
    START: (TaskEvent.CANNOT_START, ExitCode.START_ERROR, False),
    IMAGE_PULL: (TaskEvent.IMAGE_PULL, ExitCode.START_ERROR, False),
    START_TIMEOUT: (TaskEvent.START_TIMEOUT, ExitCode.START_TIMEOUT, False),
    GIVE_BACK: (TaskEvent.GIVE_BACK, ExitCode.PREEMPTED, True),
    RESTART: (TaskEvent.RESTART, 0, True),
}
#: Final reasons, which override those told before: no other attempt follows.
_FINAL = (FELLOW, START, IMAGE_PULL, START_TIMEOUT, EXEC_TIMEOUT, CANCEL)
#: What happens to an attempt that could not be started.
_UNSTARTABLE: dict[StartFault | None, TaskEvent] = {
    None: TaskEvent.CANNOT_START,
    StartFault.IMAGE_PULL: TaskEvent.IMAGE_PULL,
    StartFault.TIMEOUT: TaskEvent.START_TIMEOUT,
}
#: What happens to one that was told to end as it did not start.
_STUCK_EVENTS = {_STUCK[fault]: event for fault, event in _UNSTARTABLE.items()}
#: By what happened to a task that could not be started: why the others of its group end.
START_REASONS = {
    TaskEvent.CANNOT_START: START,
    TaskEvent.IMAGE_PULL: IMAGE_PULL,
    TaskEvent.START_TIMEOUT: START_TIMEOUT,
}
#: Reasons that do not count where the attempt had already ended by itself.
_OVERTAKEN = {*_PREEMPTING, *_EVICTING, *_STUCK_EVENTS, GIVE_BACK, FELLOW, EXEC_TIMEOUT}
_TEXTS = {
    GIVE_BACK: "Given back by an elastic group.",
    RESTART: "Task starts again with its group.",
    VANISHED: "Task was lost with its node {node}.",
    DRAIN: "Task was evicted from node {node}, which is drained.",
    EvictionRule.STALE.value: "Task was evicted: its group had less than it needs.",
}
_CODES = {
    TaskEvent.PREEMPT: ExitCode.PREEMPTED,
    TaskEvent.EVICT: ExitCode.EVICTED,
    TaskEvent.LOSE: ExitCode.BACKEND,
    TaskEvent.CANNOT_START: ExitCode.START_ERROR,
    TaskEvent.IMAGE_PULL: ExitCode.START_ERROR,
    TaskEvent.START_TIMEOUT: ExitCode.START_TIMEOUT,
}


class AttemptOutcome(msgspec.Struct, frozen=True):
    """What becomes of an attempt that ended."""

    event: TaskEvent
    #: `None`: it never ran.
    exit_code: int | None
    message: str
    #: Whether another attempt follows.
    again: bool = False

    @property
    def status(self) -> TaskStatus:
        """What it is then."""
        return next_status(TaskStatus.RUNNING, self.event)


def overrides(reason: str, before: str | None) -> bool:
    """Whether a reason to end counts where an attempt was told one before."""
    if before is None or before not in _FINAL:
        return before is None or reason in _FINAL
    return reason in _FINAL and _FINAL.index(reason) > _FINAL.index(before)


def is_final(reason: str | None) -> bool:
    """Whether nothing follows on an attempt that was told to end for this reason."""
    return reason in _FINAL


def stuck_reason(fault: StartFault | None) -> str:
    """Why an attempt is told to end that does not start."""
    return _STUCK[fault]


def is_stuck(reason: str | None) -> bool:
    """Whether an attempt was told to end as it did not start itself."""
    return reason in _STUCK_EVENTS


def is_victim(reason: str) -> bool:
    """Whether an attempt was told to end by a plan, for others or as its gang was short."""
    return reason in _PREEMPTING or reason in (EvictionRule.STALE.value, GIVE_BACK)


def is_overtaken(task: Task, seen: Observation) -> bool:
    """Whether an attempt had ended by itself before it was told to end."""
    if seen.exit_code is None or task.released_ms is None:
        return False
    # The order is known where the attempt was; times are of two clocks.
    if seen.told or (seen.told is None and seen.at_ms >= task.released_ms):
        return False
    # What is restarted with its group starts again, unless it was completed.
    return task.releasing in _OVERTAKEN or (task.releasing == RESTART and seen.exit_code == 0)


def verdict(
    task: Task,
    spec: TaskSpec,
    pool_actions: dict[str, str],
    settings: WorkflowSettings,
    seen: Observation,
    earlier: Sequence[Task] = (),
) -> AttemptOutcome:
    """What becomes of an attempt, by how it ended, what was told to it, and those before it."""
    settled = _SETTLED.get(task.releasing or "")
    if settled is not None:
        event, least, again = settled
        text = task.failure_message or _TEXTS.get(task.releasing or "", "")
        return AttemptOutcome(event, _highest(least, seen), text, again)
    cause = _cause(task, seen)
    code = _highest(_CODES.get(cause, 0), seen)
    text = _said(task, cause, seen)
    action = exit_action(code, spec.exit_actions, pool_actions, settings.default_exit_actions)
    if action is None and spec.retries and code != 0 and cause is TaskEvent.FAIL:
        action = "RESCHEDULE"
    if code == 0 and action in ("COMPLETE", None):
        return AttemptOutcome(TaskEvent.COMPLETE, code, seen.message)
    acted = f"{text} Exit Action: {action} the task for exit code {code}."
    if action == "COMPLETE":
        return AttemptOutcome(TaskEvent.COMPLETE, code, acted)
    if action != "RESCHEDULE":
        expected = action is None or (cause is TaskEvent.FAIL and code != 0)
        return AttemptOutcome(cause, code, text if expected else acted)
    limit = _limit(cause, settings, spec)
    if limit is not None and _used(cause, earlier) >= limit:
        text = f"{text} No exit action applied due to retry limit {limit}."
        return AttemptOutcome(TaskEvent.COMPLETE if code == 0 else cause, code, text)
    own_fault = cause is TaskEvent.FAIL or cause in START_REASONS
    return AttemptOutcome(TaskEvent.RESCHEDULE if own_fault else cause, code, acted, again=True)


def follow_lead(lead: TaskStatus, seen: Observation | None = None) -> AttemptOutcome:
    """What becomes of an attempt whose group's lead has ended: the same."""
    completed = lead is TaskStatus.COMPLETED
    event = TaskEvent.LEAD_COMPLETED if completed else TaskEvent.LEAD_FAILED
    text = "The lead of the group has ended."
    return AttemptOutcome(event, None if seen is None else _highest(0, seen), text)


def _cause(task: Task, seen: Observation) -> TaskEvent:
    """Why an attempt ended: what was told to it counts more than how it went."""
    if task.releasing in _PREEMPTING:
        return TaskEvent.PREEMPT
    if task.releasing in _EVICTING:
        return TaskEvent.EVICT
    if task.releasing in _STUCK_EVENTS:
        return _STUCK_EVENTS[task.releasing]
    if seen.sight is Sight.PREEMPTED:
        return TaskEvent.PREEMPT
    if seen.sight is Sight.UNSTARTABLE:
        return _UNSTARTABLE[seen.fault]
    return TaskEvent.LOSE if seen.sight is Sight.LOST else TaskEvent.FAIL


def _highest(least: int, seen: Observation) -> int:
    """The exit code that counts: the highest that is known."""
    if seen.exit_code is None:
        return least or ExitCode.UNKNOWN
    return max(least, seen.exit_code)


def _said(task: Task, cause: TaskEvent, seen: Observation) -> str:
    if seen.sight is Sight.PREEMPTED and task.releasing is None:
        return seen.message
    if cause is TaskEvent.PREEMPT:
        return task.failure_message or f"Task was preempted{_at(task.released_ms)}."
    if task.releasing in _TEXTS:
        return _TEXTS[task.releasing].format(node=task.node)
    if task.releasing in _STUCK_EVENTS and task.failure_message:
        return task.failure_message
    if seen.message:
        return seen.message
    if cause is TaskEvent.LOSE:
        return f"Task was lost on node {task.node}."
    if cause in START_REASONS:
        return "Task could not be started."
    if seen.signal is not None:
        return f"Task was killed by {_signal_name(seen.signal)}."
    return f"Task ended with exit code {_highest(0, seen)}."


def preempted_text(reason: str, why: str, at_ms: int) -> str:
    """The failure message of an attempt that ends for others."""
    if reason == GIVE_BACK:
        return f"{_TEXTS[GIVE_BACK].removesuffix('.')}: {why}."
    return f"Task was preempted{_at(at_ms)}: {why}."


def _at(moment_ms: int | None) -> str:
    if moment_ms is None:
        return ""
    return f" at {datetime.fromtimestamp(moment_ms // 1_000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _limit(cause: TaskEvent, settings: WorkflowSettings, spec: TaskSpec) -> int | None:
    """How many retries are allowed: what the task asks for, up to the bound of today.

    Those that were not the task's fault have limits of their own.
    """
    if cause is TaskEvent.PREEMPT:
        return settings.max_preemption_retries
    if cause is TaskEvent.LOSE:
        return settings.max_lost_retries
    if cause is TaskEvent.EVICT:
        return None
    if spec.retries is None:
        return settings.max_retry_per_task
    return min(spec.retries, settings.max_asked_retries)


def _used(cause: TaskEvent, earlier: Sequence[Task]) -> int:
    """How many retries there were; a restart of the whole group counts once."""
    if cause in (TaskEvent.PREEMPT, TaskEvent.LOSE):
        status = next_status(TaskStatus.RUNNING, cause)
        return len({each.retry_id for each in earlier if each.status is status})
    # What was told to end, and came again, had no exit action of its own.
    again = TaskStatus.RESCHEDULED
    return len({each.retry_id for each in earlier if each.status is again and not each.releasing})


# Groups and workflows


def group_status(
    spec: GroupSpec, latest: Sequence[Task], before: TaskStatus = TaskStatus.SCHEDULING
) -> TaskStatus:
    """The status of a group, from the latest attempts of its tasks."""
    statuses = [task.status for task in latest]
    open_statuses = [status for status in statuses if not status.finished]
    if open_statuses:
        return _open_status(latest, before)
    considered = [
        task.status for task in latest if task.lead or not spec.ignore_nonlead_status
    ] or statuses
    return _worst(statuses, considered)


def _open_status(latest: Sequence[Task], before: TaskStatus) -> TaskStatus:
    statuses = [task.status for task in latest]
    if TaskStatus.RUNNING in statuses:
        return TaskStatus.RUNNING
    if not any(status.holds_node for status in statuses) and any(
        task.lead and task.status in QUEUED for task in latest
    ):
        return TaskStatus.SCHEDULING
    if any(status.finished for status in statuses):
        return TaskStatus.RUNNING
    if TaskStatus.INITIALIZING in statuses:
        # While single tasks are tried again the group goes on.
        ran = before is TaskStatus.RUNNING
        return TaskStatus.RUNNING if ran else TaskStatus.INITIALIZING
    return TaskStatus.SCHEDULING if set(statuses) & set(QUEUED) else TaskStatus.WAITING


def moved(group: Group, status: TaskStatus, workflow: Workflow, now_ms: int) -> Group:
    """A group with another status, since now; its limit is counted anew."""
    check_group(group.status, status)
    if group.status is status:
        return group
    limit_s = limit_of(workflow, status)
    return msgspec.structs.replace(
        group,
        status=status,
        since_ms=now_ms,
        due_ms=None if limit_s is None else now_ms + limit_s * 1_000,
    )


def limit_of(workflow: Workflow, status: TaskStatus) -> int | None:
    """For how long a group of a workflow may have a status, in seconds; `None`: for ever."""
    if status is TaskStatus.SCHEDULING:
        return workflow.queue_timeout_s
    return workflow.exec_timeout_s if status is TaskStatus.RUNNING else None


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


def _worst(statuses: Collection[TaskStatus], considered: Collection[TaskStatus]) -> TaskStatus:
    """The first of these that some task has; of the last two, some task that counts."""
    for status in (
        TaskStatus.FAILED_UPSTREAM,
        TaskStatus.FAILED_CANCELED,
        TaskStatus.FAILED_SERVER_ERROR,
        TaskStatus.FAILED_EXEC_TIMEOUT,
        TaskStatus.FAILED_QUEUE_TIMEOUT,
        TaskStatus.FAILED_PREEMPTED,
    ):
        if status in statuses:
            return status
    failed = {each for each in considered if each is not TaskStatus.COMPLETED}
    if not failed:
        return TaskStatus.COMPLETED
    if TaskStatus.FAILED_EVICTED in failed:
        return TaskStatus.FAILED_EVICTED
    return failed.pop() if len(failed) == 1 else TaskStatus.FAILED
