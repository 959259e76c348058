"""The program: finds a command by its name, runs it, and turns what goes wrong into a message."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from typing import TYPE_CHECKING

import click

from bough.cli.command import CommandGroup, help_command
from bough.cli.exit_codes import DONE, ERROR, INTERRUPTED, MEANINGS, exit_code
from bough.cli.output import (
    echo_error,
    echo_problem,
    echo_usage_error,
    guard_streams,
    silence_standard_output,
)
from bough.cli.screen import Screen, find_screen, terminal_columns
from bough.errors import BoughError
from bough.version import VERSION

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: Columns that a help text fills at most, and at least.
_WIDEST, _NARROWEST = 100, 50
#: What people do first, and by which commands.
FIRST_STEPS = (
    ("serve --example", "Start a server with example data."),
    ("login URL", "Log in to a server."),
    ("run --gpus 1 -- COMMAND", "Run a command on a GPU."),
    ("workflow submit FILE", "Run the tasks of a workflow file."),
    ("workflow list", "See what runs, what waits, and why."),
    ("workflow why ID", "Ask why a workflow waits."),
)
#: The commands by what people do with them: the module of each, and what it does, so that help and
#: completion import none of them. A new command is a line here.
SECTIONS = {
    "Run work": {
        "run": ("run", "Run a command, print its output, end with its exit code."),
        "workflow": ("workflow", "Workflows: submit, watch, explain, cancel."),
        "task": ("task", "Tasks of all workflows."),
        "top": ("top", "Show who holds each GPU, what waits, and why."),
        "app": ("app", "Apps: workflow files on the server that everyone can submit."),
        "data": ("data", "Data in pools and object stores: list, upload, download, delete."),
        "credential": ("credential", "Secrets for your workflows."),
        "profile": ("profile", "Your settings, pools and roles."),
        "login": ("login", "Log in to a server."),
        "logout": ("login", "Log out and delete the stored login."),
    },
    "Share a cluster": {
        "pool": ("pool", "Pools of GPUs, and how they are divided."),
        "cohort": ("cohort", "Cohorts: trees of pools that lend GPUs to each other."),
        "queue": ("queue", "The tree of queues behind pools and subpools."),
        "resource": ("resource", "Nodes: what they have, and how much is in use."),
        "node": ("node", "Nodes: list, cordon and drain them, declare them lost."),
        "usage": ("usage", "Show GPU-hours: guaranteed, preemptible and borrowed."),
    },
    "Files without a server": {
        "plan": ("plan", "Show what one scheduling cycle would decide, and why."),
        "why": ("plan", "Explain why a workload waits."),
        "quota": ("quota", "The quota tree: who owns, uses, lends and borrows what."),
        "gang": ("gang", "Gangs: trees of subgroups that start as a whole or not at all."),
        "place": ("place", "Show where the pods of gangs are placed, or why they do not fit."),
    },
    "Kubernetes": {
        "kube": ("kube", "Pods of a Kubernetes cluster: schedule them, ask why they wait."),
    },
    "Administration": {
        "serve": ("serve", "Run a server: schedule workflows, answer requests."),
        "db": ("serve", "A server's database."),
        "admin": ("admin", "Repair commands, on the server's own machine."),
        "backup": ("backup", "Back up a server's database to a new FILE."),
        "restore": ("backup", "Restore a server's database from a backup FILE."),
        "history": ("history", "Export finished workflows to a file, for administrators."),
        "config": ("config", "Configuration: show, change, compare, roll back."),
        "user": ("user", "Users and their roles, for administrators."),
        "token": ("token", "Personal access tokens."),
        "audit": ("audit", "The audit log: who changed what, when and from where."),
        "version": ("version", "Show the version of this program and of the server."),
        "completion": ("completion", "Print the script for shell completion."),
    },
}
#: Modules that have something to do when the program ends: where one is loaded, it ends as usual.
_END_THEMSELVES = {"asyncio", "concurrent.futures", "logging", "multiprocessing", "tempfile"}
COMMANDS = {
    name: f"bough.cli.commands.{module}"
    for commands in SECTIONS.values()
    for name, (module, _) in commands.items()
}


class Program(CommandGroup):
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
        if cmd_name == "help":
            return help_command
        module = COMMANDS.get(cmd_name)
        return None if module is None else getattr(importlib.import_module(module), cmd_name)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What the program is for, and the first steps."""
        super().format_help_text(ctx, formatter)
        with formatter.section("First steps"):
            formatter.write_dl([(f"{ctx.info_name} {name}", text) for name, text in FIRST_STEPS])

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002  click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """The commands by what people do with them."""
        longest = max(map(len, COMMANDS))
        room = formatter.width - 6 - longest
        for title, commands in SECTIONS.items():
            lines = [
                (name.ljust(longest), click.Command(name, help=text).get_short_help_str(room))
                for name, (_, text) in commands.items()
            ]
            with formatter.section(title):
                formatter.write_dl(lines)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin so; an option of the program is the library's to complete."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem  # noqa: PLC0415  only for shells

        return [
            CompletionItem(name, help=text)
            for commands in SECTIONS.values()
            for name, (_, text) in commands.items()
            if name.startswith(incomplete)
        ]


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": _WIDEST},
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
    code = run(sys.argv[1:], name if name in ("bough", "osmo") else "bough")
    if threading.active_count() == 1 and not sys.modules.keys() & _END_THEMSELVES:
        # Taking the interpreter apart costs more than everything else that a short command does.
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


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
        code = program.main(
            args=arguments,
            prog_name=name,
            standalone_mode=False,
            obj=screen,
            terminal_width=max(min(terminal_columns(), _WIDEST) - 2, _NARROWEST),
        )
        return code if isinstance(code, int) else DONE
    except click.exceptions.NoArgsIsHelpError as error:
        # A group without a command is a question, not a mistake.
        click.echo(error.format_message())
        return DONE
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
    except SystemExit as error:
        # The shell was told its completions. With 1 the library says that the reader has gone.
        return ERROR if error.code else DONE
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
