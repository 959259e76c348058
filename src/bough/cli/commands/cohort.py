"""`bough cohort`: arguments of the commands on cohorts. Must not know any rule."""

from __future__ import annotations

from typing import Any

import click

from bough.cli.forest import drawing_order
from bough.cli.output import printable
from bough.cli.ruled import NOTHING, render_fields, render_ruled
from bough.cli.server_commands import ServerGroup, client, echo, format_option, plan_option
from bough.cli.tables import tree_stems

NO_LIMIT = -1


@click.group(cls=ServerGroup)
def cohort() -> None:
    """The tree of cohorts above the pools. They lend to each other and borrow."""


def _field_options(function: Any) -> Any:
    for option in (
        plan_option,
        click.option("--description", help="What the cohort is for."),
        click.option("--weight", type=int, help="Its share of what all may borrow."),
        click.option(
            "--lending-limit", type=int, help="The most GPUs it lends; -1: all that are idle."
        ),
        click.option("--borrowing-limit", type=int, help="The most GPUs it borrows; -1: no limit."),
        click.option("--quota", type=float, help="GPUs of its own, for all below it to share."),
    ):
        function = option(function)
    return function


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
    echo(client().cohorts.get(name), format_type, _render_cohort)


@cohort.command()
@click.argument("name")
@click.option("--parent", help="The cohort above it.")
@_field_options
@format_option
def create(name: str, plan: bool, format_type: str, **fields: Any) -> None:
    """Declare a cohort."""
    answer = client().cohorts.create(name, _fields(fields), plan=plan)
    echo(answer, format_type, lambda each: _told(each, name, "created"))


@cohort.command()
@click.argument("name")
@_field_options
@format_option
def update(name: str, plan: bool, format_type: str, **fields: Any) -> None:
    """Change some fields of a cohort."""
    changes = _fields(fields)
    if not changes:
        raise click.UsageError("Say what to change; --help lists the options.")
    answer = client().cohorts.update(name, changes, plan=plan)
    echo(answer, format_type, lambda each: _told(each, name, "updated"))


@cohort.command()
@click.argument("name")
@click.argument("parent", required=False)
@plan_option
@format_option
def move(name: str, parent: str | None, plan: bool, format_type: str) -> None:
    """Hang a cohort below another. Without PARENT, directly below the node above all."""
    answer = client().cohorts.move(name, parent or None, plan=plan)
    echo(answer, format_type, lambda each: _told(each, name, "moved"))


@cohort.command()
@click.argument("name")
@plan_option
@format_option
def delete(name: str, plan: bool, format_type: str) -> None:
    """Delete a cohort. What hangs on it goes on without its quota and its parent."""
    answer = client().cohorts.delete(name, plan=plan)
    echo(answer, format_type, lambda each: _told(each, name, "deleted"))


def render_cohorts(cohorts: Any) -> str:
    """Cohorts as a drawn tree."""
    if not cohorts:
        return "There are no cohorts."
    order = drawing_order(cohorts)
    stems = tree_stems([depth for _, depth in order])
    rows = [
        (
            first + each["name"],
            each["quota"],
            _limit(each["borrowing_limit"]),
            _limit(each["lending_limit"]),
            each["weight"],
            each.get("description") or NOTHING,
        )
        for (each, _), (first, _) in zip(order, stems, strict=True)
    ]
    header = ("Cohort", "Quota", "Borrows", "Lends", "Weight", "Description")
    return render_ruled(header, rows)


def _render_cohort(each: Any) -> str:
    return render_fields(
        [
            ("Cohort", each["name"]),
            ("Parent", each["parent"]),
            ("Quota", each["quota"]),
            ("Borrows", _limit(each["borrowing_limit"])),
            ("Lends", _limit(each["lending_limit"])),
            ("Weight", each["weight"]),
            ("Description", each.get("description") or NOTHING),
        ]
    )


def _limit(value: Any) -> Any:
    return "no limit" if value in (None, NO_LIMIT) else value


def _fields(fields: dict[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in fields.items() if value is not None}
    for name in ("borrowing_limit", "lending_limit"):
        if given.get(name) == NO_LIMIT:
            given[name] = None
    return given


def _told(answer: Any, name: str, what: str) -> str:
    verb = "would be" if answer["planned"] else "is"
    return "\n".join([f"Cohort {printable(name)} {verb} {what}.", *_effects(answer["effects"])])


def _effects(effects: Any) -> list[str]:
    """A line for each consequence."""
    lines = [
        f"  {_node(each['node'])} owes {each['after']} GPUs more than it has"
        f" (before: {each['before']})"
        for each in effects.get("debts") or ()
    ]
    lines += [
        f"  {_node(each['node'])} owes {each['after']} GPUs (before: {each['before']})"
        for each in effects.get("relieved") or ()
    ]
    lines += [f"  {_node(each)} stops: its cohorts form a cycle" for each in effects["tangled"]]
    lines += [f"  {_node(each)} is free of the cycle" for each in effects["untangled"]]
    return lines


def _node(node: Any) -> str:
    """A node of the tree, which is its kind and its name."""
    return printable(" ".join(node))
