"""Events of a workflow, as the lines of text that existing clients and interfaces read.

`2026-02-12 08:38:57+00:00 [task retry-1] Reason: message`, each line about one task, or about the
workflow as a whole. The reasons are Kubernetes' words, from which interfaces tell the progress of a
task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from bough.model.change_record import EventKind, StoredEvent
from bough.model.workflow import TaskStatus, WorkflowStatus

#: The task is in the queue, or will be.
_QUEUED = "Queued"
_FAILED = "Failed"
#: Reasons by status, of tasks and of workflows; any other status is a failure.
_REASONS = {
    **dict.fromkeys(
        (
            TaskStatus.SUBMITTING.value,
            TaskStatus.WAITING.value,
            TaskStatus.PROCESSING.value,
            TaskStatus.SCHEDULING.value,
            WorkflowStatus.PENDING.value,
        ),
        _QUEUED,
    ),
    TaskStatus.INITIALIZING.value: "Scheduled",
    TaskStatus.RUNNING.value: "Started",
    TaskStatus.COMPLETED.value: "Completed",
    TaskStatus.FAILED_EVICTED.value: "Evicted",
    TaskStatus.FAILED_PREEMPTED.value: "Evicted",
    TaskStatus.FAILED_IMAGE_PULL.value: "ErrImagePull",
}
_WAITING = "FailedScheduling"
_PREEMPTED = "DisruptionTarget"
#: Reasons of events about workflows as a whole; others keep their kind as the reason.
_OF_WORKFLOWS = {
    EventKind.WORKFLOW_REFUSED: _FAILED,
    # A backend could not be reached.
    EventKind.WAITING: "FailedSync",
}


class EventLine(NamedTuple):
    """One line."""

    #: `None`: it is about the workflow as a whole.
    task: str | None
    retry_id: int
    text: str


class EventLines:
    """Turns the events of one workflow into lines; it needs all of them, in order.

    An event of a group becomes a line for each of its tasks, with its latest attempt at that time.
    """

    def __init__(self, groups: Mapping[str, Sequence[str]]) -> None:
        #: The names of the tasks of each group.
        self._groups = groups
        self._retries: dict[str, int] = {}

    def lines(self, event: StoredEvent) -> Iterator[EventLine]:
        """The lines of an event, one for each task that it is about."""
        data: dict[str, Any] = event.data if isinstance(event.data, dict) else {}
        message = " ".join(part for part in (event.message, data.get("message")) if part)
        if event.kind is EventKind.TASK_STATUS:
            yield from self._statuses(event, data)
        elif event.kind is EventKind.PREEMPTED:
            for task in data.get("tasks", ()):
                yield self._line(event, task, _PREEMPTED, message)
        elif event.kind is EventKind.WAITING and data.get("group") in self._groups:
            for task in self._groups[data["group"]]:
                yield self._line(event, task, _WAITING, message)
        elif event.kind is EventKind.WORKFLOW_STATUS:
            yield self._line(event, None, *_status(event.message, {}))
        else:
            reason = _OF_WORKFLOWS.get(event.kind, event.kind.rpartition(".")[2].capitalize())
            yield self._line(event, None, reason, message or event.subject)

    def _statuses(self, event: StoredEvent, data: dict[str, Any]) -> Iterator[EventLine]:
        """The new status of one task, or of those that were placed together."""
        if "task" in data:
            self._retries[data["task"]] = data.get("retry_id") or 0
            yield self._line(event, data["task"], *_status(event.message, data))
        for task, node in data.get("nodes", {}).items():
            yield self._line(event, task, *_status(event.message, {"node": node}))

    def _line(self, event: StoredEvent, task: str | None, reason: str, message: str) -> EventLine:
        retry_id = 0 if task is None else self._retries.get(task, 0)
        retry = f" retry-{retry_id}" if retry_id else ""
        at = datetime.fromtimestamp(event.at_ms // 1_000, UTC)
        text = one_line(f"{at} [{task or event.subject}{retry}] {reason}: {message}")
        return EventLine(task, retry_id, f"{text}\n")


def one_line(text: str) -> str:
    """Remove line ends, of any kind that clients know, and characters that are not text."""
    return " ".join(text.splitlines()).encode("utf-8", "replace").decode()


def _status(status: str, data: Mapping[str, Any]) -> tuple[str, str]:
    """The reason and the message for a status."""
    told = TaskStatus.RUNNING.value, TaskStatus.INITIALIZING.value
    where = f" on {data['node']}" if data.get("node") and status in told else ""
    code = data.get("exit_code")
    ended = "" if code is None else f", exit code {code}"
    why = f": {data['message']}" if data.get("message") else ""
    return _REASONS.get(status, _FAILED), f"{status}{where}{ended}{why}"
