"""Workflows and tasks as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.cli.output import printable, some_of
from bough.cli.screen import paint_status, program, screen
from bough.cli.tables import NOTHING, Cell, render_fields, render_table
from bough.cli.text.why import preemption_lines
from bough.cli.times import show_age, show_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bough.api.workflows import (
        ArrayDocument,
        Submission,
        TaskLine,
        TaskList,
        TaskSummary,
        WorkflowDocument,
        WorkflowLine,
    )


_LIST = ("Status", "Pool", "GPUs", "Priority", "Time", "Reason")
_OSMO_LIST = ("User", "Workflow ID", "Submit Time", "Status", "Priority", "Labels", "Overview")
_TASKS = ["Workflow", "Task", "Status", "Pool", "Priority", "Node", "Time"]
_OSMO_TASKS = ["User", "Workflow ID", "Task", "Status", "Pool", "Priority", "Node", "Start Time"]
_AMOUNTS = ("Storage [Gi]", "CPU [#]", "Memory [Gi]", "GPU [#]")
_LINE = "-" * 68
#: How many tasks are named that have the same message.
MAXIMUM_NAMED = 3


def render_array(answer: ArrayDocument) -> str:
    """An array: how many of its elements have which status."""
    at_once = (("At Once", answer.at_once),) if answer.at_once is not None else ()
    fields = [
        ("Array", answer.name),
        ("Status", answer.status),
        ("User", answer.user),
        ("Pool", answer.pool),
        ("Priority", answer.priority),
        ("Submitted", show_time(answer.submit_time)),
        ("Elements", answer.elements),
        *at_once,
    ]
    rows = [*answer.statuses.items()]
    if answer.archived:
        rows.append(("(archived)", answer.archived))
    table = render_table(("Status", "Elements"), rows, numbers=(1,), status=0)
    more = f"Its elements: {program()} workflow list --array {printable(answer.name)}"
    return "\n".join([render_fields(fields), "", table, "", more])


def render_lists(
    found: Sequence[WorkflowLine], arrays: Sequence[ArrayDocument], *, others: bool = False
) -> str:
    """Workflows, then arrays, a line for each."""
    parts = [render_list(found, others=others)] if found or not arrays else []
    if arrays:
        header = ("Array", "Status", "Pool", "Priority", "Elements", "Waiting", "Running", "Failed")
        rows = [
            (
                each.name,
                each.status,
                each.pool,
                each.priority,
                each.elements,
                each.statuses.get("PENDING", 0) + each.statuses.get("WAITING", 0),
                each.statuses.get("RUNNING", 0),
                sum(number for name, number in each.statuses.items() if name[:6] == "FAILED"),
            )
            for each in arrays
        ]
        parts.append(render_table(header, rows, numbers=(4, 5, 6, 7), status=1, cut=2))
    return "\n\n".join(parts)


def render_list(found: Sequence[WorkflowLine], *, others: bool = False) -> str:
    """A line for each workflow: what it asks for, how long it runs or waits, and what for.

    others: other users have some, which were not asked for.
    """
    if not found and others:
        return "You have no workflows to view; --all-users shows those of others."
    if not found:
        return "There are no workflows to view."
    if screen().osmo:
        return render_table(_OSMO_LIST, [_osmo_row(each) for each in found])
    users = len({each.user for each in found}) > 1
    rows = [
        [
            each.name,
            *((each.user,) if users else ()),
            each.status,
            each.pool,
            each.gpus,
            each.priority,
            _time_of(each),
            each.wait_reason or "",
        ]
        for each in found
    ]
    header = ["Workflow", *(("User",) if users else ()), *_LIST]
    numbers = (3 + users, 5 + users)
    return render_table(header, rows, numbers=numbers, status=1 + users, cut=2 + users)


def _osmo_row(each: WorkflowLine) -> list[Cell]:
    return [
        each.user,
        each.name,
        show_time(each.submit_time),
        each.status,
        each.priority,
        each.labels,
        each.overview,
    ]


def _time_of(each: WorkflowLine) -> str:
    """How long it has run or ran; where it has not started, how long ago it was submitted."""
    if each.start_time:
        return show_age(each.start_time, each.end_time)
    return show_age(each.submit_time, each.end_time)


def render_query(answer: WorkflowDocument, *, verbose: bool) -> str:
    """One workflow with its tasks."""
    parts = _osmo_query(answer, verbose=verbose) if screen().osmo else _query(answer, verbose)
    if answer.failure_message:
        parts += ["", f"Failure: {printable(answer.failure_message)}"]
    parts += _messages(answer, verbose=verbose)
    return "\n".join(parts)


def _query(answer: WorkflowDocument, verbose: bool) -> list[str]:
    tasks = [task for group in answer.groups for task in group.tasks]
    fields = [
        ("Workflow", answer.name),
        ("Status", answer.status),
        ("User", answer.submitted_by),
        ("Pool", answer.pool),
        ("Priority", answer.priority),
        ("Submitted", show_time(answer.submit_time)),
        *((("Archived", show_time(answer.archive_time)),) if answer.archive_time else ()),
        *((("Labels", answer.labels),) if answer.labels else ()),
        ("Overview", answer.overview),
    ]
    header = (
        "Task",
        *(("Retry",) if verbose else ()),
        "Status",
        "GPUs",
        "Started",
        "Time",
        "Exit Code",
        "Node",
    )
    rows = [
        (
            task.name,
            *((task.retry_id,) if verbose else ()),
            task.status,
            task.gpus,
            show_time(task.start_time),
            show_age(task.start_time, task.end_time),
            task.exit_code,
            task.node_name,
        )
        for task in tasks
    ]
    numbers = (1, 3, 5, 6) if verbose else (2, 4, 5)
    table = render_table(header, rows, numbers=numbers, status=1 + verbose)
    return [render_fields(fields), "", table]


def _osmo_query(answer: WorkflowDocument, *, verbose: bool) -> list[str]:
    fields = render_fields(
        [
            ("Workflow ID", answer.name),
            ("Status", answer.status),
            ("User", answer.submitted_by),
            ("Submit Time", show_time(answer.submit_time)),
            ("Labels", answer.labels or NOTHING),
            ("Overview", answer.overview),
        ]
    )
    header = (
        "Task Name",
        *(("Retry ID",) if verbose else ()),
        "Start Time",
        "Status",
        *(("Exit Code",) if verbose else ()),
    )
    rows = [
        (
            task.name,
            *((task.retry_id,) if verbose else ()),
            show_time(task.start_time),
            task.status,
            *((task.exit_code,) if verbose else ()),
        )
        for group in answer.groups
        for task in group.tasks
    ]
    return [_LINE, "", fields, "", render_table(header, rows)]


def _messages(answer: WorkflowDocument, *, verbose: bool) -> list[str]:
    """Messages of its tasks that say more than the message of the workflow."""
    told = [
        (
            f"{task.name} (retry {task.retry_id})" if verbose else task.name,
            task.failure_message,
        )
        for group in answer.groups
        for task in group.tasks
        if task.failure_message
    ]
    waits = [
        (group.name, f"{group.wait_message} ({group.wait_reason})")
        for group in answer.groups
        if group.wait_message
    ]
    ended = [
        (group.name, line.strip()) for group in answer.groups for line in preemption_lines(group)
    ]
    lines: list[str] = []
    if {message for _, message in told} - {answer.failure_message}:
        lines += ["", "Messages:", *_said(told)]
    if waits:
        name = printable(answer.name)
        lines += ["", f"Waiting (more: {program()} workflow why {name}):", *_said(waits)]
    if ended:
        lines += ["", "Preempted:", *_said(ended)]
    return lines


def _said(told: list[tuple[str, str]]) -> list[str]:
    """A line for each message, with the names of some that it is about."""
    about: dict[str, list[str]] = {}
    for name, message in told:
        about.setdefault(message, []).append(name)
    lines: list[str] = []
    for message, names in about.items():
        lines.append(printable(f"  {some_of(names, MAXIMUM_NAMED)}: {message}"))
    return lines


def render_submitted(answer: Submission) -> str:
    """A workflow that was accepted."""
    lines = ["Workflow submit successful.", f"Workflow ID        - {answer.name}"]
    if answer.overview:
        lines.append(f"Workflow Overview  - {answer.overview}")
    if answer.dashboard_url:
        lines.append(f"Workflow Dashboard - {answer.dashboard_url}")
    if answer.elements is not None:
        lines.append(f"Elements           - {answer.elements}")
    limits = answer.default_limits
    if limits is not None and not screen().osmo:
        lines.append(
            f"Default Limits     - {limits.memory} of memory and {limits.storage} of disk for each "
            "GPU of a task"
        )
    return "\n".join(lines)


def render_ended(found: Sequence[WorkflowDocument | ArrayDocument]) -> str:
    """A line for each workflow: how it ended, and of what failed the reason."""
    lines: list[str] = []
    for each in found:
        said = getattr(each, "failure_message", None)
        why = f": {printable(said)}" if said else ""
        lines.append(f"{each.name} {paint_status(each.status)}{why}")
    return "\n".join(lines)


def render_moved(answer: WorkflowDocument) -> str:
    """A workflow that was moved to another pool, or got another priority."""
    return f"Workflow {answer.name} waits in pool {answer.pool} with priority {answer.priority}."


def render_tasks(answer: TaskList, *, verbose: bool) -> str:
    """A line for each task."""
    found = answer.tasks
    if not found:
        return "There are no tasks to view."
    if screen().osmo:
        header, rows = _OSMO_TASKS, [_osmo_task(each) for each in found]
    else:
        header, rows = _TASKS, [_task(each) for each in found]
    totals = None
    if verbose:
        totals = [*([""] * len(header)), *_sums(found)]
        rows = [[*row, *_amounts(each)] for row, each in zip(rows, found, strict=True)]
        header = [*header, *_AMOUNTS]
    numbers = (6, *range(7, 11))
    return render_table(header, rows, totals=totals, numbers=numbers, status=2, cut=3)


def _task(each: TaskLine) -> list[Cell]:
    return [
        each.workflow_id,
        each.task_name,
        each.status,
        each.pool,
        each.priority,
        each.node,
        show_age(each.start_time, each.end_time),
    ]


def _osmo_task(each: TaskLine) -> list[Cell]:
    return [
        each.user,
        each.workflow_id,
        each.task_name,
        each.status,
        each.pool,
        each.priority,
        each.node,
        show_time(each.start_time),
    ]


def render_summaries(answer: TaskList, *, by_workflow: bool) -> str:
    """A line for each user and pool, or each workflow."""
    found = answer.summaries or []
    if not found:
        return "There are no tasks to view."
    titles = ["User", *(["Workflow ID"] if by_workflow else []), "Pool", "Priority"]
    rows = [
        [
            each.user,
            *((each.workflow_id,) if by_workflow else ()),
            each.pool,
            each.priority,
            *_amounts(each),
        ]
        for each in found
    ]
    totals = [*([""] * len(titles)), *_sums(found)]
    numbers = range(len(titles), len(titles) + len(_AMOUNTS))
    return render_table([*titles, *_AMOUNTS], rows, totals=totals, numbers=numbers)


def _amounts(each: TaskLine | TaskSummary) -> list[str]:
    return [_number(number) for number in _numbers(each)]


def _numbers(each: TaskLine | TaskSummary) -> tuple[float, ...]:
    """In the order of the columns."""
    return each.storage, each.cpu, each.memory, each.gpu


def _sums(rows: Sequence[TaskLine | TaskSummary]) -> list[str]:
    return [_number(sum(column)) for column in zip(*map(_numbers, rows), strict=True)]


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
