"""Workflows and tasks as text. Must not know how they were found."""

from __future__ import annotations

from typing import Any

from bough.cli.output import printable
from bough.cli.ruled import NOTHING, render_fields, render_ruled, show_time
from bough.cli.text.plans import render_certificate

_LIST = ("User", "Workflow ID", "Submit Time", "Status", "Priority", "Labels", "Overview")
_LINE = "-" * 68
#: How many tasks are named that have the same message.
NAMED = 3


def render_list(answer: Any) -> str:
    """A line for each workflow."""
    if not answer["workflows"]:
        return "There are no workflows to view."
    rows = [
        (
            each.get("user"),
            each.get("name"),
            show_time(each["submit_time"]),
            each.get("status"),
            each.get("priority"),
            each.get("labels"),
            each.get("overview"),
        )
        for each in answer["workflows"]
    ]
    return render_ruled(_LIST, rows)


def render_query(answer: Any, *, verbose: bool) -> str:
    """One workflow with its tasks."""
    fields = render_fields(
        [
            ("Workflow ID", answer["name"]),
            ("Status", answer["status"]),
            ("User", answer["submitted_by"]),
            ("Submit Time", show_time(answer["submit_time"])),
            ("Labels", answer.get("labels") or NOTHING),
            ("Overview", answer["overview"]),
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
            task["name"],
            *((task["retry_id"],) if verbose else ()),
            show_time(task["start_time"]),
            task["status"],
            *((task.get("exit_code"),) if verbose else ()),
        )
        for group in answer["groups"]
        for task in group["tasks"]
    ]
    parts = [_LINE, "", fields, "", render_ruled(header, rows)]
    if answer.get("failure_message"):
        parts += ["", f"Failure: {printable(answer['failure_message'])}"]
    parts += _messages(answer, verbose=verbose)
    return "\n".join(parts)


def _messages(answer: Any, *, verbose: bool) -> list[str]:
    """What is said about its tasks, where that is more than what is said about all of it."""
    told = [
        (
            f"{task['name']} (retry {task['retry_id']})" if verbose else task["name"],
            task["failure_message"],
        )
        for group in answer["groups"]
        for task in group["tasks"]
        if task.get("failure_message")
    ]
    waits = [
        (group["name"], f"{group['wait_message']} ({group.get('wait_reason')})")
        for group in answer["groups"]
        if group.get("wait_message")
    ]
    ended = [
        (group["name"], line.strip()) for group in answer["groups"] for line in _preempted(group)
    ]
    lines: list[str] = []
    if {message for _, message in told} - {answer.get("failure_message")}:
        lines += ["", "Messages:", *_said(told)]
    if waits:
        name = printable(answer["name"])
        lines += ["", f"Waiting (more: bough workflow why {name}):", *_said(waits)]
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
        lines.append(printable(f"  {_some(names)}: {message}"))
    return lines


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"


def render_why(name: str, answer: Any, *, queues: bool = False) -> str:
    """What stands against each group that waits, in the names of pools or of queues; what runs."""
    running = answer.get("running", [])
    if not answer["groups"]:
        message = answer.get("message") or f"Workflow {name} does not wait."
        parts = [*message.splitlines(), *_runs_lines(running, told=True)]
        return "\n".join(map(printable, parts))
    title = "QUEUE" if queues else "POOL"
    parts = [_group_text(group, title) for group in answer["groups"]]
    if running:
        parts.append("\n".join(map(printable, _runs_lines(running, told=False))))
    return "\n\n".join(parts)


def _group_text(group: Any, title: str) -> str:
    preempted = [printable(line) for line in _preempted(group)]
    if group.get("certificate") is None:
        reason = group.get("reason") or group["status"]
        message = group.get("message") or "it has not been looked at yet"
        text = f"{_who_waits(group, group['group'])} waits ({reason}): {printable(message)}"
    else:
        shown = {"eviction": None, "remedies": None, **group}
        text = render_certificate(shown, lambda _, amount: str(amount), queue=title)
        name = printable(group["certificate"]["workload"])
        text = _who_waits(group, name) + text.removeprefix(name)
    return "\n".join([text, *([""] if preempted else []), *preempted])


def _who_waits(group: Any, name: str) -> str:
    """The group; where others wait as it does, all of them as one."""
    alike = group.get("alike")
    if not alike:
        return printable(name)
    names = _some([group["group"], *alike])
    return printable(f"each of {1 + len(alike)} groups alike ({names})")


def _runs_lines(running: Any, *, told: bool) -> list[str]:
    """What runs, unless that was told already, and when it had to end for others before."""
    lines: list[str] = []
    for each in running:
        lines += [] if told else [each["message"]]
        lines += _preempted(each)
    return lines


def _preempted(group: Any) -> list[str]:
    """The last time that a group had to end for others, and how often it had to before."""
    found = group.get("preemptions")
    if not found:
        return []
    last = found[-1]
    what = "gave back tasks" if last["given_back"] else "was preempted"
    before = f" ({len(found)} times in all)" if len(found) > 1 else ""
    return [f"  it {what} at {show_time(last['at'])}{before}: {last['message']}"]


def render_tasks(answer: Any, *, verbose: bool) -> str:
    """A line for each task."""
    if not answer["tasks"]:
        return "There are no tasks to view."
    header = ["User", "Workflow ID", "Task", "Status", "Pool", "Priority", "Node", "Start Time"]
    rows = [
        [
            each.get("user"),
            each.get("workflow_id"),
            each.get("task_name"),
            each.get("status"),
            each.get("pool"),
            each.get("priority"),
            each.get("node"),
            show_time(each["start_time"]),
            *(_amounts(each) if verbose else ()),
        ]
        for each in answer["tasks"]
    ]
    totals = ["", "", "", "", "", "", "", "", *_sums(answer["tasks"])] if verbose else None
    return render_ruled([*header, *(_AMOUNTS if verbose else ())], rows, totals=totals)


def render_summaries(answer: Any, *, by_workflow: bool) -> str:
    """A line for each user and pool, or each workflow."""
    if not answer["summaries"]:
        return "There are no tasks to view."
    keys = ["user", *(["workflow_id"] if by_workflow else []), "pool", "priority"]
    titles = {"user": "User", "workflow_id": "Workflow ID", "pool": "Pool", "priority": "Priority"}
    rows = [[*(each.get(key) for key in keys), *_amounts(each)] for each in answer["summaries"]]
    totals = [*([""] * len(keys)), *_sums(answer["summaries"])]
    return render_ruled([*(titles[key] for key in keys), *_AMOUNTS], rows, totals=totals)


_AMOUNTS = ("Storage [Gi]", "CPU [#]", "Memory [Gi]", "GPU [#]")
_KEYS = ("storage", "cpu", "memory", "gpu")


def _amounts(each: Any) -> list[Any]:
    return [_number(each[key]) for key in _KEYS]


def _sums(rows: Any) -> list[Any]:
    return [_number(sum(each[key] for each in rows)) for key in _KEYS]


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
