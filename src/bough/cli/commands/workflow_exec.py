"""`bough workflow exec`: a command in a running task."""

from __future__ import annotations

import shlex
import sys

import click

from bough.cli.command import Command, add_meant_names
from bough.cli.name_arguments import MOST_TASKS, id_argument, task_names
from bough.cli.output import echo_error, some_of
from bough.cli.server_commands import client
from bough.errors import BoughError, Invalid

#: Bough itself failed, as with `docker exec`; all other codes are the command's.
FAILED = 125
_SHELL = "/bin/bash"


@click.command("exec", cls=Command, context_settings={"allow_interspersed_args": False})
@click.option(
    "-i", "--stdin", "reads_input", is_flag=True, help="Pass standard input to the command."
)
@click.option("-t", "--tty", "terminal", is_flag=True, help="Give the command a terminal.")
@click.option(
    "--entry",
    metavar="COMMAND",
    help=f"The command as a single argument, run with a terminal (default: {_SHELL}).",
)
@id_argument
@click.argument("task")
@click.argument("argv", metavar="[COMMAND]...", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def exec_(
    context: click.Context,
    reads_input: bool,
    terminal: bool,
    entry: str | None,
    name: str,
    task: str,
    argv: tuple[str, ...],
) -> None:
    """Run a command in a running task.

    The command has the files, permissions and limits of the task, and ends when the task ends.
    Without COMMAND, opens a shell. Options may also follow TASK; put -- before a COMMAND that has
    options of its own. TASK may be left out before -- if the workflow has a single task.

    The exit code is that of the command, 127 if it cannot be started, and 125 if Bough fails.

    \b
    Examples:
      bough workflow exec train-1 main
      bough workflow exec train-1 main -- nvidia-smi
      bough workflow exec -i train-1 main -- tar -x < project.tar
    """  # noqa: D301  click reads the \b
    try:
        if task.startswith("-"):
            # Options and the command follow ID at once.
            task, argv = _only_task(name), (task, *argv)
        flags, words = _split(argv)
        interactive = not words and "i" not in flags and not reads_input
        if entry is not None and words:
            raise Invalid("Say the command either as --entry or after --.")
        code = _run(
            name,
            task,
            words or tuple(shlex.split(entry or _SHELL)),
            reads_input=reads_input or "i" in flags or interactive,
            terminal=terminal or "t" in flags or interactive,
        )
    except BoughError as error:
        add_meant_names(error, context)
        echo_error(error, "text")
        code = FAILED
    context.exit(code)


def _only_task(name: str) -> str:
    """The task of a workflow that has a single one."""
    tasks = task_names(client(), name)
    if len(tasks) == 1:
        return tasks[0]
    raise Invalid(
        f"TASK is missing: say in which task of {name} to run the command.",
        hint=f"its tasks are {some_of(tasks, MOST_TASKS)}" if tasks else "",
    )


def _split(argv: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Split what came after TASK into options and the command."""
    flags, words = "", argv
    known = {"-i": "i", "-t": "t", "-it": "it", "-ti": "it", "--stdin": "i", "--tty": "t"}
    while words and words[0] in known:
        flags += known[words[0]]
        words = words[1:]
    return flags, words[1:] if words[:1] == ("--",) else words


def _run(name: str, task: str, argv: tuple[str, ...], *, reads_input: bool, terminal: bool) -> int:
    from bough.client.exec_session import ExecSession  # noqa: PLC0415  other commands need none

    peer = client().sessions.exec(name, task, argv, terminal=terminal)
    sys.stdout.flush()
    ended = ExecSession(peer, reads_input=reads_input, terminal=terminal).run()
    if ended.message:
        click.echo(ended.message, err=True)
    return ended.exit_code
