"""`bough workflow logs` and `bough workflow events`: lines as they come, or all at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import click

from bough.cli.command import Command
from bough.cli.exit_codes import REFUSED
from bough.cli.name_arguments import id_argument
from bough.cli.options import long_format_option
from bough.cli.output import echo
from bough.cli.screen import screen, utc_option
from bough.cli.server_commands import client
from bough.cli.times import show_line
from bough.cli.workflow_watching import ALIVE, REFUSED_STATUS, Part, Watch, task_exit_code

if TYPE_CHECKING:
    from bough.client import Client

_follow_option = click.option(
    "--follow/--no-follow",
    "-f",
    default=None,
    help="Follow until the workflow finishes (default for text), or print what exists now.",
)


@click.command(cls=Command)
@id_argument
@click.option("--task", "-t", help="Only this task.")
@click.option("--retry-id", "-r", type=click.IntRange(0), help="Only this attempt.")
@click.option("--error", "errors", is_flag=True, help="Only what tasks wrote to standard error.")
@click.option(
    "-n", "lines", metavar="LINES", type=click.IntRange(1), help="Only the last LINES lines."
)
@_follow_option
@utc_option
@long_format_option
def logs(
    name: str,
    task: str | None,
    retry_id: int | None,
    errors: bool,
    lines: int | None,
    follow: bool | None,
    format_type: str,
) -> None:
    """Print the output of tasks. Follows it until the workflow finishes.

    Until a task starts, prints what the workflow waits for. Reconnects if the connection breaks.
    When the workflow has finished, the exit code is that of the failed task, or 1 if it has none.
    """
    asked, follows = client(), _follows(follow, format_type)
    if follows and format_type == "text" and not screen().osmo:
        part = Part(task, retry_id, errors, lines)
        click.get_current_context().exit(_follow_logs(asked, name, part))
    found = asked.workflows.logs(
        name,
        task=task,
        retry=retry_id,
        last_lines=lines,
        errors=errors,
        follow=follows,
    )
    if format_type == "text" and not screen().osmo:
        first = next(found, None)
        if first is None and Watch(asked, name).say_why_empty(task):
            return
        found = chain(() if first is None else (first,), found)
    _stream(found, f"Workflow {name} has logs:", format_type)


@click.command(cls=Command)
@id_argument
@click.option("--task", "-t", help="Only this task.")
@click.option("--retry-id", "-r", type=click.IntRange(0), help="Only this attempt.")
@_follow_option
@utc_option
@long_format_option
def events(
    name: str, task: str | None, retry_id: int | None, follow: bool | None, format_type: str
) -> None:
    """Print the events of a workflow. Follows them until the workflow finishes."""
    found = client().workflows.events(
        name, task=task, retry=retry_id, follow=_follows(follow, format_type)
    )
    _stream(found, f"Workflow {name} has events:", format_type)


def _follow_logs(asked: Client, name: str, part: Part) -> int:
    """Print the log as it comes; returns the exit code."""
    watch = Watch(asked, name)
    if watch.until_started(part.task).status == REFUSED_STATUS and watch.say_why_empty():
        return REFUSED
    # An error comes alone.
    headings = iter([f"Workflow {name} has logs:\n"])
    for line in watch.lines(part, lambda: click.echo(next(headings, ""), nl=False)):
        click.echo(show_line(line), nl=False)
    found = asked.workflows.get(name)
    # It still runs where nothing is kept of what it writes.
    return 0 if found.status in ALIVE else task_exit_code(found, REFUSED, part.task)


def _follows(follow: bool | None, format_type: str) -> bool:
    """JSON is printed all at once, so it follows only where the user asks for that."""
    return format_type == "text" if follow is None else follow


def _stream(lines: Iterator[str], heading: str, format_type: str) -> None:
    """Lines as they come; as JSON, a list of them when they have all come."""
    if format_type == "json":
        echo([line.rstrip("\n") for line in lines], format_type, str)
        return
    click.echo(heading)
    for line in lines:
        click.echo(show_line(line), nl=False)
