"""`bough run`: one command as a workflow, watched until it ends."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from bough.cli.command import Command
from bough.cli.file_commands import tool
from bough.cli.name_arguments import POOL, start_options
from bough.cli.options import PRIORITIES, format_option, read_pairs
from bough.cli.output import echo, echo_error, echo_usage_error, printable
from bough.cli.screen import program
from bough.cli.server_commands import choose_pool, client
from bough.cli.text.workflows import render_submitted
from bough.cli.transfers import upload_option, upload_project
from bough.cli.workflow_watching import COMPLETED, Watch, task_exit_code
from bough.errors import BoughError, Invalid

if TYPE_CHECKING:
    from bough.api.workflows import Submission, WorkflowDocument
    from bough.client import Client

#: What other programs that run commands end with where they failed themselves.
FAILED_ITSELF = 125
#: The prefix of each line of a log.
_PREFIX = re.compile(r"\S+ \S+ \[[^\]\n]*\] ")
#: What a shell says of a program that was interrupted.
INTERRUPTED = 130


class RunCommand(Command):
    """Ends with the exit code of what it runs, so that its own failures have one for all."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; options of this command have one value each."""
        try:
            return click.Command.parse_args(self, ctx, args)
        except click.UsageError as error:
            echo_usage_error(error)
            ctx.exit(FAILED_ITSELF)

    def invoke(self, ctx: click.Context) -> object:
        """Run it, and turn what goes wrong into a message and one exit code."""
        try:
            return click.Command.invoke(self, ctx)
        except click.UsageError as error:
            echo_usage_error(error)
            ctx.exit(FAILED_ITSELF)
        except BoughError as error:
            echo_error(error, ctx.params.get("format_type", "text"))
            ctx.exit(FAILED_ITSELF)
        except (click.Abort, KeyboardInterrupt):
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)


@click.command(
    cls=RunCommand,
    # What stands after the command is the command's.
    context_settings={"allow_interspersed_args": False},
)
@click.argument("command", metavar="[--] COMMAND...", nargs=-1, required=True)
@click.option(
    "--gpus", "-g", type=click.IntRange(0), default=0, show_default=True, help="How many GPUs."
)
@click.option("--cpus", metavar="N", help="CPUs, like 4 or 500m.")
@click.option("--memory", metavar="SIZE", help="Memory, like 16Gi.")
@click.option("--storage", metavar="SIZE", help="Disk, like 10Gi.")
@click.option(
    "--pool",
    "-p",
    type=POOL,
    help="The pool or subpool (default: your default pool).",
)
@click.option(
    "--priority",
    type=PRIORITIES,
    help="HIGH and NORMAL (default) stay within the quota; LOW may exceed it and be preempted.",
)
@click.option(
    "--image", metavar="IMAGE", help="The container image to run in, if the server supports images."
)
@click.option(
    "--env",
    "-e",
    "environment",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Set an environment variable; without =VALUE, copy it from your shell. Repeatable.",
)
@click.option(
    "--venv",
    metavar="DIR",
    help="Run in this Python virtual environment; its bin folder comes first in PATH.",
)
@click.option(
    "--conda", metavar="ENV", help="Run in this conda environment: its name, or its folder."
)
@click.option(
    "--label", "labels", multiple=True, metavar="NAME=VALUE", help="Add a label; repeatable."
)
@click.option("--name", help="The workflow's name (default: the name of the program).")
@click.option("--timeout", metavar="TIME", help="Stop the command after this time, like 8h.")
@start_options
@upload_option
@click.option("--detach", "-d", is_flag=True, help="Submit, and do not wait for the command.")
@click.option(
    "--quiet",
    "-q",
    is_flag=True,
    help="Print only the command's own output, warnings and errors.",
)
@click.option("--save", metavar="FILE", help="Save the submitted workflow to a new FILE.")
@click.option("--dry-run", is_flag=True, help="Print the workflow, and do not submit it.")
@format_option
def run(
    command: tuple[str, ...],
    detach: bool,
    quiet: bool,
    save: str | None,
    dry_run: bool,
    format_type: str,
    **options: Any,
) -> None:
    """Run a command, print its output, end with its exit code.

    The exit code is 125 if the command could not be run. If you press Ctrl-C, you are
    asked whether to cancel the workflow or to let it run; the exit code is then 130.
    """
    text = _spec(command, options)
    if dry_run:
        click.echo(text, nl=False)
        return
    if save is not None:
        _save(save, text)
    read_pairs("--label", options["labels"])
    asked = client()
    pool = choose_pool(asked, options["pool"])
    uploaded = upload_project(asked, pool, "json" if quiet else format_type)
    answer = asked.workflows.submit(
        pool,
        text,
        priority=options["priority"],
        query={"label": list(options["labels"]), **uploaded},
    )
    # Quiet or not: it may never start, and then nothing else would ever be said.
    for warning in answer.warnings:
        click.echo(printable(f"WARNING: {warning}"), err=True)
    if detach:
        echo(answer, format_type, render_submitted)
        return
    if answer.elements is not None:
        click.get_current_context().exit(_watch_array(asked, answer.name, quiet, format_type))
    click.get_current_context().exit(_watch(asked, answer, quiet=quiet, format_type=format_type))


