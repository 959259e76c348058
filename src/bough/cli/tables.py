"""Tables, lists of fields and drawn trees: the form of all text that is no sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from bough.cli.output import printable
from bough.cli.screen import paint_heading, paint_status, screen

#: What stands for nothing.
NOTHING = "-"
#: The least that is left of a column that is cut.
LEAST = 8

Cell = object
Node = TypeVar("Node")


def render_table(
    header: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    numbers: Sequence[int] = (),
    totals: Sequence[Cell] | None = None,
    status: int | None = None,
    cut: int | None = None,
) -> str:
    """The table of a command that asks a server; under the name `osmo`, with its rules."""
    if screen().osmo:
        body = [[cell_text(cell) for cell in row] for row in rows]
        bottom = None if totals is None else [cell_text(cell) for cell in totals]
        return render_ruled(header, body, totals=bottom)
    body = [*rows] if totals is None else [*rows, [totals[0] or "total", *totals[1:]]]
    return render_plain(header, body, numbers=numbers, status=status, cut=cut)


def render_plain(
    header: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    numbers: Sequence[int] = (),
    status: int | None = None,
    cut: int | None = None,
) -> str:
    """Rows below a header.

    Columns in `numbers` are aligned to the right, and the column `status` is coloured. The column
    `cut` is shortened where the terminal is too narrow.
    """
    body = [[cell_text(cell) for cell in row] for row in rows]
    lines = [[_heading(title) for title in header], *body]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    if cut is not None:
        _shorten(lines, widths, cut)
    first, *rest = lines
    shown = [paint_heading(_plain_line(first, widths, numbers))]
    shown += [_plain_line(line, widths, numbers, status) for line in rest]
    return "\n".join(shown)


def render_ruled(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    totals: Sequence[str] | None = None,
    rule: str = "=",
    gap: str = "   ",
    least: Sequence[int] = (),
) -> str:
    """The tables of `osmo`: a rule below the header, and another above the totals.

    A cell of the header may have several lines. With `-` as the rule every column has its own.
    """
    heads = [cell.split("\n") for cell in header]
    height = max(len(lines) for lines in heads)
    top = [[(lines + [""] * height)[level] for lines in heads] for level in range(height)]
    bottom = [] if totals is None else [totals]
    widths = [
        max(len(row[column]) for row in (*top, *rows, *bottom)) for column in range(len(header))
    ]
    for column, width in enumerate(least):
        widths[column] = max(widths[column], width)
    if rule == "=":
        ruler = "=" * (sum(widths) + len(gap) * (len(widths) - 1))
    else:
        ruler = gap.join(rule * width for width in widths)
    lines = [_ruled_line(row, widths, gap) for row in top]
    lines.append(ruler)
    lines += [_ruled_line(row, widths, gap) for row in rows]
    if bottom:
        lines += [ruler, _ruled_line(bottom[0], widths, gap)]
    return "\n".join(lines)


def render_fields(fields: Sequence[tuple[str, Cell]]) -> str:
    """Names and values, a line each."""
    width = max(len(name) for name, _ in fields)
    return "\n".join(f"{name.ljust(width)} : {cell_text(value)}".rstrip() for name, value in fields)


def cell_text(value: Cell) -> str:
    """A value as it stands in a table."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return printable(", ".join(f"{name}={each}" for name, each in value.items())) or NOTHING
    if isinstance(value, (list, tuple)):
        return printable(", ".join(map(str, value))) or NOTHING
    if isinstance(value, float):
        return f"{value:g}"
    return printable(str(value))


def draw_tree(
    nodes: Sequence[Node], identify: Callable[[Node], tuple[str, str | None]]
) -> list[tuple[str, Node]]:
    """Each node after its parent, with what is drawn before its name.

    `identify` tells the name of a node and the name of its parent. One whose parent is not there
    stands at the top; so do those on a cycle, last.
    """
    names = {identify(each)[0] for each in nodes}
    below: dict[str | None, list[Node]] = {}
    for each in nodes:
        parent = identify(each)[1]
        below.setdefault(parent if parent in names else None, []).append(each)
    order: list[tuple[Node, int]] = []
    seen: set[str] = set()
    for start in (*below.get(None, ()), *nodes):
        pending = [(start, 0)]
        while pending:
            each, depth = pending.pop()
            name, _ = identify(each)
            if name not in seen:
                seen.add(name)
                order.append((each, depth))
                pending += [(child, depth + 1) for child in reversed(below.get(name, ()))]
    stems = tree_stems([depth for _, depth in order])
    return [(stem, each) for (each, _), (stem, _) in zip(order, stems, strict=True)]


def tree_stems(depths: Sequence[int]) -> list[tuple[str, str]]:
    """For nodes in drawing order: what stands before the name, and before lines that follow it."""
    stems: list[tuple[str, str]] = []
    #: From the last node backwards: on which levels another node follows below the same parent.
    follows: list[bool] = []
    for index in range(len(depths) - 1, -1, -1):
        depth = depths[index]
        has_children = index + 1 < len(depths) and depths[index + 1] > depth
        del follows[depth + 1 :]
        follows.extend([False] * (depth + 1 - len(follows)))
        before = "".join("│  " if more else "   " for more in follows[1:depth])
        own, below = "", ""
        if depth:
            own, below = ("├─ ", "│  ") if follows[depth] else ("└─ ", "   ")
        stems.append((before + own, before + below + ("│" if has_children else "")))
        follows[depth] = True
    stems.reverse()
    return stems


def _heading(title: str) -> str:
    """The title of a column in capitals; units as they are written."""
    name, _, unit = title.partition(" [")
    return f"{name.upper()} [{unit}" if unit not in ("", "#]") else name.upper()


def _shorten(lines: list[list[str]], widths: list[int], column: int) -> None:
    """Cut the cells of a column so that the table fits the terminal."""
    width = screen().width
    excess = sum(widths) + 2 * (len(widths) - 1) - width if width else 0
    room = max(LEAST, widths[column] - excess)
    if excess > 0 and room < widths[column]:
        widths[column] = room
        for line in lines:
            if len(line[column]) > room:
                line[column] = f"{line[column][: room - 1]}…"


def _plain_line(
    cells: Sequence[str], widths: Sequence[int], numbers: Sequence[int], status: int | None = None
) -> str:
    last = len(cells) - 1
    while last > 0 and not cells[last]:
        last -= 1
    paint: Callable[[str], str] = paint_status
    shown: list[str] = []
    for column in range(last + 1):
        cell, width = cells[column], widths[column]
        padded = cell.rjust(width) if column in numbers else cell.ljust(width)
        padded = padded.rstrip() if column == last else padded
        shown.append(paint(padded) if column == status else padded)
    return "  ".join(shown)


def _ruled_line(cells: Sequence[str], widths: Sequence[int], gap: str) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return gap.join(padded).rstrip()
