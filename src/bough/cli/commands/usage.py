"""`bough usage`: GPU-hours of pools and users."""

from __future__ import annotations

import click

from bough.cli.command import Command
from bough.cli.output import echo
from bough.cli.screen import utc_option
from bough.cli.server_commands import client
from bough.cli.text.usage import render_usage, render_usage_csv


@click.command(cls=Command)
@click.option(
    "--since",
    metavar="TIME",
    default="7d",
    show_default=True,
    help="Start of the period: a date, a time in UTC, or an age like 7d or 12h.",
)
@click.option("--until", metavar="TIME", help="End of the period, like --since (default: now).")
@click.option(
    "--by",
    type=click.Choice(["pool", "user"]),
    default="pool",
    show_default=True,
    help="One line for each pool, or for each user.",
)
@utc_option
@click.option(
    "--format-type",
    "-t",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    show_default=True,
    help="Text for people, JSON for programs, or CSV for spreadsheets.",
)
def usage(since: str, until: str | None, by: str, format_type: str) -> None:
    """Show GPU-hours: guaranteed, preemptible and borrowed."""
    answer = client().usage(since=since, until=until, by=by)
    echo(answer, format_type, render_usage_csv if format_type == "csv" else render_usage)