def _spec(command: tuple[str, ...], options: dict[str, Any]) -> str:
    names = {"gpus": "gpu", "cpus": "cpu", "memory": "memory", "storage": "storage"}
    resources = {field: options[option] for option, field in names.items()}
    spec = tool("run_spec")
    name = options["name"] or spec.name_of(command)
    command, more = spec.enter_environment(command, options["venv"], options["conda"])
    return spec.make_spec(
        command,
        name=name,
        image=options["image"],
        timeout=options["timeout"],
        start=spec.StartTerms(
            options["after"], options["afterok"], options["retries"], options["array"]
        ),
        environment={**more, **_environment(options["environment"])},
        resources={field: value for field, value in resources.items() if value is not None},
    )


def _environment(pairs: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals and name not in os.environ:
            raise click.UsageError(f"--env {name}: there is no such variable here; name its value.")
        found[name] = value if equals else os.environ[name]
    return found


def _save(path: str, text: str) -> None:
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise Invalid(f"--save: {path} already exists.", hint="name a new file") from None
    except OSError as error:
        raise Invalid(f"--save: {path} cannot be written: {error.strerror}.") from None


def _watch(asked: Client, answer: Submission, *, quiet: bool, format_type: str) -> int:
    watch = Watch(asked, answer.name, quiet=quiet)
    watch.say("submitted")
    try:
        found = _follow(watch, to_errors=format_type == "json")
    except (KeyboardInterrupt, click.Abort):
        return _interrupted(asked, answer.name)
    if format_type == "json":
        echo(found, format_type, str)
    code = task_exit_code(found, FAILED_ITSELF)
    if code == FAILED_ITSELF:
        watch.tell(f"{found.status}: {found.failure_message or 'its command was not run'}")
    return code


def _watch_array(asked: Client, name: str, quiet: bool, format_type: str) -> int:
    """Show the progress of an array; returns 0 if all its elements completed."""
    watch = Watch(asked, name, quiet=quiet)
    try:
        ended = watch.until_array_ended()
    except (KeyboardInterrupt, click.Abort):
        return _interrupted(asked, name)
    if format_type == "json":
        echo(ended, format_type, str)
    return 0 if ended.status == COMPLETED else FAILED_ITSELF if not ended.statuses else 1


def _follow(watch: Watch, *, to_errors: bool) -> WorkflowDocument:
    watch.until_started()
    for line in watch.lines():
        click.echo(_own_text(line), nl=False, err=to_errors)
    return watch.until_ended()


def _own_text(line: str) -> str:
    """A line as the command wrote it, without its time and task."""
    return line[found.end() :] if (found := _PREFIX.match(line)) else line


def _interrupted(asked: Client, name: str) -> int:
    """Ask what becomes of the workflow; without a terminal, or an answer, it goes on."""
    click.echo("", err=True)
    cancel = False
    if sys.stdin.isatty():
        try:
            cancel = click.confirm(f"Cancel {name}? Otherwise it goes on", default=False, err=True)
        except (click.Abort, KeyboardInterrupt):
            click.echo("", err=True)
    if cancel:
        asked.workflows.cancel(name)
        click.echo(f"{name}: cancelled", err=True)
    else:
        click.echo(
            f"{name} goes on. Its output: {program()} workflow logs {name}. "
            f"To end it: {program()} workflow cancel {name}",
            err=True,
        )
    return INTERRUPTED
