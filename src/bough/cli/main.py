"""The program: finds a command by its name, runs it, and turns what goes wrong into a message.

Exit codes: 0 done (or the answer is yes), 1 an error, 2 wrong usage, 3 the answer is no,
130 interrupted; commands that ask a server have those of `remote`. Must not know any command's
arguments.
"""

from __future__ import annotations

import importlib
import os
import sys

import click

from bough.cli.output import echo_error, guard_streams, silence_standard_output
from bough.errors import BoughError
from bough.version import VERSION

#: Where each command lives: a module, and the click command in it. A new command is a line here.
COMMANDS = {
    "audit": ("bough.cli.commands.audit", "audit"),
    "cohort": ("bough.cli.commands.cohort", "cohort"),
    "completion": ("bough.cli.commands.completion", "completion"),
    "config": ("bough.cli.commands.config", "config"),
    "credential": ("bough.cli.commands.credential", "credential"),
    "db": ("bough.cli.commands.serve", "db"),
    "gang": ("bough.cli.commands.gang", "gang"),
    "login": ("bough.cli.commands.login", "login"),
    "logout": ("bough.cli.commands.login", "logout"),
    "node": ("bough.cli.commands.node", "node"),
    "place": ("bough.cli.commands.place", "place"),
    "plan": ("bough.cli.commands.plan", "plan"),
    "pool": ("bough.cli.commands.pool", "pool"),
    "profile": ("bough.cli.commands.profile", "profile"),
    "queue": ("bough.cli.commands.queue", "queue"),
    "quota": ("bough.cli.commands.quota", "quota"),
    "resource": ("bough.cli.commands.resource", "resource"),
    "serve": ("bough.cli.commands.serve", "serve"),
    "task": ("bough.cli.commands.task", "task"),
    "token": ("bough.cli.commands.token", "token"),
    "usage": ("bough.cli.commands.usage", "usage"),
    "user": ("bough.cli.commands.user", "user"),
    "version": ("bough.cli.commands.version", "version"),
    "why": ("bough.cli.commands.plan", "why"),
    "workflow": ("bough.cli.commands.workflow", "workflow"),
}

ERROR = 1
USAGE = 2
INTERRUPTED = 130


class LazyGroup(click.Group):
    """Imports a command only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        """Every name in the table."""
        return sorted(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; where there is none of that name, name one that is meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = importlib.import_module("difflib").get_close_matches(args[0], COMMANDS, n=1)
            if not close:
                raise
            message = f"{error.message} Did you mean {close[0]!r}?"
            raise click.UsageError(message, ctx) from error

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002  click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Import the command of this name."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name]
        return getattr(importlib.import_module(module), attribute)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done or yes, 1 error, 2 wrong usage, 3 no, 130 interrupted. Commands "
    "that ask a server: 0 done, 1 workflow refused, 2 other error, 3 interrupted, 10 no server, "
    "75 too much at once.",
)
@click.version_option(VERSION, "-V", "--version", message="%(prog)s %(version)s")
def program() -> None:
    """Hierarchical GPU quota and elastic gang scheduling, with reasons."""


def main() -> None:
    """Run the program with the arguments of this process, and end it."""
    name = os.path.basename(sys.argv[0])
    sys.exit(run(sys.argv[1:], name if name in ("bough", "osmo") else "bough"))


def run(arguments: list[str], name: str = "bough") -> int:
    """Run the program and return its exit code; nothing but a broken interpreter raises."""
    guard_streams()
    try:
        code = _run(arguments, name)
        sys.stdout.flush()
    except BrokenPipeError:
        silence_standard_output()
        return ERROR
    except OSError as error:
        silence_standard_output()
        return _report_system(error)
    return code


def _run(arguments: list[str], name: str) -> int:
    try:
        code = program.main(args=arguments, prog_name=name, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.UsageError as error:
        error.show()
        return USAGE
    except click.ClickException as error:
        error.show()
        return ERROR
    except click.Abort:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BoughError as error:
        echo_error(error.message, details=error.details, hint=error.hint)
        return ERROR
    except OSError:
        raise
    except Exception as error:
        return _report_bug(error)


def _report_system(error: OSError) -> int:
    """A full disk, a file that nobody may read: no fault of the program, and none of its users."""
    _debug(error)
    what = f"{error.filename}: " if error.filename else ""
    echo_error(
        f"the system refuses: {what}{error.strerror or error}",
        hint="set BOUGH_DEBUG=1 to see where it happened",
    )
    return ERROR


def _report_bug(error: Exception) -> int:
    _debug(error)
    what = f"{type(error).__name__}: {error}"
    echo_error(
        f"this is a bug in Bough, please report it: {what}",
        hint="set BOUGH_DEBUG=1 to see where it happened",
    )
    return ERROR


def _debug(error: Exception) -> None:
    if os.environ.get("BOUGH_DEBUG"):
        import traceback  # noqa: PLC0415  only for bugs

        traceback.print_exception(error)
