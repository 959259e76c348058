"""`bough node`: arguments of the commands on machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from bough.cli.command import CommandGroup
from bough.cli.options import format_option
from bough.cli.output import echo, echo_error
from bough.cli.server_commands import client, try_all
from bough.cli.text.nodes import render_drain, render_lost, render_nodes

Answer = TypeVar("Answer")


@click.group(cls=CommandGroup)
def node() -> None:
    """Nodes: list, cordon and drain them, declare them lost.

    Write BACKEND/NODE if several backends have a node with the same name.
    """


@node.command("list")
@format_option
def list_nodes(format_type: str) -> None:
    """List nodes and their load."""
    echo(client().nodes.list(), format_type, lambda each: render_nodes(each.nodes))


@node.command()
@click.argument("names", metavar="NODE...", nargs=-1, required=True)
@format_option
@click.pass_context
def cordon(context: click.Context, names: tuple[str, ...], format_type: str) -> None:
    """Cordon nodes: no new tasks start there. Running tasks continue."""
    ask = client().nodes.cordon
    _tell_each(context, names, format_type, ask, lambda name, _: f"Node {name} is cordoned.")


@node.command()
@click.argument("names", metavar="NODE...", nargs=-1, required=True)
@format_option
@click.pass_context
def uncordon(context: click.Context, names: tuple[str, ...], format_type: str) -> None:
    """Uncordon nodes: new tasks can start there again."""
    ask = client().nodes.uncordon
    _tell_each(context, names, format_type, ask, lambda name, _: f"Node {name} takes work.")


@node.command()
@click.argument("names", metavar="NODE...", nargs=-1, required=True)
@click.option(
    "--leave", is_flag=True, help="Let running tasks finish instead of restarting them elsewhere."
)
@format_option
@click.pass_context
def drain(context: click.Context, names: tuple[str, ...], leave: bool, format_type: str) -> None:
    """Drain nodes: no new tasks, and running ones restart elsewhere."""
    asked = client().nodes
    _tell_each(
        context,
        names,
        format_type,
        lambda name: asked.drain(name, leave=leave),
        lambda _, answer: render_drain(answer),
    )


@node.command("declare-lost")
@click.argument("names", metavar="NODE...", nargs=-1, required=True)
@format_option
@click.pass_context
def declare_lost(context: click.Context, names: tuple[str, ...], format_type: str) -> None:
    """Declare the machine of an unreachable node as lost.

    Its tasks restart elsewhere. Only do this if the machine is off: otherwise its tasks run twice
    until the machine is reachable again and stops its own copies.
    """
    ask = client().nodes.declare_lost
    _tell_each(context, names, format_type, ask, lambda _, answer: render_lost(answer))


def _tell_each(
    context: click.Context,
    names: tuple[str, ...],
    format_type: str,
    ask: Callable[[str], Answer],
    render: Callable[[str, Answer], str],
) -> None:
    """Do it with every node, and say what came of each."""
    try_all(
        context,
        names,
        lambda name: echo(ask(name), format_type, lambda answer: render(name, answer)),
        lambda _, error: echo_error(error, format_type),
    )
