"""`bough data`: files that live with a pool, `bough://POOL/path`, or in an object store."""

from __future__ import annotations

import importlib
import importlib.util
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bough.cli.command import CommandGroup
from bough.cli.exit_codes import INTERRUPTED
from bough.cli.options import format_option
from bough.cli.output import count, echo, printable
from bough.cli.screen import utc_option
from bough.cli.server_commands import client
from bough.cli.text.data import render_downloaded, render_listing, render_objects, render_sent
from bough.cli.transfers import (
    end_progress,
    find_uploads,
    tell_bytes,
    tell_download,
    tell_upload,
)
from bough.errors import Invalid

if TYPE_CHECKING:
    from bough.client.uploads import FolderFiles

#: The schemes of object stores. What is asked of one needs no server.
_SCHEMES = ("s3", "gs", "azure")
_url_argument = click.argument("url", metavar="URL")


@click.group(cls=CommandGroup)
def data() -> None:
    """Data in pools and object stores: list, upload, download, delete.

    A URL is bough://POOL/path, or s3://, gs:// or azure://, with keys from the environment:
    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL, or AZURE_STORAGE_KEY.
    """


@data.command("list")
@_url_argument
@click.option(
    "--count",
    "-c",
    "most",
    type=click.IntRange(1, 1_000_000),
    default=1_000,
    show_default=True,
    help="How many files to show.",
)
@utc_option
@format_option
def list_data(url: str, most: int, format_type: str) -> None:
    """List the files at and below a path, and how full the pool is."""
    if _is_store(url):
        echo(_store_data().list_url(url, most), format_type, render_objects)
        return
    from bough.api.pool_data import DataListing  # noqa: PLC0415  other commands need none
    from bough.client.data import read_data_address  # noqa: PLC0415

    address = read_data_address(url)
    asked = client().data
    found = list(islice(asked.files(address), most + 1))
    usage = asked.usage(address.pool)
    listing = DataListing(
        usage.pool, found[:most], len(found) > most, usage.used_bytes, usage.quota_bytes
    )
    echo(listing, format_type, render_listing)


@data.command()
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@_url_argument
@click.option("--gitignore", is_flag=True, help="Skip .git, and files that .gitignore excludes.")
@format_option
def upload(source: Path, url: str, gitignore: bool, format_type: str) -> None:
    """Upload a file or the contents of a folder.

    A file is stored at the URL, or under its own name if the URL ends with a slash. Contents that
    the pool already has are not sent, and an interrupted upload resumes where it stopped. All files
    become visible at once, when the upload is complete.
    """
    from bough.client.data import read_data_address  # noqa: PLC0415
    from bough.client.uploads import Upload  # noqa: PLC0415

    if _is_store(url):
        found = find_uploads(source, respect_ignored=gitignore)
        done = _upload_to_store(source, url, found)
        end_progress()
        echo(done, format_type, render_sent)
        return
    address = read_data_address(url)
    found = find_uploads(source, respect_ignored=gitignore)
    if source.is_file() and address.path and not url.endswith("/"):
        above, _, name = address.path.rpartition("/")
        found = found._replace(files=[each._replace(path=name) for each in found.files])
        address = address._replace(path=above)
    if not found.files:
        raise click.UsageError(f"There is no file in {printable(str(source))}.")
    done = Upload(client().data, found, tell=tell_upload()).send(address)
    end_progress()
    echo(done, format_type, render_sent)


@data.command()
@_url_argument
@click.option(
    "--output",
    "-o",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="The folder to write to (default: the current folder).",
)
@click.option("--overwrite", is_flag=True, help="Overwrite existing files that differ.")
@format_option
def download(url: str, folder: Path, overwrite: bool, format_type: str) -> None:
    """Download a file or the contents of a folder.

    Files that you already have are skipped, and an interrupted download resumes where it
    stopped.
    """
    if _is_store(url):
        tell = tell_bytes("received")
        done = _store_data().download_url(url, folder, overwrite=overwrite, tell=tell)
        end_progress()
        echo(done, format_type, render_downloaded)
        return
    from bough.client.data import read_data_address  # noqa: PLC0415
    from bough.client.downloads import DataDownload  # noqa: PLC0415

    address = read_data_address(url)
    work = DataDownload(client().data, address, folder, overwrite=overwrite, tell=tell_download())
    done = work.fetch()
    if done.files:
        end_progress()
    echo(done, format_type, render_downloaded)


@data.command()
@_url_argument
@click.option("--force", "-f", is_flag=True, help="Do not ask for confirmation.")
@format_option
@click.pass_context
def delete(context: click.Context, url: str, force: bool, format_type: str) -> None:
    """Delete a file, or a folder with everything below it."""
    from bough.client.data import read_data_address  # noqa: PLC0415

    address = None if _is_store(url) else read_data_address(url)
    question = f"Delete {printable(url)} with all that is below it?"
    if not force and not click.confirm(question, err=True):
        context.exit(INTERRUPTED)
    done = _store_data().delete_url(url) if address is None else client().data.delete(address)
    echo(done, format_type, lambda each: f"{count(each.files, 'file')} deleted.")


def _is_store(url: str) -> bool:
    """Whether a URL names an object store."""
    return url.partition("://")[0].lower() in _SCHEMES


def _store_data() -> Any:
    """The module `bough.object_stores.user_data`, imported when a command runs and not before."""
    if importlib.util.find_spec("obstore") is None:
        raise Invalid("Object stores need the library obstore: pip install obstore")
    return importlib.import_module("bough.object_stores.user_data")


def _upload_to_store(source: Path, url: str, found: FolderFiles) -> Any:
    """Upload a file or a folder; a file gets the path of the URL, or its own name below it."""
    if not found.files:
        raise click.UsageError(f"There is no file in {printable(str(source))}.")
    files = [(each.path, each.place) for each in found.files]
    above, _, name = url.rpartition("/")
    if source.is_file() and name and above.count("/") > 2:
        url, files = above, [(name, files[0][1])]
    return _store_data().upload_files(files, url, found.left_out, tell_bytes("sent"))
