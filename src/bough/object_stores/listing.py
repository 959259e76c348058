"""The objects at and below a URL, by the names that their files get."""

# Types are checked without the library as well, which only servers need.
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from bough.model.object_store import StoreUrl
from bough.model.pool_data import data_path_fault
from bough.object_stores.failures import StoreFailed, telling

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

_PAGE = 1_000


class StoreObject(NamedTuple):
    """An object."""

    key: str
    #: Its path below the URL; an object that the URL itself names keeps its last part.
    name: str
    size_bytes: int
    #: Its version, without the quotes that some stores write around it only sometimes.
    etag: str
    modified: datetime


def list_objects(store: ObjectStore, url: StoreUrl, most: int) -> list[StoreObject]:
    """All objects at and below a URL, by name; refuses more than the limit."""
    found: list[StoreObject] = []
    for each in iterate_objects(store, url):
        found.append(each)
        if len(found) > most:
            raise StoreFailed(f"{url} has more than {most:,} objects, the most that are copied")
    return _without_folders(url, sorted(found, key=lambda each: each.name))


def iterate_objects(store: ObjectStore, url: StoreUrl) -> Iterator[StoreObject]:
    """Yield the objects at and below a URL in the store's order."""
    import obstore  # noqa: PLC0415  needed by few tasks

    some = False
    with telling(str(url), "listed"):
        for page in obstore.list(store, url.path or None, chunk_size=_PAGE):
            for each in page:
                some = True
                yield _object(each, url)
        if some or not url.path:
            return
        try:
            alone = obstore.head(store, url.path)
        except FileNotFoundError:
            return
    yield _object(alone, url)


def _object(meta: ObjectMeta, url: StoreUrl) -> StoreObject:
    key = meta["path"]
    if key == url.path:
        name = key.rpartition("/")[2]
    else:
        name = key[len(url.path) + 1 :] if url.path else key
    return StoreObject(key, name, meta["size"], plain_etag(meta["e_tag"]), meta["last_modified"])


def plain_etag(etag: str | None) -> str:
    """The version of an object without quotes; empty: the store does not say."""
    return (etag or "").strip('"')


def _without_folders(url: StoreUrl, objects: list[StoreObject]) -> list[StoreObject]:
    """Without empty objects that stand for folders; an object cannot be both file and folder."""
    folders: set[str] = set()
    for each in objects:
        fault = data_path_fault(each.name)
        if fault is not None:
            raise StoreFailed(f"{url}: the object {each.key[:200]!r} can be no file: {fault}")
        above = each.name
        while "/" in above:
            above = above.rpartition("/")[0]
            folders.add(above)
    kept = [each for each in objects if each.name not in folders or each.size_bytes]
    for each in kept:
        if each.name in folders:
            raise StoreFailed(
                f"{url}: {each.key[:200]!r} is an object, and there are others below it; no folder "
                "can have both"
            )
    return kept
