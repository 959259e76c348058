"""What a submitter should know about a workflow although it is accepted."""

from __future__ import annotations

from collections.abc import Iterable

from bough.control.fields import read_duration_s, read_exit_codes
from bough.model.cluster import Resources
from bough.model.pool import Pool
from bough.model.settings import WorkflowSettings
from bough.model.words import write_amount
from bough.model.workflow import TaskSpec, WorkflowSpec

#: How many tasks a warning names at most.
_NAMED = 3
#: The highest exit code of a process; higher ones are set by the server.
_LAST_OWN_CODE = 255


def cautions(
    spec: WorkflowSpec, pool: Pool, settings: WorkflowSettings, largest: Resources | None
) -> tuple[str, ...]:
    """Warnings where a workflow will not run as it is written.

    `largest`: the most that any one node has; `None`: unknown, or one surely has enough.
    """
    return (
        *_cut_timeouts(spec, pool),
        *_unused_retries(spec, settings),
        *(() if largest is None else _too_large(spec, largest)),
    )


def most_needed(spec: WorkflowSpec) -> Resources:
    """The most that any of its tasks needs, of each resource."""
    needs = [task.requests for group in spec.groups for task in group.tasks]
    return Resources(
        gpus=max((each.gpus for each in needs), default=0),
        cpu_milli=max((each.cpu_milli for each in needs), default=0),
        memory_bytes=max((each.memory_bytes for each in needs), default=0),
    )


def _cut_timeouts(spec: WorkflowSpec, pool: Pool) -> Iterable[str]:
    for name, asked_s, most in (
        ("exec_timeout", spec.exec_timeout_s, pool.max_exec_timeout),
        ("queue_timeout", spec.queue_timeout_s, pool.max_queue_timeout),
    ):
        if asked_s is not None and most and read_duration_s(name, most) < asked_s:
            yield f"{name} is cut to {most}, the most that pool {pool.name} allows."


def _unused_retries(spec: WorkflowSpec, settings: WorkflowSettings) -> Iterable[str]:
    """Tasks that want a retry after exit codes of their own, where that is switched off.

    What is preempted or lost comes again in any case.
    """
    names = [task.name for group in spec.groups for task in group.tasks if _reschedules_own(task)]
    if names and settings.max_retry_per_task == 0:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield (
            f"exitActions of {', '.join(names[:_NAMED])}{more}: RESCHEDULE has no effect on exit "
            "codes of tasks themselves, because max_retry_per_task is 0; an administrator can "
            "raise it."
        )


def _reschedules_own(task: TaskSpec) -> bool:
    codes = task.exit_actions.get("RESCHEDULE")
    if codes is None or task.retries is not None:
        return False
    return any(first <= _LAST_OWN_CODE for first, _ in read_exit_codes("RESCHEDULE", codes))


def _too_large(spec: WorkflowSpec, largest: Resources) -> Iterable[str]:
    """The first task that no node has room for even if nothing else runs on it."""
    for task in (task for group in spec.groups for task in group.tasks):
        needs = task.requests
        for word, resource, needed, most in (
            (" GPUs", "gpu", needs.gpus, largest.gpus),
            (" CPUs", "cpu", needs.cpu_milli, largest.cpu_milli),
            (" of memory", "memory", needs.memory_bytes, largest.memory_bytes),
        ):
            if needed > most:
                yield (
                    f"Task {task.name} needs {write_amount(resource, needed)}{word}, and no node "
                    f"has more than {write_amount(resource, most)}; it waits until one does."
                )
                return
