"""What `bough data` does with URLs of object stores, on the user's machine with the user's keys.

The keys come from the environment variables that other programs for these stores read, too. No
server is asked: the credentials that it keeps for users never leave it.
"""

# Types are checked without the library as well, which only servers need.
# pyright: reportMissingImports=false

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC
from itertools import islice
from pathlib import Path

from bough.api.pool_data import DataChanged, StoreEntry, StoreListing, Transferred
from bough.api.results import Downloaded
from bough.errors import Conflict, Invalid, NotFound
from bough.model.object_store import (
    AZURE,
    StoreCredential,
    StoreUrl,
    read_store_credential,
    read_store_url,
    store_url_fault,
)
from bough.object_stores.downloading import Fetch, is_fetched
from bough.object_stores.failures import telling
from bough.object_stores.listing import StoreObject, iterate_objects, list_objects
from bough.object_stores.opening import open_store
from bough.object_stores.uploading import FileToSend, Sending

_MOST = 1_000_000
#: The parts of a credential and the variables that hold them; the first that is set counts.
_AMAZON = {
    "access_key_id": ("AWS_ACCESS_KEY_ID",),
    "access_key": ("AWS_SECRET_ACCESS_KEY",),
    "session_token": ("AWS_SESSION_TOKEN",),
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "override_url": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
}
_AZURE = {
    "access_key": ("AZURE_STORAGE_KEY", "AZURE_STORAGE_CONNECTION_STRING"),
    "override_url": ("AZURE_STORAGE_SERVICE_ENDPOINT",),
}


def list_url(text: str, most: int) -> StoreListing:
    """The objects at and below a URL, as the store orders them."""
    url, credential = _open(text)
    found = list(islice(iterate_objects(open_store(url, credential), url), most + 1))
    entries = [
        StoreEntry(each.key, each.size_bytes, each.modified.astimezone(UTC).isoformat())
        for each in found[:most]
    ]
    return StoreListing(str(url), entries, len(found) > most)


def upload_files(
    files: Iterable[tuple[str, Path]], text: str, left_out: int, tell: Callable[[int], None]
) -> Transferred:
    """Upload files, each to its path below the URL; resumes an interrupted upload."""
    url, credential = _open(text)
    given = list(files)
    sent = Sending(url, credential, _journal(url), tell).send(
        FileToSend(name, _opener(path)) for name, path in given
    )
    size = sum(path.stat().st_size for _, path in given)
    left_out += len(sent.changed)
    return Transferred(str(url), len(given) - len(sent.changed), size, sent.bytes, left_out)


def download_url(
    text: str, folder: Path, *, overwrite: bool, tell: Callable[[int], None]
) -> Downloaded:
    """Download everything at and below a URL to a folder; files that are there already stay."""
    url, credential = _open(text)
    found = list_objects(open_store(url, credential), url, _MOST)
    if not found:
        raise NotFound(f"{url} does not exist.")
    missing = [each for each in found if not is_fetched(folder / each.name, each)]
    if not overwrite:
        _check_free(folder, missing)
    folder.mkdir(parents=True, exist_ok=True)
    Fetch(url, credential, folder).fetch(missing, tell)
    size = sum(each.size_bytes for each in missing)
    return Downloaded(str(folder), len(missing), size, len(found) - len(missing), 0)


def delete_url(text: str) -> DataChanged:
    """Remove everything at and below a URL."""
    import obstore  # noqa: PLC0415  needed by few commands

    url, credential = _open(text)
    store = open_store(url, credential)
    if not credential.signs:
        raise Invalid(f"{url} cannot be deleted without a key; {_where(url)}")
    keys = [each.key for each in islice(iterate_objects(store, url), _MOST)]
    if not keys:
        raise NotFound(f"{url} does not exist.")
    with telling(str(url), "deleted"):
        for key in keys:
            obstore.delete(store, key)
    return DataChanged(len(keys))


def credential_of(url: StoreUrl, environment: Mapping[str, str]) -> StoreCredential:
    """The credential for a URL from the environment; without keys, requests are not signed."""
    parts = {"endpoint": f"{url.scheme}://{url.container}"}
    for part, names in (_AZURE if url.scheme == AZURE else _AMAZON).items():
        given = next((environment[name] for name in names if environment.get(name)), None)
        if given is not None:
            parts[part] = given
    credential = read_store_credential(parts)
    if isinstance(credential, str):
        raise Invalid(f"What the environment has for {url} {credential}; {_where(url)}")
    return credential


def _open(text: str) -> tuple[StoreUrl, StoreCredential]:
    fault = store_url_fault(text)
    url = read_store_url(text)
    if fault is not None or url is None:
        raise Invalid(f"{text[:200]!r} is not possible: {fault}.")
    return url, credential_of(url, os.environ)


def _where(url: StoreUrl) -> str:
    names = (_AZURE if url.scheme == AZURE else _AMAZON).values()
    return "set " + ", ".join(each[0] for each in names)


def _check_free(folder: Path, objects: Iterable[StoreObject]) -> None:
    for each in objects:
        if os.path.lexists(folder / each.name):
            raise Conflict(
                f"{folder / each.name} is there and is different.", hint="--overwrite replaces it"
            )


def _journal(url: StoreUrl) -> Path:
    """The journal in which uploads to a URL note their progress."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache, "bough", "uploads", hashlib.sha256(str(url).encode()).hexdigest()[:32])


def _opener(path: Path) -> Callable[[], int | None]:
    def opened() -> int | None:
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None

    return opened
