"""Workflows and tasks as text. Must not know how they were found."""

from __future__ import annotations

from typing import Any

from bough.cli.output import printable
from bough.cli.plan_text import render_certificate
from bough.cli.ruled import NOTHING, render_fields, render_ruled, show_time

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
    lines: list[str] = []
    if {message for _, message in told} - {answer.get("failure_message")}:
        lines += ["", "Messages:", *_said(told)]
    if waits:
        name = printable(answer["name"])
        lines += ["", f"Waiting (more: bough workflow why {name}):", *_said(waits)]
    return lines


def _said(told: list[tuple[str, str]]) -> list[str]:
    """A line for each message, with the names of some that it is about."""
    about: dict[str, list[str]] = {}
    for name, message in told:
        about.setdefault(message, []).append(name)
    lines: list[str] = []
    for message, names in about.items():
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        lines.append(printable(f"  {', '.join(names[:NAMED])}{more}: {message}"))
    return lines


def render_why(name: str, answer: Any, *, queues: bool = False) -> str:
    """What stands against each group that waits, in the names of pools or of queues."""
    if not answer["groups"]:
        return printable(answer.get("message") or f"Workflow {name} does not wait.")
    title = "QUEUE" if queues else "POOL"
    return "\n\n".join(_group_text(group, title) for group in answer["groups"])


def _group_text(group: Any, title: str) -> str:
    if group.get("certificate") is None:
        reason = group.get("reason") or group["status"]
        message = group.get("message") or "it has not been looked at yet"
        return f"{printable(group['group'])} waits ({reason}): {printable(message)}"
    shown = {"eviction": None, "remedies": None, **group}
    return render_certificate(shown, lambda _, amount: str(amount), queue=title)


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
