"""What commands on object stores have in common. They need no server."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bough.cli.output import printable
from bough.cli.transfers import tell_bytes
from bough.errors import Invalid

if TYPE_CHECKING:
    from bough.client.uploads import FolderFiles

_SCHEMES = ("s3", "gs", "azure")


def is_store(url: str) -> bool:
    """Whether a URL names an object store."""
    return url.partition("://")[0].lower() in _SCHEMES


def store_data() -> Any:
    """The module `bough.stores.user_data`, imported when a command runs and not before."""
    if importlib.util.find_spec("obstore") is None:
        raise Invalid("Object stores need the library obstore: pip install obstore")
    return importlib.import_module("bough.stores.user_data")


def upload_to_store(source: Path, url: str, found: FolderFiles) -> Any:
    """Upload a file or a folder; a file gets the path of the URL, or its own name below it."""
    if not found.files:
        raise click.UsageError(f"There is no file in {printable(str(source))}.")
    files = [(each.path, each.place) for each in found.files]
    above, _, name = url.rpartition("/")
    if source.is_file() and name and above.count("/") > 2:
        url, files = above, [(name, files[0][1])]
    return store_data().upload_files(files, url, found.left_out, tell_bytes("sent"))
