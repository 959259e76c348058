"""`bough history`: finished workflows in a file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bough.cli.command import CommandGroup
from bough.cli.options import format_option
from bough.cli.output import count, echo, printable
from bough.cli.server_commands import client

if TYPE_CHECKING:
    from bough.api.history_export import HistoryExport


@click.group(cls=CommandGroup)
def history() -> None:
    """Export finished workflows to a file, for administrators.

    The server can archive old workflows by itself: `bough config set WORKFLOW archive_after=90d`.
    """


@history.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option(
    "--until",
    metavar="TIME",
    required=True,
    help="Workflows that ended before this: a date, a time in UTC, or an age like 365d.",
)
@click.option(
    "--drop",
    is_flag=True,
    help="Delete them from the server once the file is written; their GPU-hours, events and audit "
    "stay.",
)
@format_option
def export(file: str, until: str, format_type: str, *, drop: bool) -> None:
    """Write finished workflows to a new FILE, one line of JSON each.

    A FILE whose name ends in .gz is compressed. Servers can keep running.
    """
    done = client().history.export(Path(file), until, drop=drop, tell=_progress())
    echo(done, format_type, _written)


@history.command()
@click.argument("file", type=click.Path(dir_okay=False))
@format_option
def check(file: str, format_type: str) -> None:
    """Check an exported FILE, and show what it contains. Needs no server."""
    from bough.client.history_export import check_export  # noqa: PLC0415  help needs none of it

    echo(check_export(Path(file)), format_type, _read)


def _written(done: HistoryExport) -> str:
    text = f"{count(done.workflows, 'workflow')} that ended before {done.until} "
    text += f"{'is' if done.workflows == 1 else 'are'} written to {printable(done.file)}."
    if done.dropped:
        text += f"\n{done.dropped} of them were dropped on the server."
    return text


def _read(found: HistoryExport) -> str:
    text = f"{printable(found.file)} is whole: {count(found.workflows, 'workflow')} that ended "
    text += f"before {found.until}"
    if found.first is None:
        return f"{text}."
    return f"{text}, from {printable(found.first)} to {printable(found.last or '')}."


def _progress() -> Callable[[int], None]:
    """Says on a terminal how many are written; programs see nothing of it."""

    def tell(written: int) -> None:
        if sys.stderr.isatty():
            click.echo(f"{written} workflows", err=True)

    return tell
