"""`bough pool`: arguments of the commands on pools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from bough.cli.command import CommandGroup
from bough.cli.name_arguments import pool_argument, pools_option
from bough.cli.options import format_option, plan_option, together
from bough.cli.output import echo
from bough.cli.screen import program
from bough.cli.server_commands import client
from bough.cli.text.pools import (
    render_new_pool,
    render_pool,
    render_pool_change,
    render_pools,
    render_usage,
)
from bough.errors import Invalid, NotFound

if TYPE_CHECKING:
    from bough.api.common import Json

#: The value of an option that means "as if it had never been set".
NO_LIMIT = -1


@click.group(cls=CommandGroup)
def pool() -> None:
    """Pools of GPUs, and how they are divided."""


pool.add_later("subpool", "bough.cli.commands.subpool")


@pool.command("list")
@pools_option
@click.option(
    "--mode",
    "-m",
    type=click.Choice(["used", "free"]),
    help="Show used or free quota and capacity with sums, instead of the tree.",
)
@click.option(
    "--verbose",
    "-v",
    is_flag=True,
    help="Also show how many GPUs can start now, and which workflows deletions wait for.",
)
@click.option("--quota", is_flag=True, hidden=True, help="Accepted for old scripts.")
@format_option
def list_pools(
    pools: tuple[str, ...],
    mode: str | None,
    verbose: bool,
    quota: bool,  # noqa: ARG001  accepted for old scripts
    format_type: str,
) -> None:
    """Show the quota of pools and subpools, and how much is free.

    Only HIGH and NORMAL count. A negative number means that this many GPUs must still drain.
    """
    answer = client().pools.quotas(pools)
    found = {each.name for node_set in answer.node_sets for each in node_set.pools}
    missing = [name for name in pools if name not in found]
    if missing:
        raise NotFound(f"Pools {', '.join(missing)} not found")
    if mode:
        echo(answer, format_type, lambda each: render_usage(each, mode))
    else:
        echo(answer, format_type, lambda each: render_pools(each, verbose=verbose))


_quota_options = together(
    click.option("--quota", type=int, help="Guaranteed GPUs (-1: no limit)."),
    click.option("--maximum", type=int, help="The most GPUs it can use at once (-1: no limit)."),
    click.option(
        "--weight", type=int, help="Its weight when idle GPUs are shared out to borrowers."
    ),
    click.option(
        "--user-gpu-limit", type=int, help="The most GPUs one user can hold (-1: no limit)."
    ),
    click.option("--borrowing-limit", type=int, help="The most GPUs it can borrow (-1: no limit)."),
    click.option(
        "--lending-limit", type=int, help="The most GPUs it can lend (-1: all idle ones)."
    ),
    click.option(
        "--cancel",
        type=click.Choice(["any", "own"]),
        help="Which workflows its users can cancel (default: any); its admins can cancel any.",
    ),
    click.option("--data-quota", help='The most data it can store, like 500Gi ("": the default).'),
    click.option("--data-keep", help='How long data is kept, like 60d ("": the default).'),
    click.option("--cohort", help='The cohort it belongs to ("": none).'),
    click.option("--backend", help="The backend that runs its workflows."),
    click.option("--description", help="What the pool is for."),
)


@pool.command()
@click.argument("name")
@_quota_options
@format_option
def create(name: str, format_type: str, **fields: str | int | None) -> None:
    """Create a pool."""
    answer = client().pools.create(name, _config(fields))
    echo(answer, format_type, lambda made: render_new_pool(made, name))


@pool.command()
@pool_argument
@_quota_options
@plan_option
@format_option
def update(name: str, plan: bool, format_type: str, **fields: str | int | None) -> None:
    """Change fields of a pool. Lists the workflows that this delays or keeps from starting."""
    changes = _config(fields)
    if not changes:
        raise click.UsageError("Nothing to change: give at least one option.")
    with _pointing_to_subpools(name, "update"):
        answer = client().pools.update(name, changes, plan=plan)
    echo(answer, format_type, lambda found: render_pool_change(found, name))


@pool.command()
@pool_argument
@format_option
def show(name: str, format_type: str) -> None:
    """Show the configuration of a pool."""
    echo(client().pools.get(name), format_type, render_pool)


@pool.command()
@pool_argument
@click.argument("new_name")
@format_option
def rename(name: str, new_name: str, format_type: str) -> None:
    """Rename a pool. Its workflows stay in it."""
    answer = client().pools.rename(name, new_name)
    echo(answer, format_type, lambda _: f"Pool {name} is now {new_name}.")


@pool.command()
@pool_argument
@format_option
def delete(name: str, format_type: str) -> None:
    """Delete a pool. It must have no subpools and no unfinished workflows."""
    asked = client()
    # Deleting what does not exist succeeds on the server, which would hide a misspelled name.
    asked.pools.get(name)
    with _pointing_to_subpools(name, "delete"):
        answer = asked.pools.delete(name)
    echo(answer, format_type, lambda _: f"Pool {name} is deleted.")


@contextmanager
def _pointing_to_subpools(name: str, verb: str) -> Iterator[None]:
    """Name the command for subpools, where that is what was meant."""
    try:
        yield
    except Invalid as error:
        parent, separator, part = name.partition("--")
        if separator and not error.hint:
            quota = " --quota GPUS" if verb == "update" else ""
            error.hint = f"{program()} pool subpool {verb} {parent} {part}{quota}"
        raise


def _config(fields: dict[str, str | int | None]) -> dict[str, Json]:
    """The fields of the wire, of those options that were given."""
    config: dict[str, Json] = {name: value for name, value in fields.items() if value is not None}
    gpu: dict[str, Json] = {}
    for option, field in (("quota", "guarantee"), ("maximum", "maximum"), ("weight", "weight")):
        if option in config:
            gpu[field] = config.pop(option)
    if gpu:
        config["resources"] = {"gpu": gpu}
    for name in ("borrowing_limit", "lending_limit", "user_gpu_limit"):
        if config.get(name) == NO_LIMIT:
            config[name] = None
    if config.get("cohort") == "":
        config["cohort"] = None
    return config
