"""`bough gang`: arguments and text of the commands on gangs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bough.cli.command import CommandGroup
from bough.cli.exit_codes import DONE, REFUSED
from bough.cli.file_commands import echo_found, files_argument, lenient_option, tool
from bough.cli.options import format_option
from bough.cli.output import echo
from bough.cli.text.gangs import render_gangs
from bough.cli.text.problems import render_check

if TYPE_CHECKING:
    from bough.api.file_answers import CheckAnswer, GangsAnswer


@click.group(cls=CommandGroup)
def gang() -> None:
    """Gangs: trees of subgroups that start as a whole or not at all.

    Reads PodGroup, Queue and Topology of KAI, and plain Pods, from YAML files, from folders of
    them, or from standard input (-).
    """


@gang.command()
@files_argument
@format_option
@lenient_option
def show(files: tuple[str, ...], format_type: str, lenient: bool) -> None:
    """Show each gang as a tree: what it needs, has, and can give back."""
    answer: GangsAnswer = tool("gang").show(files, lenient=lenient)
    echo_found(answer, format_type, render_gangs)


@gang.command()
@files_argument
@format_option
@lenient_option
@click.pass_context
def check(context: click.Context, files: tuple[str, ...], format_type: str, lenient: bool) -> None:
    """List errors and warnings with file and line. The exit code is 1 if there are errors."""
    answer: CheckAnswer = tool("gang").check(files, lenient=lenient)
    echo(answer, format_type, render_check)
    context.exit(REFUSED if answer.errors else DONE)
