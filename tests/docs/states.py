"""The states of tasks, groups and workflows as diagrams and tables, from what decides them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from bough.model.transitions import (
    EXIT_CODES,
    GROUP_TRANSITIONS,
    TASK_TRANSITIONS,
    WORKFLOW_TRANSITIONS,
    Transition,
)
from bough.model.workflow import TaskStatus, WorkflowStatus

OPENING = "<!-- states -->"
CLOSING = "<!-- end of states -->"
#: States that are drawn in one box.
_BOXES = {
    "on_a_node": ("INITIALIZING", "RUNNING"),
    "alive": ("PENDING", "RUNNING"),
}


def sections() -> list[str]:
    """The lines of the reference."""
    lines: list[str] = [""]
    for heading, table, statuses in (
        ("Tasks", TASK_TRANSITIONS, TaskStatus),
        ("Groups", GROUP_TRANSITIONS, TaskStatus),
        ("Workflows", WORKFLOW_TRANSITIONS, WorkflowStatus),
    ):
        lines += [f"## {heading}", "", *_diagram(table), "", *_table(table), ""]
        lines += [_unreached(table, statuses), ""]
    lines += ["## Exit codes", "", "| code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES]
    return [*lines, ""]


def _diagram(table: Sequence[Transition]) -> list[str]:
    """What leads where; what leads from all states of a box leads from the box."""
    steps: dict[tuple[str, str], list[str]] = {}
    for each in table:
        for source in _boxed(_shown_sources(each, table)):
            events = steps.setdefault((source, each.target.value), [])
            if each.event not in events:
                events.append(each.event)
    lines = ["```mermaid", "stateDiagram-v2"]
    for box, members in _BOXES.items():
        inner = [pair for pair in steps if {*pair} <= {*members}]
        if inner:
            lines += [f'    state "{box.replace("_", " ")}" as {box} {{']
            lines += [f"        {_step(pair, steps.pop(pair))}" for pair in inner]
            lines += ["    }"]
    lines += [f"    {_step(pair, events)}" for pair, events in steps.items()]
    return [*lines, "```"]


def _step(pair: tuple[str, str], events: Sequence[str]) -> str:
    return f"{pair[0]} --> {pair[1]}: {', '.join(events)}"


def _boxed(sources: list[str]) -> list[str]:
    for box, members in _BOXES.items():
        if {*members} <= {*sources}:
            return [*(each for each in sources if each not in members), box]
    return sources


def _table(table: Sequence[Transition]) -> list[str]:
    """A row for each event; where it leads to several states, these together."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for each in table:
        sources = ", ".join(_shown_sources(each, table)).replace("[*]", "*new*")
        rows.setdefault((each.event, sources, each.meaning), []).append(each.target.value)
    return [
        "| event | from | to | when |",
        "|---|---|---|---|",
        *(
            f"| {event} | {sources} | {', '.join(targets)} | {meaning} |"
            for (event, sources, meaning), targets in rows.items()
        ),
    ]


def _shown_sources(transition: Transition, table: Sequence[Transition]) -> list[str]:
    """The sources that something leads to; the others are known only for existing clients."""
    reached = {each.target for each in table}
    return [
        "[*]" if source is None else source.value
        for source in transition.sources
        if source is None or source in reached
    ]


def _unreached(table: Sequence[Transition], statuses: Iterable[StrEnum]) -> str:
    reached = {each.target for each in table}
    names = ", ".join(f"`{each.value}`" for each in statuses if each not in reached)
    return f"{names} are never reached; they exist because existing clients may ask for them."
