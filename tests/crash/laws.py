"""What must hold once everything has come to rest, whatever was killed before.

Every law returns sentences about what breaks it; none is right.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

from bough.model.change_record import EventKind, StoredEvent
from bough.model.subpool import SubpoolState
from bough.model.transitions import TASK_TRANSITIONS, WORKFLOW_TRANSITIONS
from bough.model.workflow import ExitCode, Task, TaskStatus, Workflow, WorkflowStatus
from tests.crash.jobs import Job
from tests.crash.load import Answer, Load
from tests.crash.record import Record
from tests.crash.witness import Run, Witness

_LINE = re.compile(r"\] line ([0-9]+)$")
_LOST = re.compile(r"\] .*?([0-9]+) lines? .*lost")
_TASK_STEPS = {(source, each.target) for each in TASK_TRANSITIONS for source in each.sources}
_WORKFLOW_STEPS = {
    (source, each.target) for each in WORKFLOW_TRANSITIONS for source in each.sources
}
#: How an attempt can end while another one follows, as long as only servers are killed.
FOLLOWED = frozenset((TaskStatus.FAILED_PREEMPTED, TaskStatus.RESCHEDULED))
#: Likewise where supervisors are killed, too.
FOLLOWED_OR_LOST = FOLLOWED | {TaskStatus.FAILED_BACKEND_ERROR}


def nothing_accepted_is_lost(record: Record, load: Load) -> Iterator[str]:
    """Every workflow that was accepted is there, and has ended as it should."""
    for name, identifier in load.accepted.items():
        workflow = record.workflows.get(identifier)
        if workflow is None:
            yield f"{identifier} was accepted, and is not there"
            continue
        fitting = _fitting(load.jobs[name], load.cancellations.get(identifier))
        if workflow.status not in fitting:
            wanted = " or ".join(sorted(fitting))
            message = workflow.failure_message
            yield f"{identifier} is {workflow.status} and not {wanted}: {message}"


def nothing_is_half(record: Record, load: Load) -> Iterator[str]:
    """What is there is whole and was asked for, also where the answer never arrived."""
    for workflow in record.workflows.values():
        job, answer = load.jobs.get(workflow.name), load.submissions.get(workflow.name)
        if job is None or answer is None:
            yield f"no client submitted {workflow.workflow_id}"
            continue
        if workflow.status is WorkflowStatus.FAILED_SUBMISSION:
            if answer.kind == "done":
                yield f"{workflow.workflow_id} was accepted and refused"
            continue
        if answer.kind == "refused" and not answer.open:
            yield f"{workflow.workflow_id} is there, but was refused: {answer.message}"
        if not workflow.status.finished:
            yield f"{workflow.workflow_id} is still {workflow.status}"
        groups = {each.name for each in record.groups[workflow.uuid]}
        tasks = {each.name for each in record.tasks[workflow.uuid]}
        if groups != {each.name for each in job.groups} or tasks != set(job.tasks):
            yield f"{workflow.workflow_id} has only groups {groups} and tasks {tasks}"
    counted = Counter(each.name for each in record.workflows.values())
    yield from (f"{name} was taken {n} times" for name, n in counted.items() if n > 1)


def each_attempt_runs_once(
    record: Record, witness: Witness, followed: frozenset[TaskStatus] = FOLLOWED
) -> Iterator[str]:
    """An attempt has one process at most, with the GPUs it asked for; and just one if it ended."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for run in list(witness.runs):
        runs[run.attempt].append(run)
    known = record.attempts
    for attempt, found in runs.items():
        if attempt not in known:
            yield f"{found[0].job}/{found[0].task} ran as {attempt}, which is unknown"
            continue
        gpus = known[attempt][1].gpus
        if len(found) > 1:
            yield f"{found[0].job}/{found[0].task} ({attempt}) ran {len(found)} times"
        if len(set(found[0].gpus)) != gpus:
            yield f"{attempt} has the GPUs {found[0].gpus} instead of {gpus} of them"
    for attempt, (workflow, task) in known.items():
        yield from _fits(workflow, task, runs.get(attempt, []))
    yield from _attempts_in_order(record, followed)


