"""`bough pool subpool`: arguments of the commands on subpools."""

from __future__ import annotations

from math import isfinite

import click

from bough.cli.command import CommandGroup
from bough.cli.name_arguments import parent_argument
from bough.cli.options import format_option, plan_option
from bough.cli.output import echo
from bough.cli.screen import utc_option
from bough.cli.server_commands import client
from bough.cli.text.change_history import render_subpool_history
from bough.cli.text.pools import render_change, render_deletion, render_pool, render_subpools

quota_option = click.option(
    "--quota",
    type=float,
    required=True,
    metavar="GPUS",
    help="Guaranteed GPUs; fractions are rounded down.",
)


@click.group(cls=CommandGroup)
def subpool() -> None:
    """Parts of a pool, each with a guaranteed quota."""


@subpool.command()
@parent_argument
@click.argument("name", metavar="SUBPOOL")
@quota_option
@plan_option
@format_option
def create(parent: str, name: str, quota: float, plan: bool, format_type: str) -> None:
    """Create a subpool, or reactivate an archived one.

    Lists the workflows that this delays or keeps from starting.
    """
    answer = client().subpools.create(parent, name, whole(quota), plan=plan)
    echo(answer, format_type, lambda each: render_change(each, "created"))


@subpool.command()
@parent_argument
@click.argument("name", metavar="SUBPOOL")
@quota_option
@plan_option
@format_option
def update(parent: str, name: str, quota: float, plan: bool, format_type: str) -> None:
    """Change the quota of a subpool. Running workflows continue, even above the new quota.

    Lists the workflows that this delays or keeps from starting.
    """
    answer = client().subpools.update(parent, name, whole(quota), plan=plan)
    echo(answer, format_type, lambda each: render_change(each, "updated"))


@subpool.command()
@parent_argument
@click.argument("name", metavar="SUBPOOL")
@plan_option
@format_option
def delete(parent: str, name: str, plan: bool, format_type: str) -> None:
    """Delete a subpool. It is archived when its last workflow has finished.

    Lists the workflows that this delays or keeps from starting.
    """
    answer = client().subpools.delete(parent, name, plan=plan)
    echo(answer, format_type, render_deletion)


@subpool.command("list")
@parent_argument
@click.option("--include-archived", "-a", is_flag=True, help="Also list archived subpools.")
@format_option
def list_subpools(parent: str, include_archived: bool, format_type: str) -> None:
    """List the subpools of a pool."""
    answer = client().subpools.list(parent, include_archived=include_archived)
    echo(answer, format_type, render_subpools)


@subpool.command()
@parent_argument
@click.argument("name", metavar="SUBPOOL")
@format_option
def show(parent: str, name: str, format_type: str) -> None:
    """Show one subpool; if it is being deleted, also what that waits for."""
    echo(client().subpools.get(parent, name), format_type, render_pool)


@subpool.command()
@parent_argument
@click.argument("name", metavar="SUBPOOL")
@utc_option
@format_option
def history(parent: str, name: str, format_type: str) -> None:
    """List all changes to a subpool."""
    echo(client().subpools.history(parent, name), format_type, render_subpool_history)


def whole(quota: float) -> float:
    """Read a number; a fraction is sent as it is, for the server to round."""
    if not isfinite(quota):
        raise click.UsageError(f"--quota must be a number of GPUs, not {quota}.")
    return int(quota) if quota.is_integer() else quota
