"""Arguments that name workflows and pools.

The server knows these names: by them a shell completes a word, and an error about a name that does
not exist says which one was probably meant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from bough.cli.options import together
from bough.cli.server_commands import client

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from bough.client import Client

#: How long a shell, or an error, waits for the names.
TIMEOUT_S = 1.0
#: How alike two names must be for one to be meant by the other.
_ALIKE = 0.7


def _known_workflows(asked: Client) -> list[str]:
    page = asked.workflows.list(limit=100, query={"all_users": False})
    return [each.name for each in page.workflows]


def _known_pools(asked: Client) -> list[str]:
    return list(asked.pools.names())


class ServerName(click.ParamType):  # of text; older versions of click cannot say so
    """A name that the server knows, of one kind of thing."""

    name = "text"

    def __init__(self, read: Callable[[Client], list[str]]) -> None:
        self._read = read

    def known(self) -> list[str]:
        """The names; none where there is no server."""
        try:
            return self._read(client(TIMEOUT_S))
        except Exception:
            return []

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  click's signature
        param: click.Parameter,  # noqa: ARG002  click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        """The names that begin so."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  only for shells

        return [CompletionItem(name) for name in self.known() if name.startswith(incomplete)]


WORKFLOW = ServerName(_known_workflows)
POOL = ServerName(_known_pools)


def meant_names(context: click.Context) -> str:
    """Which names were probably meant by those of a command that the server does not know."""
    import difflib  # noqa: PLC0415  only for mistakes

    meant: list[str] = []
    for parameter in context.command.params:
        given = context.params.get(parameter.name or "")
        if not given or not isinstance(parameter.type, ServerName):
            continue
        known = parameter.type.known()
        for name in (given,) if isinstance(given, str) else given:
            close = difflib.get_close_matches(name, known, n=1, cutoff=_ALIKE)
            meant += [close[0]] if close and name not in known else []
    return f"did you mean {', '.join(dict.fromkeys(meant))}?" if meant else ""


id_argument = click.argument("name", metavar="ID", type=WORKFLOW)
ids_argument = click.argument("names", metavar="ID...", nargs=-1, required=True, type=WORKFLOW)
pools_option = click.option(
    "--pool",
    "-p",
    "pools",
    multiple=True,
    type=POOL,
    help="Only this pool; repeatable.",
)
pool_argument = click.argument("name", type=POOL)
parent_argument = click.argument("parent", type=POOL)


#: What a submission waits for, and how often its tasks are tried again.
start_options = together(
    click.option(
        "--after",
        metavar="ID",
        multiple=True,
        type=WORKFLOW,
        help="Start when this workflow has ended; repeatable.",
    ),
    click.option(
        "--afterok",
        metavar="ID",
        multiple=True,
        type=WORKFLOW,
        help="Start when this workflow has completed, and not if it fails; repeatable.",
    ),
    click.option(
        "--retries",
        metavar="N",
        type=click.IntRange(0),
        help="Retry a failed task up to N times.",
    ),
    click.option(
        "--array",
        metavar="INDEXES[%N]",
        help="Run for each index, like 0-49 or 1,5,9, at most N at once; {{array}} is the index.",
    ),
)
