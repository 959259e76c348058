"""What all commands that ask a server have in common: the client, errors, exit codes, pools.

Exit codes: 0 done, 1 a workflow was refused, 2 another error (wrong usage too), 3 interrupted,
10 the server cannot be reached or has failed, 75 too much at once. Must not know any command.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from bough.cli.multi_value_options import repeat_options
from bough.cli.output import printable
from bough.errors import BoughError, Invalid, Refused

if TYPE_CHECKING:
    from bough.client import Client

SUBMISSION = 1
ERROR = 2
INTERRUPTED = 3
SERVER = 10
TOO_MUCH = 75

#: As `output.format_option`, with the short form that server commands have.
format_option = click.option(
    "--format-type",
    "-t",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, or JSON for programs.",
)
#: For commands whose `-t` is something else.
#: Of a list of which nobody reads more than some.
count_option = click.option(
    "--count", "-c", type=click.IntRange(1, 1_000), default=20, show_default=True, help="How many."
)
long_format_option = click.option(
    "--format-type",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, or JSON for programs.",
)
pool_option = click.option("--pool", "-p", help="The pool, or subpool; your default pool if not.")


class Capitals(click.Choice):  # of text; older versions of click cannot say so
    """One of some words in capitals, however it is written."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word in capitals."""
        return super().convert(str(value).upper(), param, ctx)


PRIORITIES = Capitals(["HIGH", "NORMAL", "LOW"])
plan_option = click.option("--plan", is_flag=True, help="Only tell what the change would do.")


class ServerCommand(click.Command):
    """A command that asks a server, and ends with the exit codes above."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; an option that may be repeated may have its values in a row."""
        return super().parse_args(ctx, repeat_options(self.get_params(ctx), args))

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, and turn what goes wrong into a message and an exit code."""
        try:
            return super().invoke(ctx)
        except BoughError as error:
            echo_failure(error, ctx.params.get("format_type", "text"))
            ctx.exit(exit_code(error))
        except click.Abort:
            # A question stands there, without an answer.
            click.echo("\ninterrupted", err=True)
            ctx.exit(INTERRUPTED)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)


class ServerGroup(click.Group):
    """Commands that ask a server."""

    command_class = ServerCommand
    group_class = type


def client() -> Client:
    """The client, as the environment or a stored login says."""
    from bough.client import Client  # noqa: PLC0415  help needs no network

    return Client()


def exit_code(error: BoughError) -> int:
    """How a command ends that failed so."""
    if isinstance(error, Refused):
        return SUBMISSION
    if error.http_status == 429:
        return TOO_MUCH
    return SERVER if error.http_status >= 500 else ERROR


def echo(answer: Any, format_type: str, render: Callable[[Any], str], indent: int = 2) -> None:
    """Print an answer, either as JSON or as the text that `render` makes of it."""
    if format_type == "json":
        click.echo(json.dumps(answer, indent=indent, ensure_ascii=False))
    else:
        text = render(answer)
        if text:
            click.echo(text)


def try_all(
    context: click.Context,
    names: Sequence[str],
    attempt: Callable[[str], None],
    failed: Callable[[str, BoughError], None],
) -> None:
    """Do something with each of several, also after one could not be done; then end with 2."""
    missed = False
    for name in names:
        try:
            attempt(name)
        except BoughError as error:
            if error.http_status >= 500 or isinstance(error, Refused):
                raise
            missed = True
            failed(name, error)
    if missed:
        context.exit(ERROR)


def choose_pool(asked: Client, pool: str | None) -> str:
    """The pool that was named, or the default pool, or the only one there is."""
    if pool:
        return pool
    found: Any = asked.profile.get()
    default = (found.get("profile") or {}).get("pool")
    if default:
        return default
    names = asked.pools.names()
    if len(names) == 1:
        return names[0]
    reached = found.get("pools") or ()
    if len(reached) == 1:
        return reached[0]
    raise Invalid(
        'No default pool set. Set a default pool using "osmo profile set pool <pool>" or specify a '
        "pool using --pool or -p.",
        hint=f"you may submit to {', '.join(reached)}" if reached else "",
    )


def read_text(file: str, *, dash: bool = False) -> str:
    """What is in a file; with `dash`, `-` is standard input."""
    try:
        if dash and file == "-":
            return sys.stdin.read()
        with open(file, encoding="utf-8") as stream:
            return stream.read()
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise Invalid(f"{file} is not UTF-8 text.") from None


def read_pairs(what: str, pairs: tuple[str, ...]) -> dict[str, str]:
    """`NAME=VALUE`, several times."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise click.UsageError(f"{what}: expected NAME=VALUE, not {pair!r}.")
        found[name] = value
    return found


def echo_failure(error: BoughError, format_type: str) -> None:
    """Print what went wrong: as JSON where the answer would be, else where errors go."""
    # What did not come from a server has no status of its own.
    code = vars(error).get("http_status", exit_code(error))
    code = SUBMISSION if isinstance(error, Refused) else code
    message = _message(error)
    if format_type == "json":
        told: dict[str, Any] = {"message": message, "code": code}
        if error.details:
            told["details"] = list(error.details)
        if error.hint:
            told["hint"] = error.hint
        click.echo(json.dumps(told, ensure_ascii=False))
        return
    first, *rest = message.splitlines() or [""]
    click.echo(f"Error message: {printable(first)}", err=True)
    # The message has the first detail, so that one alone says nothing new.
    details = error.details if "".join(error.details) not in message else ()
    for line in (*rest, *(f"  {detail}" for detail in details)):
        click.echo(printable(line), err=True)
    click.echo(f"Error code: {code}", err=True)
    if error.hint:
        click.echo(f"Hint: {printable(error.hint)}", err=True)


def _message(error: BoughError) -> str:
    if not isinstance(error, Refused):
        return error.message
    name = f" {error.workflow_id}" if error.workflow_id else ""
    return f"Workflow{name} submit failed: {error.message}"
