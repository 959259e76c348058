"""`bough workflow`: arguments of the commands on workflows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from bough.cli.command import CommandGroup
from bough.cli.commands import (
    workflow_download,
    workflow_exec,
    workflow_port_forward,
    workflow_rsync,
    workflow_streams,
    workflow_submit,
)
from bough.cli.exit_codes import REFUSED
from bough.cli.name_arguments import (
    POOL,
    WORKFLOW,
    id_argument,
    ids_argument,
    pools_option,
)
from bough.cli.options import PRIORITIES, WORKFLOW_STATUSES, format_option
from bough.cli.output import echo, echo_error, printable
from bough.cli.screen import screen, utc_option
from bough.cli.server_commands import client, try_all
from bough.cli.text.why import render_why
from bough.cli.text.workflows import (
    render_array,
    render_ended,
    render_list,
    render_lists,
    render_moved,
    render_query,
)
from bough.cli.workflow_watching import ALIVE, COMPLETED, WAITING, Watch
from bough.errors import BoughError, NotFound, Refused

if TYPE_CHECKING:
    from bough.api.common import Priority
    from bough.api.workflows import ArrayDocument, WorkflowDocument, WorkflowLine
    from bough.client import Client
    from bough.client.addresses import Parameter

#: The most that a server gives at once.
PAGE = 1_000


@click.group(cls=CommandGroup)
def workflow() -> None:
    """Workflows: submit, watch, explain, cancel."""


for command in (
    workflow_streams.events,
    workflow_streams.logs,
    workflow_submit.submit,
    workflow_submit.validate,
    workflow_submit.restart,
    workflow_download.download,
    workflow_exec.exec_,
    workflow_port_forward.port_forward,
    workflow_rsync.rsync,
):
    workflow.add_command(command)


@workflow.command("list")
@click.option(
    "--count", "-c", type=click.IntRange(1), default=20, show_default=True, help="How many to show."
)
@click.option("--offset", "-f", type=click.IntRange(0), default=0, help="How many to skip first.")
@click.option("--name", "-n", help="Only names that contain this.")
@click.option(
    "--order",
    "-o",
    type=click.Choice(["asc", "desc"]),
    default="asc",
    show_default=True,
    help="Newest last (asc) or newest first (desc).",
)
@click.option(
    "--status",
    "-s",
    "statuses",
    metavar="STATUS",
    type=WORKFLOW_STATUSES,
    multiple=True,
    help="Only this status; repeatable.",
)
@click.option("--priority", type=PRIORITIES, help="Only this priority.")
@pools_option
@click.option(
    "--user", "-u", "users", multiple=True, help="Only workflows of this user; repeatable."
)
@click.option("--all-users", "-a", is_flag=True, help="Workflows of all users.")
@click.option("--mine", is_flag=True, help="Only your workflows (the default).")
@click.option("--waiting", is_flag=True, help="Only waiting workflows, with the reason.")
@click.option(
    "--label",
    "label",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Only with this label; VALUE can be a pattern like sim-* or (a|b). Repeatable.",
)
@click.option(
    "--no-label",
    "no_label",
    multiple=True,
    metavar="NAME",
    help="Only without this label; repeatable.",
)
@click.option("--array", metavar="ID", help="Only the elements of this array.")
@click.option("--tags", multiple=True, help="Only with this tag; repeatable.")
@click.option("--app", metavar="NAME[:VERSION]", help="Only workflows submitted from this app.")
@click.option("--submitted-after", metavar="YYYY-MM-DD", help="Only on or after this day.")
@click.option("--submitted-before", metavar="YYYY-MM-DD", help="Only before this day.")
@utc_option
@format_option
def list_workflows(
    count: int,
    offset: int,
    order: str,
    pools: tuple[str, ...],
    users: tuple[str, ...],
    all_users: bool,
    format_type: str,
    **filters: Parameter,
) -> None:
    """List the newest workflows (default: only yours)."""
    asked = client()
    only_mine = bool(filters.pop("mine"))
    if bool(users) + all_users + only_mine > 1:
        raise click.UsageError("--mine, --user and --all-users cannot be used together.")
    narrowed = any(filters[name] for name in filters if name not in ("waiting", "array"))
    waiting = bool(filters.pop("waiting"))
    if waiting:
        if filters["statuses"]:
            raise click.UsageError("--waiting and --status cannot be used together.")
        filters["statuses"] = list(WAITING)
    query = {name: value for name, value in filters.items() if value}
    if not users and not all_users:
        # Without this the server lists the workflows of all users.
        query["all_users"] = False
    # Arrays are listed as one line each where the newest of everything is listed.
    folded = not screen().osmo and "array" not in query and not narrowed
    if folded:
        query["elements"] = False
    found = list(_pages(asked, count, offset, pools, users, query))
    if order == "asc":
        found.reverse()
    nothing = format_type == "text" and not (found or offset or only_mine)
    others = nothing and _others_have_some(asked, pools, query)
    if not folded or offset:
        echo(found, format_type, lambda each: render_list(each, others=others), key="workflows")
        return
    mine = {name: query[name] for name in ("all_users",) if name in query}
    limit = min(count, PAGE)
    try:
        known = asked.workflows.arrays(pools=pools, users=users, limit=limit, query=mine).arrays
    except NotFound:
        # An older server has none.
        known = []
    arrays = [each for each in known if not waiting or "PENDING" in each.statuses]
    if order == "asc":
        arrays.reverse()
    answer = {"workflows": found, "arrays": arrays}
    echo(answer, format_type, lambda _: render_lists(found, arrays, others=others))


def _others_have_some(asked: Client, pools: tuple[str, ...], query: dict[str, Parameter]) -> bool:
    """Whether a list of only the user's own leaves out what others have."""
    if screen().osmo or query.get("all_users") is not False:
        return False
    wider = {name: query[name] for name in query if name not in ("all_users", "elements")}
    return bool(asked.workflows.list(pools=pools, limit=1, query=wider).workflows)


