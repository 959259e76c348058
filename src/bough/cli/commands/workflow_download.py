"""`bough workflow download`: what tasks left behind, to this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bough.cli.command import Command
from bough.cli.options import format_option
from bough.cli.output import count, echo
from bough.cli.server_commands import client
from bough.cli.server_names import id_argument

if TYPE_CHECKING:
    from bough.api.results import Downloaded
    from bough.client.downloads import DownloadProgress

_MEBIBYTE = 1 << 20


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
    help="The folder to write to (default: one named like the workflow, here).",
)
@click.option("--overwrite", is_flag=True, help="Replace files that are there and are different.")
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

    What they left in {{output}}: that of TASK, only the file or folder PATH of it, or that of every
    task, each in a folder of its own. Files that are there already are not sent again, and a
    download that was cut off goes on where it ended.
    """
    from bough.client.downloads import Download  # noqa: PLC0415  other commands need none

    asked = client()
    tell = _tell if sys.stderr.isatty() else lambda _: None
    chosen = folder or Path(name)
    work = Download(asked.workflows, name, chosen, overwrite=overwrite, tell=tell)
    done = work.fetch(task, None if path is None else path.strip("/"))
    if sys.stderr.isatty() and done.files:
        click.echo("", err=True)
    echo(done, format_type, _render)


def _tell(progress: DownloadProgress) -> None:
    text = (
        f"{progress.files} of {count(progress.of_files, 'file')}, "
        f"{progress.bytes // _MEBIBYTE:,} of {progress.of_bytes // _MEBIBYTE:,} MiB"
    )
    click.echo(f"\r{text}\x1b[K", nl=False, err=True)


def _render(done: Downloaded) -> str:
    text = f"{count(done.files, 'file')}, {done.bytes:,} bytes, in {done.folder}"
    if done.unchanged:
        text += f"; {done.unchanged} there already"
    if done.left_out:
        text += f"; {count(done.left_out, 'link')} or the like left out"
    return text
