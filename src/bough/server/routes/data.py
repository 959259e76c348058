"""The data of pools: listing, reading and writing files.

`bough.api.pool_data` explains how files are written.
"""

from __future__ import annotations

import hashlib

from litestar.params import FromPath, FromQuery, JSONBody, RawBody

from bough.api.pool_data import (
    MOST_ENTRIES,
    DataChanged,
    DataFileEntry,
    DataPage,
    DataPart,
    DataUsageAnswer,
    DraftFiles,
    MissingContents,
    PublishDraft,
    read_parts,
)
from bough.control.workflows.pool_data import PoolFiles
from bough.errors import Invalid
from bough.model.access import Action
from bough.model.pool_data import ContentPart, DataEntry
from bough.server.loop_view import LoopView
from bough.server.permissions import Scope
from bough.server.route_declaration import Limit, Offset, Visit, caller, route
from bough.server.values import time_text

_DATA = "/api/pool/{pool:str}/data"
_DRAFT = f"{_DATA}/draft/{{draft:str}}"
#: How many parts one user may read or write at the same time.
PARTS = 4


@route("GET", _DATA, Action.DATA_READ, Scope.POOL)
def list_data(
    request: Visit,
    pool: FromPath[str],
    path: FromQuery[str] = "",
    after: FromQuery[str] = "",
    limit: Limit = 1_000,
) -> DataPage:
    """A page of a pool's files at and below a path, in order, after a given file."""
    files = _files(request, pool, Action.DATA_READ)
    found = files.files(path, after, limit)
    entries = [
        DataFileEntry(
            path=each.path,
            size_bytes=each.size_bytes,
            sha256=each.sha256,
            modify_time=time_text(each.stored_ms) or "",
            owner=each.owner,
            kept_until=time_text(each.until_ms) or "",
            executable=each.executable,
        )
        for each in found.files
    ]
    return DataPage(files.pool, entries, found.more)


@route("GET", f"{_DATA}/part", Action.DATA_READ, Scope.POOL, at_once=PARTS)
def read_data(
    request: Visit,
    pool: FromPath[str],
    path: FromQuery[str],
    offset: Offset = 0,
    version: FromQuery[str | None] = None,
) -> DataPart:
    """Part of a file, starting at an offset, with its checksum.

    A file whose checksum is not the version any more is refused.
    """
    file, content = _files(request, pool, Action.DATA_READ).part(path, offset, version)
    return DataPart(
        offset=offset,
        content=content,
        sha256=hashlib.sha256(content).hexdigest(),
        size_bytes=file.size_bytes,
        version=file.sha256,
    )


@route("GET", f"{_DATA}/usage", Action.DATA_READ, Scope.POOL)
def data_usage(request: Visit, pool: FromPath[str]) -> DataUsageAnswer:
    """How much data a pool has, and its limit."""
    files = _files(request, pool, Action.DATA_READ)
    found = files.usage()
    return DataUsageAnswer(files.pool, found.files, found.used_bytes, found.quota_bytes)


@route("POST", _DRAFT, Action.DATA_WRITE, Scope.POOL)
def draft_data(
    request: Visit, pool: FromPath[str], draft: FromPath[str], data: JSONBody[DraftFiles]
) -> MissingContents:
    """Add files to a draft by checksum; lists the contents that must still be uploaded."""
    if len(data.files) > MOST_ENTRIES:
        raise Invalid(f"One request adds at most {MOST_ENTRIES:,} files to a draft.")
    entries = [
        DataEntry(each.path, each.sha256, each.size_bytes, each.executable, each.modified_ns)
        for each in data.files
    ]
    return MissingContents(dict(_files(request, pool, Action.DATA_WRITE).draft(draft, entries)))


@route("POST", f"{_DATA}/contents", Action.DATA_WRITE, Scope.POOL, at_once=PARTS, binary=True)
def send_data(request: Visit, pool: FromPath[str], body: RawBody) -> MissingContents:
    """Upload contents for drafts, whole or in parts; lists those still incomplete."""
    files = _files(request, pool, Action.DATA_WRITE)
    try:
        parts = [ContentPart(*each) for each in read_parts(body)]
    except ValueError as error:
        raise Invalid(f"The contents cannot be read: {error}.", hint="send them again") from None
    return MissingContents(dict(files.receive(parts)))


@route("POST", f"{_DRAFT}/publish", Action.DATA_WRITE, Scope.POOL)
def publish_data(
    request: Visit, pool: FromPath[str], draft: FromPath[str], data: JSONBody[PublishDraft]
) -> DataChanged:
    """Publish all files of a draft at once, below a path."""
    return DataChanged(_files(request, pool, Action.DATA_WRITE).publish(draft, data.path))


@route("DELETE", _DATA, Action.DATA_WRITE, Scope.POOL)
def delete_data(request: Visit, pool: FromPath[str], path: FromQuery[str]) -> DataChanged:
    """Delete a file or a folder from a pool's data."""
    if not path:
        raise Invalid("Say which file or folder is removed; all of a pool's data is never.")
    return DataChanged(_files(request, pool, Action.DATA_WRITE).delete(path))


def _files(request: Visit, pool: str, action: Action) -> PoolFiles:
    site, actor = caller(request)
    engine: LoopView = request.app.state.engine
    return PoolFiles(site, engine.backends, actor, pool, action)


HANDLERS = (
    list_data,
    read_data,
    data_usage,
    draft_data,
    send_data,
    publish_data,
    delete_data,
)
