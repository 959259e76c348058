"""Uploads of projects, and the progress of transfers on one line of the terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bough.cli.output import count, printable
from bough.cli.text.data import render_sent
from bough.errors import Invalid

if TYPE_CHECKING:
    from bough.client import Client
    from bough.client.downloads import DownloadProgress
    from bough.client.uploads import FolderFiles, UploadProgress

#: The folder of projects in the data of a pool.
UPLOADS = "uploads"
_FOLDER = "bough.upload"
_MEBIBYTE = 1 << 20
#: How many files to read between two updates of the terminal.
_EVERY = 100


def _keep(context: click.Context, _: click.Parameter, folder: Path | None) -> None:
    context.meta[_FOLDER] = folder


#: The folder for `upload_project`; commands need not look at it.
upload_option = click.option(
    "--upload",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    expose_value=False,
    callback=_keep,
    help="Upload a folder, without files that .gitignore excludes, to every task's working folder.",
)


def upload_project(asked: Client, pool: str, format_type: str) -> dict[str, str]:
    """Upload the option's folder to the data of a pool; returns how a submission names it.

    Only changes are sent. Equal folders are uploaded once, whatever their names.
    """
    folder: Path | None = click.get_current_context().meta.get(_FOLDER)
    if folder is None:
        return {}
    from bough.client.data import DataAddress  # noqa: PLC0415  other commands need none
    from bough.client.uploads import Upload  # noqa: PLC0415

    found = find_uploads(folder, respect_ignored=True)
    if not found.files:
        raise Invalid(f"There is nothing to upload in {folder}.")
    work = Upload(asked.data, found, tell=tell_upload())
    address = DataAddress(pool, f"{UPLOADS}/{work.digest()[:32]}")
    done = work.send(address)
    end_progress()
    if format_type == "text":
        click.echo(render_sent(done), err=True)
    return {"upload": str(address)}


def find_uploads(source: Path, *, respect_ignored: bool) -> FolderFiles:
    """The files to upload; warns of a server's data folder among them, which is left out."""
    from bough.client.uploads import find_files  # noqa: PLC0415  other commands need none

    found = find_files(source, respect_ignored=respect_ignored)
    for each in found.data_folders:
        text = f"warning: {each} is left out: it is the data folder of a Bough server."
        click.echo(printable(text), err=True)
    return found


def tell_download() -> Callable[[DownloadProgress], None]:
    """Shows the progress of a download, if there is a terminal."""

    def tell(progress: DownloadProgress) -> None:
        _line(
            f"{progress.files} of {count(progress.of_files, 'file')}, "
            f"{progress.bytes // _MEBIBYTE:,} of {progress.of_bytes // _MEBIBYTE:,} MiB"
        )

    return tell if sys.stderr.isatty() else lambda _: None


def tell_bytes(done: str) -> Callable[[int], None]:
    """Shows how many bytes of a store were transferred, if there is a terminal."""
    lock = threading.Lock()
    total = 0

    def tell(more: int) -> None:
        nonlocal total
        with lock:
            total += more
            _line(f"{total // _MEBIBYTE:,} MiB {done}")

    return tell if sys.stderr.isatty() else lambda _: None


def tell_upload() -> Callable[[UploadProgress], None]:
    """Shows the progress of an upload, if there is a terminal."""

    def tell(progress: UploadProgress) -> None:
        if progress.of_bytes:
            sent, total = progress.sent_bytes // _MEBIBYTE, progress.of_bytes // _MEBIBYTE
            _line(f"{sent:,} of {total:,} MiB sent")
        elif progress.read % _EVERY == 0 or progress.read == progress.of_files:
            _line(f"{progress.read:,} of {count(progress.of_files, 'file')} read")

    return tell if sys.stderr.isatty() else lambda _: None


def end_progress() -> None:
    """End the progress line, so that further output begins on a new one."""
    if sys.stderr.isatty():
        click.echo("", err=True)


def _line(text: str) -> None:
    click.echo(f"\r{text}\x1b[K", nl=False, err=True)
