"""`bough version`: of this program, and of the server."""

from __future__ import annotations

import click

from bough.cli.command import Command
from bough.cli.options import format_option
from bough.cli.output import echo
from bough.cli.server_commands import client
from bough.errors import BoughError
from bough.version import VERSION


@click.command(cls=Command)
@format_option
def version(format_type: str) -> None:
    """Show the version of this program and of the server."""
    server = None
    try:
        found = client().version()
        server = f"{found.major}.{found.minor}.{found.revision}"
    except BoughError as error:
        if error.http_status == 500:
            raise
    echo({"client": VERSION, "server": server}, format_type, _render)


def _render(answer: dict[str, str | None]) -> str:
    lines = [f"Client version: {answer['client']}"]
    if answer["server"]:
        lines.append(f"Server version: {answer['server']}")
    return "\n".join(lines)
