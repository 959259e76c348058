"""`bough pool subpool`: arguments of the commands on subpools. Must not know any rule."""

from __future__ import annotations

from math import isfinite
from typing import Any

import click

from bough.cli.server_commands import ServerGroup, client, echo, format_option, plan_option
from bough.cli.text.pools import render_history, render_pool, render_subpools
from bough.cli.text.subpools import render_change, render_deletion

quota_option = click.option(
    "--quota", type=float, required=True, metavar="GPUS", help="Whole GPUs; a fraction is dropped."
)


@click.group(cls=ServerGroup)
def subpool() -> None:
    """Parts of a pool, each with a guaranteed quota."""


@subpool.command()
@click.argument("parent")
@click.argument("name", metavar="SUBPOOL")
@quota_option
@plan_option
@format_option
def create(parent: str, name: str, quota: float, plan: bool, format_type: str) -> None:
    """Reserve a part of a pool; a name that was archived comes back.

    Workflows that cannot start any more, or only later, are named.
    """
    answer: Any = client().subpools.create(parent, name, whole(quota), plan=plan)
    echo(answer, format_type, lambda each: render_change(each, "created"), indent=4)


@subpool.command()
@click.argument("parent")
@click.argument("name", metavar="SUBPOOL")
@quota_option
@plan_option
@format_option
def update(parent: str, name: str, quota: float, plan: bool, format_type: str) -> None:
    """Change the quota of a subpool; what runs goes on, also above it.

    Workflows that cannot start any more, or only later, are named.
    """
    answer: Any = client().subpools.update(parent, name, whole(quota), plan=plan)
    echo(answer, format_type, lambda each: render_change(each, "updated"), indent=4)


@subpool.command()
@click.argument("parent")
@click.argument("name", metavar="SUBPOOL")
@plan_option
@format_option
def delete(parent: str, name: str, plan: bool, format_type: str) -> None:
    """Give a subpool's quota back. It is archived as soon as nothing is left in it.

    Workflows that cannot start any more, or only later, are named.
    """
    answer: Any = client().subpools.delete(parent, name, plan=plan)
    echo(answer, format_type, render_deletion, indent=4)


@subpool.command("list")
@click.argument("parent")
@click.option("--include-archived", "-a", is_flag=True, help="Also those that are gone.")
@format_option
def list_subpools(parent: str, include_archived: bool, format_type: str) -> None:
    """List the subpools of a pool."""
    answer = client().subpools.list(parent, include_archived=include_archived)
    echo(answer, format_type, render_subpools, indent=4)


@subpool.command()
@click.argument("parent")
@click.argument("name", metavar="SUBPOOL")
@format_option
def show(parent: str, name: str, format_type: str) -> None:
    """Show one subpool, and what keeps its drain open."""
    echo(client().subpools.get(parent, name), format_type, render_pool, indent=4)


@subpool.command()
@click.argument("parent")
@click.argument("name", metavar="SUBPOOL")
@format_option
def history(parent: str, name: str, format_type: str) -> None:
    """List everything that was ever changed about a subpool."""
    echo(client().subpools.history(parent, name), format_type, render_history, indent=4)


def whole(quota: float) -> float:
    """A whole number as such; a fraction is for the server to round."""
    if not isfinite(quota):
        raise click.UsageError(f"--quota must be a number of GPUs, not {quota}.")
    return int(quota) if quota.is_integer() else quota
