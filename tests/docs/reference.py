"""The reference of all commands, to be filled with their help."""

from __future__ import annotations

from collections.abc import Iterator

import click

from bough.cli.main import program

OPENING = "<!-- commands -->"
CLOSING = "<!-- end of commands -->"


def command_names() -> Iterator[str]:
    """The program, and every command below it, in the order of the program's own help."""
    yield from _names(program, "bough")


def headings() -> list[str]:
    """The lines of the reference: for each command a heading and a block that asks for its help."""
    lines: list[str] = [""]
    for name in command_names():
        lines += [f"## {name}", "", "```console", f"$ {name} --help", "```", ""]
    return lines


def _names(command: click.Command, name: str) -> Iterator[str]:
    yield name
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            if found is not None and not found.hidden:
                yield from _names(found, f"{name} {child}")