def _pages(
    asked: Client,
    count: int,
    offset: int,
    pools: tuple[str, ...],
    users: tuple[str, ...],
    query: dict[str, Parameter],
) -> Iterator[WorkflowLine]:
    """As many pages as are needed."""
    while count > 0:
        limit = min(count, PAGE)
        page = asked.workflows.list(
            pools=pools, users=users, limit=limit, offset=offset, query=query
        )
        yield from page.workflows
        if not page.more_entries:
            return
        count -= limit
        offset += limit


@workflow.command()
@id_argument
@click.option("--verbose", "-v", is_flag=True, help="Also show earlier attempts and exit codes.")
@utc_option
@format_option
def query(name: str, verbose: bool, format_type: str) -> None:
    """Show one workflow with its tasks."""
    asked = client()
    try:
        answer = asked.workflows.get(name, every_attempt=verbose)
    except NotFound as error:
        if screen().osmo:
            raise
        echo(_array(asked, name, error), format_type, render_array)
        return
    echo(answer, format_type, lambda each: render_query(each, verbose=verbose))


def _array(asked: Client, name: str, error: NotFound) -> ArrayDocument:
    """The array of a name that is no workflow's; raises the first error if there is none."""
    try:
        return asked.workflows.array(name)
    except NotFound:
        raise error from None


@workflow.command()
@ids_argument
@click.option("--message", "-m", help="The reason, stored with the workflow.")
@click.option("--force", "-f", is_flag=True, help="End tasks at once, without a grace period.")
@format_option
@click.pass_context
def cancel(
    context: click.Context,
    names: tuple[str, ...],
    message: str | None,
    force: bool,
    format_type: str,
) -> None:
    """Cancel workflows. Tries all of them; the exit code is 2 if one cannot be cancelled."""
    asked = client()

    def attempt(name: str) -> None:
        answer = asked.workflows.cancel(name, message=message, force=force)
        told = f"Cancel job for workflow {name} is submitted!"
        echo(answer, format_type, lambda _: told)

    def failed(name: str, error: BoughError) -> None:
        error.message = f"Workflow cancelation failed for workflow {name}: {error.message}"
        if format_type == "json":
            echo_error(error, format_type)
        else:
            click.echo(printable(error.message), err=True)

    try_all(context, names, attempt, failed)


