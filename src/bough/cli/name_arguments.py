"""Arguments that name workflows, their tasks, and pools.

The server knows these names: by them a shell completes a word, and an error about a name that does
not exist says which one was probably meant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from bough.cli.options import together
from bough.cli.output import printable, some_of
from bough.cli.server_commands import client

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from bough.client import Client

#: How long a shell, or an error, waits for the names.
TIMEOUT_S = 1.0
#: How alike two names must be for one to be meant by the other.
_ALIKE = 0.7
#: How many tasks an error names.
MOST_TASKS = 10
#: How much of an error is compared: servers cut long names off.
_MOST_COMPARED = 60


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


def meant_names(context: click.Context, message: str) -> str:
    """Which names were probably meant by those of a command that the server does not know.

    message: what the server said. A task is looked for only where it is about that.
    """
    task = context.params.get("task")
    if task and f"has no task {task}"[:_MOST_COMPARED] in message:
        return _meant_task(context.params["name"], task)
    meant: list[str] = []
    for parameter in context.command.params:
        given = context.params.get(parameter.name or "")
        if not given or not isinstance(parameter.type, ServerName):
            continue
        known = parameter.type.known()
        for name in (given,) if isinstance(given, str) else given:
            close = _closest(name, known)
            meant += [close] if close and name not in known else []
    return f"did you mean {', '.join(dict.fromkeys(meant))}?" if meant else ""


def _meant_task(workflow: str, name: str) -> str:
    """Which task of a workflow was probably meant; all of them where it could be several."""
    known = ServerName(lambda asked: task_names(asked, workflow)).known()
    if not known:
        return ""
    if len(known) == 1:
        return f"its only task is {printable(known[0])}"
    close = _closest(name, known)
    if close and not any(each.startswith(f"{name}-") for each in known):
        return f"did you mean {close}?"
    return f"its tasks are {some_of(known, MOST_TASKS)}"


def task_names(asked: Client, workflow: str) -> list[str]:
    """The tasks of a workflow, in its own order."""
    groups = asked.workflows.get(workflow).groups
    return list(dict.fromkeys(task.name for group in groups for task in group.tasks))


def _closest(name: str, known: list[str]) -> str | None:
    import difflib  # noqa: PLC0415  only for mistakes

    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=_ALIKE)), None)


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
