"""`bough quota`: arguments and text of the commands on the quota tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bough.cli.command import CommandGroup
from bough.cli.exit_codes import DONE, REFUSED
from bough.cli.file_commands import echo_found, files_argument, lenient_option, tool
from bough.cli.options import format_option
from bough.cli.output import echo
from bough.cli.text.problems import render_check
from bough.cli.text.quota_tree import Writer, render_admit, render_shares, render_tree

if TYPE_CHECKING:
    from bough.api.file_answers import CheckAnswer
    from bough.api.quota_answers import AdmitAnswer, QuotaTreeAnswer


@click.group(cls=CommandGroup)
def quota() -> None:
    """The quota tree: who owns, uses, lends and borrows what.

    Reads objects of Kueue (Cohort, ClusterQueue, ResourceFlavor, LocalQueue, Workload) from YAML
    files, from folders of them, or from standard input (-); `show` also those of KAI.
    """


@quota.command()
@files_argument
@click.option(
    "--shares",
    is_flag=True,
    help="Show weights and shares instead, and each node's deserved and current fair share.",
)
@click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="The policy file or preset that defines shares (default: kai-fair for queues of KAI, "
    "otherwise kueue-fair).",
)
@format_option
@lenient_option
def show(
    files: tuple[str, ...], shares: bool, policy: str | None, format_type: str, lenient: bool
) -> None:
    """Show what each node owns, uses, lends, borrows and can still admit."""
    if policy is not None and not shares and format_type == "text":
        raise click.UsageError("--policy needs --shares: nothing else that is shown depends on it.")
    answer: QuotaTreeAnswer = tool("quota").show(files, policy=policy, lenient=lenient)
    render = render_shares if shares else render_tree
    echo_found(answer, format_type, lambda each: render(each, _writer()))


@quota.command()
@files_argument
@click.option("--queue", required=True, help="The queue for the request.")
@click.option(
    "--request",
    "requests",
    metavar="RESOURCE=AMOUNT",
    required=True,
    multiple=True,
    help="Resource and amount: gpu=4, cpu=1500m, memory=16Gi. Repeatable.",
)
@click.option("--flavor", help="Only this flavor (default: the first that fits).")
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
    """Check whether a queue can admit a request now. If not, show why, and who holds the quota.

    Exit code 0 means yes, 1 means no.
    """
    answer: AdmitAnswer = tool("admit").admit(
        files, queue, requests, flavor=flavor, lenient=lenient
    )
    echo_found(answer, format_type, lambda each: render_admit(each, _writer()))
    context.exit(DONE if answer.admitted else REFUSED)


@quota.command()
@files_argument
@format_option
@lenient_option
@click.pass_context
def check(context: click.Context, files: tuple[str, ...], format_type: str, lenient: bool) -> None:
    """List errors and warnings with file and line. The exit code is 1 if there are errors."""
    answer: CheckAnswer = tool("quota").check(files, lenient=lenient)
    echo(answer, format_type, render_check)
    context.exit(REFUSED if answer.errors else DONE)


def _writer() -> Writer:
    """How an amount of a resource is written."""
    return tool("file_problems").write_amount
