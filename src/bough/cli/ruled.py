"""Tables with rules below the header, and times as server commands show them.

Must not know what is in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bough.cli.output import printable

#: What stands for nothing.
NOTHING = "-"


def render_ruled(
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    totals: Sequence[Any] | None = None,
    rule: str = "=",
    gap: str = "   ",
    least: Sequence[int] = (),
) -> str:
    """Columns to the left, a rule below the header, and another above the totals.

    A cell of the header may have several lines. With `-` as the rule every column has its own.
    """
    heads = [cell.split("\n") for cell in header]
    height = max(len(lines) for lines in heads)
    top = [[(lines + [""] * height)[level] for lines in heads] for level in range(height)]
    body = [[cell_text(cell) for cell in row] for row in rows]
    bottom = [] if totals is None else [[cell_text(cell) for cell in totals]]
    widths = [
        max(len(row[column]) for row in (*top, *body, *bottom)) for column in range(len(header))
    ]
    for column, width in enumerate(least):
        widths[column] = max(widths[column], width)
    if rule == "=":
        ruler = "=" * (sum(widths) + len(gap) * (len(widths) - 1))
    else:
        ruler = gap.join(rule * width for width in widths)
    lines = [_line(row, widths, gap) for row in top]
    lines.append(ruler)
    lines += [_line(row, widths, gap) for row in body]
    if bottom:
        lines += [ruler, _line(bottom[0], widths, gap)]
    return "\n".join(lines)


def render_fields(fields: Sequence[tuple[str, Any]], separator: str = " : ") -> str:
    """Names and values, a line each."""
    width = max(len(name) for name, _ in fields)
    return "\n".join(
        f"{name.ljust(width)}{separator}{cell_text(value)}".rstrip() for name, value in fields
    )


def cell_text(value: Any) -> str:
    """A value as it stands in a table."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name}={each}" for name, each in value.items()) or NOTHING
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or NOTHING
    return printable(str(value))


def show_time(text: str | None) -> str:
    """A time of the server, which is UTC, in the zone of the reader: `Jan 05, 2026 10:00 UTC`."""
    if not text:
        return NOTHING
    from datetime import UTC, datetime  # noqa: PLC0415  most commands show no time

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return cell_text(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone().strftime("%b %d, %Y %H:%M %Z")


def _line(cells: Sequence[str], widths: Sequence[int], gap: str) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return gap.join(padded).rstrip()
