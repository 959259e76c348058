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

    Say BACKEND/NODE where several backends have a node of that name.
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
    """Stop new work on nodes. What runs there goes on."""
    ask = client().nodes.cordon
    _tell_each(context, names, format_type, ask, lambda name, _: f"Node {name} is cordoned.")


@node.command()
@click.argument("names", metavar="NODE...", nargs=-1, required=True)
@format_option
@click.pass_context
def uncordon(context: click.Context, names: tuple[str, ...], format_type: str) -> None:
    """Allow new work on nodes again."""
    ask = client().nodes.uncordon
    _tell_each(context, names, format_type, ask, lambda name, _: f"Node {name} takes work.")


@node.command()
@click.argument("names", metavar="NODE...", nargs=-1, required=True)
@click.option("--leave", is_flag=True, help="Let what runs finish, instead of moving it elsewhere.")
@format_option
@click.pass_context
def drain(context: click.Context, names: tuple[str, ...], leave: bool, format_type: str) -> None:
    """Empty nodes: no new work, and what runs is moved elsewhere."""
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
    """Count the machine of a node that does not answer as dead.

    Its tasks start again elsewhere. Only do this when that machine is off: otherwise its tasks run
    twice until it answers again and ends what it still runs.
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
