"""Who has which GPU, and what waits, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from bough.cli.output import printable
from bough.cli.screen import paint_heading, screen
from bough.cli.tables import render_table
from bough.cli.text.workflows import render_list
from bough.cli.times import show_age

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The width if the terminal does not say one.
WIDTH = 80


class GpuHolder(msgspec.Struct, frozen=True):
    """A task and its GPUs on one node, counted from 0; only the node knows the real numbers."""

    first: int
    last: int
    workflow: str
    task: str
    user: str
    pool: str
    priority: str
    start_time: str | None


class NodeHolders(msgspec.Struct, frozen=True):
    """A node and the tasks that have its GPUs."""

    node: str
    status: str
    gpus: int
    #: Includes use by tasks that are not shown.
    used: int
    holders: list[GpuHolder]


class Top(msgspec.Struct, frozen=True):
    """All nodes, and what waits, the oldest first."""

    nodes: list[NodeHolders]
    waiting: list[Any]
    more_waiting: bool


def render_top(found: Top, width: int | None = None) -> str:
    """A line for each holder and for what is free, then the queue; it fits the width."""
    width = width or screen().width or WIDTH
    used, gpus = sum(each.used for each in found.nodes), sum(each.gpus for each in found.nodes)
    title = f"{used} of {gpus} GPUs in use, {_counted(found)} waiting"
    rows = [row for node in found.nodes for row in _rows(node)]
    header = ("Node", "GPU", "Workflow", "Task", "User", "Priority", "Time")
    parts = [paint_heading(title), "", _fitted(header, rows, width)]
    if found.waiting:
        parts += ["", render_list(found.waiting)]
    return "\n".join(line for part in parts for line in (part.split("\n") if part else [""]))


def _counted(found: Top) -> str:
    return f"{len(found.waiting)}{' or more' if found.more_waiting else ''}"


def _rows(node: NodeHolders) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    taken = 0
    for each in node.holders:
        gpus = str(each.first) if each.first == each.last else f"{each.first}-{each.last}"
        taken = each.last + 1
        age = show_age(each.start_time) if each.start_time else "starts"
        words = (each.workflow, each.task, each.user, each.priority, age)
        rows.append((node.node, gpus, *map(printable, words)))
    others = node.used - taken
    if others > 0:
        last = taken + others - 1
        rows.append((node.node, _range(taken, last), "(others)", "", "", "", ""))
        taken = last + 1
    if node.gpus > taken:
        what = "(free)" if node.status == "READY" else f"({node.status.lower()})"
        rows.append((node.node, _range(taken, node.gpus - 1), what, "", "", "", ""))
    return rows


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _fitted(header: Sequence[str], rows: list[tuple[str, ...]], width: int) -> str:
    """A table whose lines are no longer than the width: the widest columns are cut."""
    cells = [list(row) for row in rows]
    widths = [max(len(row[column]) for row in [list(header), *cells]) for column in range(7)]
    while sum(widths) + 2 * 6 > width and max(widths) > 8:
        widths[widths.index(max(widths))] -= 1
    for row in cells:
        for column, most in enumerate(widths):
            if len(row[column]) > most:
                row[column] = f"{row[column][: most - 1]}…"
    return render_table(header, cells, numbers=(6,))
