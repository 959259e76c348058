"""`bough place`: arguments of the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bough.cli.command import Command
from bough.cli.exit_codes import DONE, REFUSED
from bough.cli.file_commands import echo_found, files_argument, lenient_option, tool
from bough.cli.options import format_option
from bough.cli.text.placement import render_placement

if TYPE_CHECKING:
    from bough.api.file_answers import PlacementAnswer


@click.command(cls=Command)
@files_argument
@click.option(
    "--nodes",
    metavar="FILE",
    required=True,
    multiple=True,
    type=click.Path(allow_dash=True),
    help="A file or folder with the Nodes. Repeatable.",
)
@click.option("--topology", metavar="NAME", help="Group the nodes by this topology.")
@click.option("--spread", is_flag=True, help="Prefer emptier nodes instead of fuller ones.")
@click.option("--all", "everything", is_flag=True, help="Also show nodes that get no new pods.")
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
    """Show where the pods of gangs are placed, or why they do not fit.

    Reads PodGroup and Topology of KAI, and plain Pods and Nodes. Gangs are placed in the order of
    the files; queues and quotas are ignored. The exit code is 1 if a gang does not fit.
    """
    everything = bool(options.pop("everything"))
    answer: PlacementAnswer = tool("place").place(nodes, files, **options)
    echo_found(answer, format_type, lambda each: render_placement(each, everything=everything))
    context.exit(DONE if answer.placed else REFUSED)
