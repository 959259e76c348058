"""`bough resource`: arguments of the commands on nodes."""

from __future__ import annotations

import click

from bough.cli.command import CommandGroup
from bough.cli.name_arguments import POOL, pools_option
from bough.cli.options import format_option
from bough.cli.output import echo
from bough.cli.server_commands import client
from bough.cli.text.nodes import render_node, render_resources


@click.group(cls=CommandGroup)
def resource() -> None:
    """Nodes: what they have, and how much is in use."""


@resource.command("list")
@pools_option
@click.option("--platform", "platforms", multiple=True, help="Only this platform; repeatable.")
@click.option("--all", "-a", "everything", is_flag=True, help="Nodes of all pools (the default).")
@click.option(
    "--mode",
    "-m",
    type=click.Choice(["used", "free"]),
    default="used",
    show_default=True,
    help="Show what is used, or what is free.",
)
@format_option
def list_resources(
    pools: tuple[str, ...],
    platforms: tuple[str, ...],
    everything: bool,
    mode: str,
    format_type: str,
) -> None:
    """List nodes, with one line for each pool of a node."""
    if pools and everything:
        raise click.UsageError("--pool and --all cannot be used together.")
    answer = client().resources.list(pools, platforms)
    echo(answer, format_type, lambda each: render_resources(each, pools, mode))


@resource.command()
@click.argument("node")
@click.option("--pool", "-p", type=POOL, help="Only show the node in this pool.")
@click.option("--platform", "-pl", help="Only show the node in this platform.")
@format_option
def info(node: str, pool: str | None, platform: str | None, format_type: str) -> None:
    """Show one node."""
    answer = client().resources.get(node)
    echo(answer, format_type, lambda each: render_node(each, pool, platform))
