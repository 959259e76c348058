"""`bough usage`: what was used, for those who share. Must not know how it is counted."""

from __future__ import annotations

from typing import Any

import click

from bough.cli.ruled import render_ruled
from bough.cli.server_commands import ServerCommand, client, echo

_COLUMNS = ("gpu_hours", "guaranteed", "preemptible", "borrowed")


@click.command(cls=ServerCommand)
@click.option(
    "--since",
    metavar="TIME",
    default="7d",
    show_default=True,
    help="From when on: a date, a time in UTC, or so long ago, like 7d or 12h.",
)
@click.option("--until", metavar="TIME", help="Until when; until now if not said.")
@click.option(
    "--by",
    type=click.Choice(["pool", "user"]),
    default="pool",
    show_default=True,
    help="A line for each pool, or for each user.",
)
@click.option(
    "--format-type",
    "-t",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    show_default=True,
    help="Text for people, JSON for programs, or CSV for tables.",
)
def usage(since: str, until: str | None, by: str, format_type: str) -> None:
    """Add up GPU-hours. They are guaranteed or preemptible, and some of the latter borrowed."""
    answer: Any = client().usage(since=since, until=until, by=by)
    echo(answer, format_type, render_csv if format_type == "csv" else render_usage)


def render_usage(answer: Any) -> str:
    """A line for each pool or user, and the sums."""
    period = f"From {_moment(answer['since'])} to {_moment(answer['until'])} UTC."
    if not answer["rows"]:
        return f"{period} Nothing was used."
    header = (answer["by"].title(), "GPU-Hours", "Guaranteed", "Preemptible", "Borrowed")
    rows = [(each["name"], *_numbers(each)) for each in answer["rows"]]
    table = render_ruled(header, rows, totals=("", *_numbers(answer["total"])))
    return f"{period}\n\n{table}"


def render_csv(answer: Any) -> str:
    """A line for each pool or user, without the sums, which tables make themselves."""
    import csv  # noqa: PLC0415  most commands need no CSV
    import io  # noqa: PLC0415

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((answer["by"], *_COLUMNS))
    for each in answer["rows"]:
        writer.writerow((each["name"], *(f"{each[key]:.4f}" for key in _COLUMNS)))
    return text.getvalue().rstrip("\n")


def _numbers(each: Any) -> list[str]:
    return [f"{each[key]:.2f}" for key in _COLUMNS]


def _moment(text: str) -> str:
    return text[:16].replace("T", " ")
