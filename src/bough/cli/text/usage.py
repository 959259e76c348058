"""GPU-hours of pools and users, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.cli.tables import render_table
from bough.cli.times import show_time

if TYPE_CHECKING:
    from bough.api.nodes import UsageLine, UsageReport

_USAGE = ("gpu_hours", "guaranteed", "preemptible", "borrowed")


def render_usage(answer: UsageReport) -> str:
    """A line for each pool or user, and the sums."""
    period = f"From {show_time(answer.since)} to {show_time(answer.until)}."
    if not answer.rows:
        return f"{period} Nothing was used."
    header = (answer.by.title(), "GPU-Hours", "Guaranteed", "Preemptible", "Borrowed")
    rows = [(each.name, *_hours(each)) for each in answer.rows]
    totals = ("", *_hours(answer.total))
    return f"{period}\n\n{render_table(header, rows, totals=totals, numbers=range(1, 5))}"


def render_usage_csv(answer: UsageReport) -> str:
    """A line for each pool or user, without the sums, which tables make themselves."""
    import csv  # noqa: PLC0415  most commands need no CSV
    import io  # noqa: PLC0415

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((answer.by, *_USAGE))
    for each in answer.rows:
        writer.writerow((each.name, *(f"{hours:.4f}" for hours in _usage(each))))
    return text.getvalue().rstrip("\n")


def _hours(each: UsageLine) -> list[str]:
    return [f"{hours:.2f}" for hours in _usage(each)]


def _usage(each: UsageLine) -> tuple[float, ...]:
    """In the order of the columns."""
    return each.gpu_hours, each.guaranteed, each.preemptible, each.borrowed