@workflow.command()
@ids_argument
@click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    type=click.IntRange(0),
    help="Give up after SECONDS (default: never).",
)
@format_option
@click.pass_context
def wait(
    context: click.Context, names: tuple[str, ...], timeout_s: int | None, format_type: str
) -> None:
    """Wait until workflows have ended. The exit code is 0 if all completed, else 1."""
    asked = client()
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    ended = [_until_ended(asked, name, deadline) for name in names]
    echo(ended, format_type, render_ended, key="workflows")
    if any(each.status in ALIVE for each in ended):
        click.echo(f"not all have ended after {timeout_s} seconds", err=True)
    if any(each.status != COMPLETED for each in ended):
        context.exit(REFUSED)


def _until_ended(
    asked: Client, name: str, deadline: float | None
) -> WorkflowDocument | ArrayDocument:
    watch = Watch(asked, name)
    try:
        return watch.until_ended(deadline)
    except NotFound as error:
        _array(asked, name, error)
        return watch.until_array_ended(deadline)


@workflow.command()
@id_argument
@click.option("--pool", "-p", type=POOL, help="The new pool or subpool.")
@click.option("--priority", type=PRIORITIES, help="The new priority.")
@format_option
def update(name: str, pool: str | None, priority: Priority | None, format_type: str) -> None:
    """Change the pool or the priority of a waiting workflow. It keeps its submit time.

    The workflow is checked like a new submission, and must not hold any GPUs.
    """
    if pool is None and priority is None:
        raise click.UsageError("Nothing to change: give --pool, --priority, or both.")
    try:
        answer = client().workflows.update(name, pool=pool, priority=priority)
    except Refused as error:
        error.request, error.workflow_id = "update", name
        raise
    echo(answer, format_type, render_moved)


@workflow.command()
@id_argument
@click.option(
    "--template", is_flag=True, help="Print the template instead, as it was before rendering."
)
@format_option
def spec(name: str, template: bool, format_type: str) -> None:
    """Print the spec of a workflow."""
    text = client().workflows.spec(name, template=template)
    if format_type == "json":
        echo({"spec": text}, format_type, str)
    else:
        click.echo(text, nl=False)


@workflow.command()
@id_argument
@click.option("--remedies", is_flag=True, help="Also show what would help; this can take a while.")
@click.option(
    "--queues", is_flag=True, help="Show names of queues instead of pools; for administrators."
)
@utc_option
@format_option
def why(name: str, remedies: bool, queues: bool, format_type: str) -> None:
    """Explain why a workflow waits. Shows what is missing, and who holds it."""
    # The explanation itself names groups as ID/GROUP.
    name = name.partition("/")[0] or name
    answer = client().workflows.why(name, remedies=remedies, queues=queues)
    echo(answer, format_type, lambda each: render_why(name, each, queues=queues))


@workflow.command()
@click.option(
    "--workflow",
    "-w",
    "names",
    metavar="ID",
    multiple=True,
    type=WORKFLOW,
    required=True,
    help="The workflow; repeatable.",
)
@click.option("--add", "-a", multiple=True, help="A tag to add; repeatable.")
@click.option("--remove", "-r", multiple=True, help="A tag to remove; repeatable.")
@format_option
def tag(
    names: tuple[str, ...], add: tuple[str, ...], remove: tuple[str, ...], format_type: str
) -> None:
    """Add tags to workflows, and remove tags."""
    asked = client()
    for name in names:
        asked.workflows.tag(name, add=add, remove=remove)
    echo({"workflows": list(names)}, format_type, lambda _: f"Tags of {', '.join(names)} are set.")
