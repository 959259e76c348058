"""`bough backup` and `bough restore`: the database of a server as a file, and back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bough.cli.command import Command
from bough.cli.commands.serve import data_option, database_option, key_file_option, server
from bough.cli.options import format_option
from bough.cli.output import echo


@click.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False))
@data_option
@database_option
@key_file_option
@click.option(
    "--with-key",
    is_flag=True,
    help="Include the key that encrypts credentials in the backup. Anyone who can read the "
    "backup can then read the credentials.",
)
@format_option
def backup(
    file: str,
    data: str,
    database: str | None,
    key_file: str | None,
    format_type: str,
    *,
    with_key: bool,
) -> None:
    """Back up a server's database to a new FILE.

    Servers can keep running. Logs and data of tasks are not included.
    """
    settings = _settings(data, database, key_file)
    module = server("backup")
    done = module.back_up(settings, Path(file), with_key=with_key, tell=_progress())
    text = f"{done.rows} rows are written to {file} ({done.bytes} bytes)."
    if not with_key:
        key = settings.credential_key_file
        text += f"\nKeep a copy of {key} elsewhere: without it no credential can be read."
    echo(done, format_type, lambda _: text)


@click.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False))
@data_option
@database_option
@key_file_option
@click.option(
    "--replace",
    is_flag=True,
    help="Delete the contents of the database first. Running tasks that are not in the backup are "
    "stopped.",
)
@format_option
def restore(
    file: str,
    data: str,
    database: str | None,
    key_file: str | None,
    format_type: str,
    *,
    replace: bool,
) -> None:
    """Restore a server's database from a backup FILE.

    Servers can keep running. The backup may come from an older version, and from SQLite or
    PostgreSQL.
    """
    settings = _settings(data, database, key_file)
    done = server("backup").restore(settings, Path(file), replace=replace, tell=_progress())
    lines = [f"{done.rows} rows of {done.created} are restored from {file}."]
    lines += [f"warning: {each}" for each in done.warnings]
    echo(done, format_type, lambda _: "\n".join(lines))


def _settings(data: str, database: str | None, key_file: str | None) -> Any:
    path = None if key_file is None else Path(key_file)
    return server("settings").Settings(data=Path(data), database=database, key_file=path)


def _progress() -> Callable[[str, int], None]:
    """Says on a terminal which table is done; programs see nothing of it."""

    def tell(table: str, rows: int) -> None:
        if sys.stderr.isatty():
            click.echo(f"{table}: {rows} rows", err=True)

    return tell