def no_gpu_has_two_holders(witness: Witness) -> Iterator[str]:
    """By what the witness saw when each task came, and by the clocks of the tasks themselves."""
    yield from witness.wrongs
    by_gpu: dict[int, list[Run]] = defaultdict(list)
    for run in list(witness.runs):
        for gpu in run.gpus:
            by_gpu[gpu].append(run)
    for gpu, runs in by_gpu.items():
        for one, other in pairwise(sorted(runs, key=lambda run: run.started_s)):
            if one.farewell_s is not None and other.started_s < one.farewell_s:
                yield f"GPU {gpu} is used by {one.attempt} and {other.attempt} at once"


def nothing_is_left(record: Record, witness: Witness) -> Iterator[str]:
    """No process runs on, no message waits in the outbox, and no subpool still drains."""
    for run in witness.living:
        yield f"{run.job}/{run.task} ({run.attempt}) still runs"
    if record.messages:
        yield f"{record.messages} messages were never run"
    for subpool in record.subpools:
        if subpool.state is SubpoolState.DELETING:
            yield f"{subpool.name} is still DELETING"


def quotas_are_whole(record: Record, load: Load) -> Iterator[str]:
    """At every check, and at the end."""
    yield from load.wrongs
    for pool in record.pools:
        given = sum(each.counted for each in record.subpools if each.parent == pool.name)
        if pool.gpu.guarantee is not None and given > pool.gpu.guarantee:
            yield f"{pool.name} has {pool.gpu.guarantee} GPUs, and its subpools have {given}"


def events_tell_a_legal_story(record: Record) -> Iterator[str]:
    """Every change of a status is one that there can be, from the first to what is true now."""
    held_back = {
        (group.workflow_uuid, task.name)
        for groups in record.groups.values()
        for group in groups
        if group.spec.upstream
        for task in group.spec.tasks
    }
    for identifier, workflow in record.workflows.items():
        told = record.events.get(identifier, [])
        yield from _workflow_story(workflow, told)
        stories = _task_stories(told)
        for task in record.tasks[workflow.uuid]:
            # The first attempt comes with its workflow, without an event of its own.
            waits = (workflow.uuid, task.name) in held_back
            first = TaskStatus.WAITING if waits else TaskStatus.SCHEDULING
            story = stories[task.name, task.retry_id]
            name = f"{identifier}/{task.name}#{task.retry_id}"
            yield from _task_story(name, task, [None] if task.retry_id else [first], story)


def logs_are_complete(
    record: Record,
    witness: Witness,
    read_log: Callable[[str, str, int], list[str]],
    *,
    may_be_lost: bool = False,
    cut: frozenset[str] = frozenset(),
) -> Iterator[str]:
    """Every line that a task printed is in its log, once and in order.

    Of an attempt that was cut, or whose supervisor was killed, what that had read. Where lines may
    be lost because they could not be written, the log says how many.
    """
    known = record.attempts
    for run in list(witness.runs):
        if run.attempt not in known:
            continue
        workflow, task = known[run.attempt]
        lines = read_log(workflow.workflow_id, task.name, task.retry_id)
        numbers = [int(found[1]) for each in lines if (found := _LINE.search(each))]
        lost = [int(found[1]) for each in lines if (found := _LOST.search(each))]
        # A task that is lost after the lead of its group has ended ends as the lead did.
        lost_with_lead = task.exit_code == ExitCode.UNKNOWN
        killed = task.status is TaskStatus.FAILED_BACKEND_ERROR or lost_with_lead
        count = len(numbers) if killed or run.attempt in cut or run.lines is None else run.lines
        if may_be_lost and lost:
            whole = numbers == sorted(set(numbers)) and len(numbers) + sum(lost) == count
        else:
            whole = numbers == list(range(1, count + 1))
        if not whole:
            yield (
                f"{workflow.workflow_id}/{task.name} ({run.attempt}), which is {task.status}, said "
                f"it printed {run.lines} lines; its log has {len(lines)}, the last {lines[-1:]}, "
                f"and of the numbers {numbers}"
            )


