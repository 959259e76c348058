"""`bough admin`: what is done on the server's own machine, with its data folder."""

from __future__ import annotations

from pathlib import Path

import click

from bough.cli.command import CommandGroup
from bough.cli.commands.serve import data_option, database_option, key_file_option, server
from bough.cli.options import format_option
from bough.cli.output import echo
from bough.cli.screen import program


@click.group(cls=CommandGroup)
def admin() -> None:
    """Repair commands, on the server's own machine."""


@admin.command("rotate-key")
@data_option
@database_option
@key_file_option
@format_option
def rotate_key(data: str, database: str | None, key_file: str | None, format_type: str) -> None:
    """Encrypt all credentials with a new key, and delete the old key.

    Also changes the key that signs passes, so existing passes become invalid. Servers can keep
    running. Copy the key file to the other servers on the same database.
    """
    path = None if key_file is None else Path(key_file)
    settings = server("settings").Settings(data=Path(data), database=database, key_file=path)
    done = server("process").rotate_key(settings)
    answer = {"key": done.key, "credentials": done.credentials}
    echo(
        answer,
        format_type,
        lambda _: f"{done.credentials} credentials are encrypted with the new key {done.key}.",
    )


@admin.command()
@data_option
@database_option
@format_option
def recover(data: str, database: str | None, format_type: str) -> None:
    """Create a new token for an administrator.

    Use this if no administrator can log in any more; the server may be running or not. Writes the
    token to a file in the data folder that only its owner can read, and prints the file's name. The
    audit log records it.
    """
    settings = server("settings").Settings(data=Path(data), database=database)
    made = server("recovery").recover_administrator(settings)
    answer = {"user": made.user, "token_name": made.token, "file": made.file}
    echo(
        answer,
        format_type,
        lambda _: (
            f"A token for the administrator {made.user} is in {made.file}\n"
            f"Use it with: {program()} login URL --token-file {made.file}"
        ),
    )
