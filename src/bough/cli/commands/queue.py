"""`bough queue`: the quota tree as it is inside, for administrators."""

from __future__ import annotations

import click

from bough.cli.command import CommandGroup
from bough.cli.options import format_option
from bough.cli.output import echo
from bough.cli.server_commands import client
from bough.cli.text.cohorts import render_queues


@click.group(cls=CommandGroup)
def queue() -> None:
    """The tree of queues behind pools and subpools."""


@queue.command("list")
@format_option
def list_queues(format_type: str) -> None:
    """Show each queue with its quota and usage, as a tree."""
    echo(client().queues.list(), format_type, render_queues)