def _fitting(job: Job, cancelled: Answer | None) -> set[WorkflowStatus]:
    alone = WorkflowStatus.FAILED if job.fails else WorkflowStatus.COMPLETED
    if cancelled is None:
        return {alone}
    if cancelled.open:
        return {alone, WorkflowStatus.FAILED_CANCELED}
    return {WorkflowStatus.FAILED_CANCELED if cancelled.kind == "done" else alone}


def _fits(workflow: Workflow, task: Task, runs: list[Run]) -> Iterator[str]:
    """A task is said to have done its work exactly if it did."""
    done = any(run.farewell == "done" for run in runs)
    name = f"{workflow.workflow_id}/{task.name}#{task.retry_id} ({task.attempt})"
    if task.lead and task.status in (TaskStatus.COMPLETED, TaskStatus.FAILED) and not done:
        yield f"{name} is {task.status}, and no client saw it done"
    if done and not task.status.finished:
        yield f"{name} is done, and {task.status}"


def _attempts_in_order(record: Record, followed: frozenset[TaskStatus]) -> Iterator[str]:
    """Only what was ended for a reason is tried again, and nothing after its end."""
    for uuid, tasks in record.tasks.items():
        by_name: dict[str, list[Task]] = defaultdict(list)
        for task in sorted(tasks, key=lambda each: each.retry_id):
            by_name[task.name].append(task)
        for name, attempts in by_name.items():
            if [each.retry_id for each in attempts] != list(range(len(attempts))):
                yield f"{uuid}/{name} has the attempts {[each.retry_id for each in attempts]}"
            for each in attempts[:-1]:
                if each.status not in followed:
                    yield (
                        f"{uuid}/{name}#{each.retry_id} is {each.status} "
                        f"({each.failure_message}), and another attempt follows"
                    )


def _workflow_story(workflow: Workflow, told: list[StoredEvent]) -> Iterator[str]:
    status: WorkflowStatus | None = None
    for event in told:
        if event.kind in (EventKind.WORKFLOW_SUBMITTED, EventKind.WORKFLOW_REFUSED):
            if status is not None:
                yield f"{workflow.workflow_id} was submitted twice"
            refused = event.kind is EventKind.WORKFLOW_REFUSED
            status = WorkflowStatus.FAILED_SUBMISSION if refused else WorkflowStatus.PENDING
        elif event.kind is EventKind.WORKFLOW_STATUS:
            before, after = (WorkflowStatus(event.data[key]) for key in ("before", "after"))
            if before is not status or (before, after) not in _WORKFLOW_STEPS:
                yield f"{workflow.workflow_id} was {status}, then went from {before} to {after}"
            status = after
    if status is not workflow.status:
        yield f"{workflow.workflow_id} is {workflow.status}, but was said to be {status}"


def _task_stories(told: list[StoredEvent]) -> dict[tuple[str, int], list[TaskStatus]]:
    """What was told of each attempt, by the task's name and the number of the attempt."""
    found: dict[tuple[str, int], list[TaskStatus]] = defaultdict(list)
    latest: dict[str, int] = {}
    for event in told:
        if event.kind is not EventKind.TASK_STATUS:
            continue
        status = TaskStatus(event.message)
        if "nodes" in event.data:
            # What starts together is told together, of whichever attempts are the latest.
            for name in event.data["nodes"]:
                found[name, latest.get(name, 0)].append(status)
        else:
            name, retry = event.data["task"], event.data["retry_id"]
            latest[name] = max(retry, latest.get(name, 0))
            found[name, retry].append(status)
    return found


def _task_story(
    name: str, task: Task, start: list[TaskStatus | None], story: list[TaskStatus]
) -> Iterator[str]:
    for before, after in pairwise([*start, *story]):
        if after is not before and (before, after) not in _TASK_STEPS:
            yield f"{name} went from {before} to {after}: {story}"
    last = [*start, *story][-1]
    if last is not task.status:
        yield f"{name} is {task.status}, but was said to be {last}: {story}"
