"""`bough workflow download`: what tasks left behind, to this machine."""

from __future__ import annotations

from pathlib import Path

import click

from bough.cli.command import Command
from bough.cli.name_arguments import id_argument
from bough.cli.options import format_option
from bough.cli.output import echo
from bough.cli.server_commands import client
from bough.cli.text.data import render_downloaded
from bough.cli.transfers import end_progress, tell_download


@click.command(cls=Command)
@id_argument
@click.argument("task", required=False)
@click.argument("path", required=False)
@click.option(
    "--output",
    "-o",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder to write to (default: ./ID).",
)
@click.option("--overwrite", is_flag=True, help="Overwrite existing files that differ.")
@format_option
def download(
    name: str,
    task: str | None,
    path: str | None,
    folder: Path | None,
    overwrite: bool,
    format_type: str,
) -> None:
    """Download the results of completed tasks.

    Results are the files in {{output}}. Downloads those of every task, each to a folder of its own;
    with TASK, those of one task; with PATH, one file or folder of it. Files that you already have
    are skipped, and an interrupted download resumes where it stopped.
    """
    from bough.client.downloads import Download  # noqa: PLC0415  other commands need none

    asked = client()
    chosen = folder or Path(name)
    work = Download(asked.workflows, name, chosen, overwrite=overwrite, tell=tell_download())
    done = work.fetch(task, None if path is None else path.strip("/"))
    if done.files:
        end_progress()
    echo(done, format_type, render_downloaded)
