"""The program: finds a command by its name, runs it, and turns what goes wrong into a message."""

from __future__ import annotations

import importlib
import os
import sys

import click

from bough.cli.command import Group
from bough.cli.exit_codes import DONE, ERROR, INTERRUPTED, MEANINGS, exit_code
from bough.cli.output import (
    echo_error,
    echo_problem,
    echo_usage_error,
    guard_streams,
    silence_standard_output,
)
from bough.cli.screen import Screen, find_screen
from bough.errors import BoughError
from bough.version import VERSION

#: What people do first, and by which commands.
FIRST_STEPS = (
    ("serve --example", "Start a server with an example on this machine."),
    ("login URL", "Say which server you use, and who you are."),
    ("workflow submit FILE", "Run something."),
    ("workflow list", "See what runs, and what waits for what."),
    ("workflow why ID", "Ask why something waits."),
)
#: The commands by what people do with them, and the module of each. A new command is a line here.
SECTIONS = {
    "Run work": {
        "workflow": "workflow",
        "task": "task",
        "credential": "credential",
        "profile": "profile",
        "login": "login",
        "logout": "login",
    },
    "Share a cluster": {
        "pool": "pool",
        "cohort": "cohort",
        "queue": "queue",
        "resource": "resource",
        "node": "node",
        "usage": "usage",
    },
    "Files without a server": {
        "plan": "plan",
        "why": "plan",
        "quota": "quota",
        "gang": "gang",
        "place": "place",
    },
    "Administration": {
        "serve": "serve",
        "db": "serve",
        "admin": "admin",
        "backup": "backup",
        "restore": "backup",
        "config": "config",
        "user": "user",
        "token": "token",
        "audit": "audit",
        "version": "version",
        "completion": "completion",
    },
}
COMMANDS = {
    name: f"bough.cli.commands.{module}"
    for commands in SECTIONS.values()
    for name, module in commands.items()
}


class Program(Group):
    """Imports a command only when it is asked for, and lists commands by what people do."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        """Every name in the table."""
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002  click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Import the command of this name."""
        module = COMMANDS.get(cmd_name)
        return None if module is None else getattr(importlib.import_module(module), cmd_name)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What the program is for, and the first steps."""
        super().format_help_text(ctx, formatter)
        with formatter.section("First steps"):
            formatter.write_dl([(f"{ctx.info_name} {name}", text) for name, text in FIRST_STEPS])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by what people do with them."""
        longest = max(map(len, COMMANDS))
        room = formatter.width - 6 - longest
        for title, names in SECTIONS.items():
            found = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (name.ljust(longest), command.get_short_help_str(room))
                        for name, command in found
                        if command is not None
                    ]
                )


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"Exit codes: {', '.join(f'{code} {text}' for code, text in MEANINGS.items())}.".replace(
        ", or ", " or "
    ),
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
    screen = find_screen(name)
    # Errors that no command caught are printed for the same screen.
    with click.Context(program, info_name=name, obj=screen):
        try:
            code = _run(arguments, name, screen)
            sys.stdout.flush()
        except BrokenPipeError:
            silence_standard_output()
            return ERROR
        except OSError as error:
            silence_standard_output()
            return _report_system(error)
        return code


def _run(arguments: list[str], name: str, screen: Screen) -> int:
    try:
        code = program.main(args=arguments, prog_name=name, standalone_mode=False, obj=screen)
        return code if isinstance(code, int) else DONE
    except click.UsageError as error:
        echo_usage_error(error)
        return ERROR
    except click.ClickException as error:
        echo_problem(error.format_message())
        return ERROR
    except click.Abort:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BoughError as error:
        echo_error(error)
        return exit_code(error)
    except SystemExit:
        # The reader has gone. The library ends the program with 1 then, which is our "no".
        return ERROR
    except OSError:
        raise
    except Exception as error:
        return _report_bug(error)


def _report_system(error: OSError) -> int:
    """A full disk, a file without permission: no fault of the program, and none of its users."""
    _debug(error)
    what = f"{error.filename}: " if error.filename else ""
    echo_problem(
        f"the system refuses: {what}{error.strerror or error}",
        hint="set BOUGH_DEBUG=1 to see where it happened",
    )
    return ERROR


def _report_bug(error: Exception) -> int:
    _debug(error)
    what = f"{type(error).__name__}: {error}"
    echo_problem(
        f"this is a bug in Bough, please report it: {what}",
        hint="set BOUGH_DEBUG=1 to see where it happened",
    )
    return ERROR


def _debug(error: Exception) -> None:
    if os.environ.get("BOUGH_DEBUG"):
        import traceback  # noqa: PLC0415  only for bugs

        traceback.print_exception(error)
