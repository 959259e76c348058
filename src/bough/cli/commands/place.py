"""`bough place`: arguments of the command. Must not know any rule."""

from __future__ import annotations

import click

from bough.cli.lazy import tool
from bough.cli.output import (
    echo_answer,
    echo_warnings,
    files_argument,
    format_option,
    lenient_option,
)
from bough.cli.text.placement import render_placement

#: The exit code for the answer "no", which is no error.
NO = 3


@click.command()
@files_argument
@click.option(
    "--nodes",
    metavar="FILE",
    required=True,
    multiple=True,
    type=click.Path(allow_dash=True),
    help="A file or folder with the Nodes. Repeatable.",
)
@click.option("--topology", metavar="NAME", help="Draw the nodes by this topology.")
@click.option("--spread", is_flag=True, help="Take emptier nodes first, instead of fuller ones.")
@click.option("--all", "everything", is_flag=True, help="Draw nodes that get nothing new, too.")
@format_option
@lenient_option
@click.pass_context
def place(
    context: click.Context,
    files: tuple[str, ...],
    nodes: tuple[str, ...],
    format_type: str,
    **options: bool | str | None,
) -> None:
    """Show where the pods of gangs go, or why they have no place.

    Reads PodGroup and Topology of KAI, and plain Pods and Nodes. Gangs are served in the order in
    which they are written; queues and quotas are not asked. The exit code is 3 if some gang has no
    place.
    """
    everything = bool(options.pop("everything"))
    answer = tool("place").place(nodes, files, **options)
    if format_type == "text":
        echo_warnings(answer["problems"])
    echo_answer(answer, format_type, lambda each: render_placement(each, everything=everything))
    context.exit(0 if answer["placed"] else NO)
