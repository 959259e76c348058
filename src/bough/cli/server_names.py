"""Arguments that name workflows and pools. A shell completes them by what the server knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from bough.cli.options import together
from bough.cli.server_commands import client

if TYPE_CHECKING:
    from bough.client import Client

#: The words that a shell offers for the beginning of one.
Completion = Callable[[click.Context, click.Parameter, str], list[str]]
#: How long a shell waits for a server.
TIMEOUT_S = 1.0


def _known_workflows(asked: Client) -> list[str]:
    page = asked.workflows.list(limit=100, query={"all_users": False})
    return [each.name for each in page.workflows]


def _known_pools(asked: Client) -> list[str]:
    return list(asked.pools.names())


def _completion(names: Callable[[Client], list[str]]) -> Completion:
    """Complete a word by names that the server knows; where there is no server, by none."""

    def complete(_: click.Context, __: click.Parameter, word: str) -> list[str]:
        try:
            return [name for name in names(client(TIMEOUT_S)) if name.startswith(word)]
        except Exception:
            return []

    return complete


complete_workflow = _completion(_known_workflows)
complete_pool = _completion(_known_pools)

id_argument = click.argument("name", metavar="ID", shell_complete=complete_workflow)
ids_argument = click.argument(
    "names", metavar="ID...", nargs=-1, required=True, shell_complete=complete_workflow
)
pools_option = click.option(
    "--pool",
    "-p",
    "pools",
    multiple=True,
    shell_complete=complete_pool,
    help="Only this pool; repeatable.",
)
pool_argument = click.argument("name", shell_complete=complete_pool)
parent_argument = click.argument("parent", shell_complete=complete_pool)


#: What a submission waits for, and how often its tasks are tried again.
start_options = together(
    click.option(
        "--after",
        metavar="ID",
        multiple=True,
        shell_complete=complete_workflow,
        help="Start it when this workflow has ended; repeatable.",
    ),
    click.option(
        "--afterok",
        metavar="ID",
        multiple=True,
        shell_complete=complete_workflow,
        help="The same, and only if that has completed.",
    ),
    click.option(
        "--retries",
        metavar="N",
        type=click.IntRange(0),
        help="Try a task that fails so many times again.",
    ),
    click.option(
        "--array",
        metavar="INDEXES[%N]",
        help="Run it for each index, as 0-49 or 1,5,9, at most N at once; {{array}} is the index.",
    ),
)
