"""`bough gang`: arguments and text of the commands on gangs. Must not know any rule."""

from __future__ import annotations

import click

from bough.cli.lazy import tool
from bough.cli.output import (
    echo_answer,
    echo_warnings,
    files_argument,
    format_option,
    lenient_option,
    render_check,
)
from bough.cli.text.gangs import render_gangs


@click.group()
def gang() -> None:
    """Gangs: trees of subgroups that start whole or not at all.

    Reads PodGroup, Queue and Topology of KAI, and plain Pods, from YAML files, from folders of
    them, or from standard input (-).
    """


@gang.command()
@files_argument
@format_option
@lenient_option
def show(files: tuple[str, ...], format_type: str, lenient: bool) -> None:
    """Show each gang as a tree. It has minimums, what is held, needed, and to spare."""
    answer = tool("gang").show(files, lenient=lenient)
    if format_type == "text":
        echo_warnings(answer["problems"])
    echo_answer(answer, format_type, render_gangs)


@gang.command()
@files_argument
@format_option
@lenient_option
@click.pass_context
def check(context: click.Context, files: tuple[str, ...], format_type: str, lenient: bool) -> None:
    """List errors and warnings with file and line. The exit code is 1 if there are errors."""
    answer = tool("gang").check(files, lenient=lenient)
    echo_answer(answer, format_type, render_check)
    context.exit(1 if answer["errors"] else 0)
