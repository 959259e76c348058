"""`bough quota`: arguments and text of the commands on the quota tree. Must not know any rule."""

from __future__ import annotations

from typing import Any

import click

from bough.cli.lazy import tool
from bough.cli.output import (
    echo_answer,
    echo_warnings,
    files_argument,
    format_option,
    lenient_option,
    render_check,
)
from bough.cli.text.quota_tree import render_admit, render_tree

#: The exit code for the answer "no", which is no error.
NO = 3


@click.group()
def quota() -> None:
    """The quota tree: who owns, uses, lends and borrows what.

    Reads objects of Kueue (Cohort, ClusterQueue, ResourceFlavor, LocalQueue, Workload) from YAML
    files, from folders of them, or from standard input (-).
    """


@quota.command()
@files_argument
@format_option
@lenient_option
def show(files: tuple[str, ...], format_type: str, lenient: bool) -> None:
    """Show what each node owns, uses, lends, borrows and can still admit."""
    answer = tool("quota").show(files, lenient=lenient)
    if format_type == "text":
        echo_warnings(answer["problems"])
    echo_answer(answer, format_type, lambda each: render_tree(each, _writer()))


@quota.command()
@files_argument
@click.option("--queue", required=True, help="The queue that should take the request.")
@click.option(
    "--request",
    "requests",
    metavar="RESOURCE=AMOUNT",
    required=True,
    multiple=True,
    help="How much of what: gpu=4, cpu=1500m, memory=16Gi. Repeatable.",
)
@click.option("--flavor", help="Only this flavor; without it the first that fits is taken.")
@format_option
@lenient_option
@click.pass_context
def admit(
    context: click.Context,
    files: tuple[str, ...],
    queue: str,
    requests: tuple[str, ...],
    flavor: str | None,
    format_type: str,
    lenient: bool,
) -> None:
    """Say whether a queue can take a request now. If not, what stands against it and who uses it.

    Exit code 0 means yes, 3 means no.
    """
    answer = tool("admit").admit(files, queue, requests, flavor=flavor, lenient=lenient)
    if format_type == "text":
        echo_warnings(answer["problems"])
    echo_answer(answer, format_type, lambda each: render_admit(each, _writer()))
    context.exit(0 if answer["admitted"] else NO)


@quota.command()
@files_argument
@format_option
@lenient_option
@click.pass_context
def check(context: click.Context, files: tuple[str, ...], format_type: str, lenient: bool) -> None:
    """List errors and warnings with file and line. The exit code is 1 if there are errors."""
    answer = tool("quota").check(files, lenient=lenient)
    echo_answer(answer, format_type, render_check)
    context.exit(1 if answer["errors"] else 0)


def _writer() -> Any:
    """How an amount of a resource is written."""
    return tool("answer").write_amount
