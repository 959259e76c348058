"""`bough task`: arguments of the commands on tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bough.cli.command import CommandGroup
from bough.cli.name_arguments import WORKFLOW, pools_option
from bough.cli.options import PRIORITIES, TASK_STATUSES, count_option, format_option
from bough.cli.output import echo
from bough.cli.screen import utc_option
from bough.cli.server_commands import client
from bough.cli.text.workflows import render_summaries, render_tasks

if TYPE_CHECKING:
    from bough.client.addresses import Parameter

ACTIVE = ("PROCESSING", "SCHEDULING", "INITIALIZING", "RUNNING")


@click.group(cls=CommandGroup)
def task() -> None:
    """Tasks of all workflows."""


@task.command("list")
@click.option(
    "--status",
    "-s",
    "statuses",
    metavar="STATUS",
    type=TASK_STATUSES,
    multiple=True,
    default=ACTIVE,
    help="Only this status (default: unfinished tasks); repeatable.",
)
@click.option(
    "--workflow",
    "-w",
    "workflow_id",
    metavar="ID",
    type=WORKFLOW,
    help="Only tasks of this workflow.",
)
@click.option("--user", "-u", "users", multiple=True, help="Only tasks of this user; repeatable.")
@click.option("--all-users", "-a", is_flag=True, help="Tasks of all users.")
@pools_option
@click.option("--node", "-n", "nodes", multiple=True, help="Only on this node; repeatable.")
@click.option("--started-after", metavar="YYYY-MM-DD", help="Only on or after this day.")
@click.option("--started-before", metavar="YYYY-MM-DD", help="Only before this day.")
@count_option
@click.option("--offset", "-f", type=click.IntRange(0), default=0, help="How many to skip first.")
@click.option(
    "--order",
    "-o",
    type=click.Choice(["asc", "desc"]),
    default="asc",
    show_default=True,
    help="Newest last (asc) or newest first (desc).",
)
@click.option("--priority", type=PRIORITIES, help="Only this priority.")
@click.option(
    "--verbose", "-v", is_flag=True, help="Also show the resources that each task requests."
)
@click.option("--summary", "-S", is_flag=True, help="Show sums by user, pool and priority instead.")
@click.option("--aggregate-by-workflow", "-W", is_flag=True, help="Show sums by workflow instead.")
@utc_option
@format_option
def list_tasks(
    pools: tuple[str, ...],
    users: tuple[str, ...],
    all_users: bool,
    count: int,
    offset: int,
    verbose: bool,
    format_type: str,
    **filters: Parameter,
) -> None:
    """List tasks (default: only yours)."""
    if users and all_users:
        raise click.UsageError("--user and --all-users cannot be used together.")
    query = {name: value for name, value in filters.items() if value}
    query["order"] = str(filters["order"]).upper()
    if not users and not all_users:
        query["all_users"] = False
    answer = client().tasks.list(pools=pools, users=users, limit=count, offset=offset, query=query)
    by_workflow = bool(filters["aggregate_by_workflow"])
    if by_workflow or filters["summary"]:
        echo(answer, format_type, lambda each: render_summaries(each, by_workflow=by_workflow))
    else:
        echo(answer, format_type, lambda each: render_tasks(each, verbose=verbose))
