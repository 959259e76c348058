"""`bough cohort`: arguments of the commands on cohorts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bough.cli.command import CommandGroup
from bough.cli.options import format_option, plan_option, together
from bough.cli.output import echo
from bough.cli.server_commands import client
from bough.cli.text.cohorts import NO_LIMIT, render_cohort, render_cohort_change, render_cohorts

if TYPE_CHECKING:
    from bough.api.common import Json


@click.group(cls=CommandGroup)
def cohort() -> None:
    """Cohorts: trees of pools that lend GPUs to each other."""


_field_options = together(
    click.option(
        "--quota", type=float, help="The cohort's own GPUs, shared by everything below it."
    ),
    click.option("--borrowing-limit", type=int, help="The most GPUs it can borrow (-1: no limit)."),
    click.option(
        "--lending-limit", type=int, help="The most GPUs it can lend (-1: all idle ones)."
    ),
    click.option(
        "--weight", type=int, help="Its weight when idle GPUs are shared out to borrowers."
    ),
    click.option("--description", help="What the cohort is for."),
    plan_option,
)


@cohort.command("list")
@format_option
def list_cohorts(format_type: str) -> None:
    """Show the tree of cohorts."""
    echo(client().cohorts.list(), format_type, render_cohorts)


@cohort.command()
@click.argument("name")
@format_option
def show(name: str, format_type: str) -> None:
    """Show one cohort."""
    echo(client().cohorts.get(name), format_type, render_cohort)


@cohort.command()
@click.argument("name")
@click.option("--parent", help="The parent cohort (default: none).")
@_field_options
@format_option
def create(name: str, plan: bool, format_type: str, **fields: str | float | None) -> None:
    """Create a cohort."""
    answer = client().cohorts.create(name, _fields(fields), plan=plan)
    echo(answer, format_type, lambda each: render_cohort_change(each, name, "created"))


@cohort.command()
@click.argument("name")
@_field_options
@format_option
def update(name: str, plan: bool, format_type: str, **fields: str | float | None) -> None:
    """Change fields of a cohort."""
    changes = _fields(fields)
    if not changes:
        raise click.UsageError("Nothing to change: give at least one option.")
    answer = client().cohorts.update(name, changes, plan=plan)
    echo(answer, format_type, lambda each: render_cohort_change(each, name, "updated"))


@cohort.command()
@click.argument("name")
@click.argument("parent", required=False)
@plan_option
@format_option
def move(name: str, parent: str | None, plan: bool, format_type: str) -> None:
    """Move a cohort below PARENT, or to the top level."""
    answer = client().cohorts.move(name, parent or None, plan=plan)
    echo(answer, format_type, lambda each: render_cohort_change(each, name, "moved"))


@cohort.command()
@click.argument("name")
@plan_option
@format_option
def delete(name: str, plan: bool, format_type: str) -> None:
    """Delete a cohort. Pools and cohorts below it lose its quota and have no parent."""
    answer = client().cohorts.delete(name, plan=plan)
    echo(answer, format_type, lambda each: render_cohort_change(each, name, "deleted"))


def _fields(fields: dict[str, str | float | None]) -> dict[str, Json]:
    given: dict[str, Json] = {name: value for name, value in fields.items() if value is not None}
    for name in ("borrowing_limit", "lending_limit"):
        if given.get(name) == NO_LIMIT:
            given[name] = None
    return given
