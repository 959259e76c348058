"""The class of all commands, and the class of all groups of commands.

A command turns what goes wrong into a message and an exit code; a group names the command that was
meant where there is none of that name.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

from bough.cli.exit_codes import INTERRUPTED, exit_code
from bough.cli.multi_value_options import repeat_options
from bough.cli.output import echo_error
from bough.errors import BoughError, NotFound


class Command(click.Command):
    """A command, whether it reads files or asks a server."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; an option that may be repeated may have its values in a row."""
        return super().parse_args(ctx, repeat_options(self.get_params(ctx), args))

    def invoke(self, ctx: click.Context) -> object:
        """Run it, and turn what goes wrong into a message and an exit code."""
        try:
            return super().invoke(ctx)
        except BoughError as error:
            add_meant_names(error, ctx)
            echo_error(error, ctx.params.get("format_type", "text"))
            ctx.exit(exit_code(error))
        except click.Abort:
            # The prompt was left unanswered: end its line.
            click.echo("\ninterrupted", err=True)
            ctx.exit(INTERRUPTED)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)


def add_meant_names(error: BoughError, context: click.Context) -> None:
    """Have an error about a name that does not exist say which one was probably meant."""
    from bough.cli.name_arguments import meant_names  # noqa: PLC0415  only for mistakes

    if isinstance(error, NotFound) and not error.hint:
        error.hint = meant_names(context, error.message)


class CommandGroup(click.Group):
    """Commands below a word."""

    command_class = Command
    group_class = type

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        #: The modules of groups below this one, which are imported when one is asked for.
        self._later: dict[str, str] = {}

    def add_later(self, name: str, module: str) -> None:
        """Have a group below this one, of the name that its function has in a module."""
        self._later[name] = module

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Those that are there, and those that are imported when they are asked for."""
        return sorted({*super().list_commands(ctx), *self._later})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now where it was not before."""
        if cmd_name in self._later:
            return getattr(importlib.import_module(self._later[cmd_name]), cmd_name)
        found = super().get_command(ctx, cmd_name)
        return help_command if found is None and cmd_name == "help" else found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; where there is none of that name, name the one that is meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from bough.cli.suggestions import no_such_command  # noqa: PLC0415  only for mistakes

            raise no_such_command(ctx, self, args[0]) from None


@click.command("help", cls=Command, add_help_option=False)
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def help_command(context: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command: `help workflow submit` is `workflow submit --help`."""
    found = context.parent
    if found is None:
        return
    for word in words:
        group = found.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"`{found.command_path}` has no commands.", found)
        name, command, _ = group.resolve_command(found, [word])
        if command is not None:
            found = click.Context(command, parent=found, info_name=name)
    click.echo(found.get_help())
