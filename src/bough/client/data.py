"""The data of pools on a server: `bough://POOL/path`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bough.api.pool_data import (
    DataChanged,
    DataFileEntry,
    DataPage,
    DataPart,
    DataUsageAnswer,
    DraftEntry,
    DraftFiles,
    MissingContents,
    PublishDraft,
    SentPart,
    write_part,
)
from bough.client.addresses import given, path_of
from bough.client.transport import Transport
from bough.errors import Invalid

SCHEME = "bough://"


class DataAddress(NamedTuple):
    """A pool, and a path in its data."""

    pool: str
    path: str

    def __str__(self) -> str:
        return f"{SCHEME}{self.pool}/{self.path}"


def read_data_address(url: str) -> DataAddress:
    """Parse `bough://POOL/path`."""
    if not url.startswith(SCHEME):
        raise Invalid(
            f"{url[:200]!r} is not a URL of a pool's data, like bough://POOL/path.",
            hint="URLs of object stores begin with s3://, gs:// or azure://",
        )
    pool, _, path = url.removeprefix(SCHEME).partition("/")
    if not pool:
        raise Invalid(f"{url[:200]!r} names no pool; write bough://POOL/path.")
    return DataAddress(pool, path.removesuffix("/"))


class PoolData:
    """Files that live with pools."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def page(self, address: DataAddress, *, after: str = "", limit: int = 1_000) -> DataPage:
        """Some of the files at and below a path, in order."""
        query = {"path": address.path, "limit": limit, **given(after=after or None)}
        return self._transport.get(DataPage, path_of("pool", address.pool, "data"), query)

    def files(self, address: DataAddress) -> Iterator[DataFileEntry]:
        """All files at and below a path, in order."""
        after, more = "", True
        while more:
            page = self.page(address, after=after)
            yield from page.files
            after = page.files[-1].path if page.files else ""
            more = page.more_entries and bool(page.files)

    def part(self, address: DataAddress, *, offset: int, version: str | None = None) -> DataPart:
        """A part of a file."""
        query = {"path": address.path, "offset": offset, **given(version=version)}
        path = path_of("pool", address.pool, "data", "part")
        return self._transport.get(DataPart, path, query)

    def usage(self, pool: str) -> DataUsageAnswer:
        """How much data a pool has, and may have."""
        return self._transport.get(DataUsageAnswer, path_of("pool", pool, "data", "usage"))

    def delete(self, address: DataAddress) -> DataChanged:
        """Remove a file or a folder."""
        path = path_of("pool", address.pool, "data")
        return self._transport.send(DataChanged, "DELETE", path, query={"path": address.path})

    def draft(self, pool: str, draft: str, files: Sequence[DraftEntry]) -> dict[str, int]:
        """Add files to a draft; returns the missing contents, with the bytes received of each."""
        path = path_of("pool", pool, "data", "draft", draft)
        sent = DraftFiles(list(files))
        return self._transport.send(MissingContents, "POST", path, sent).missing

    def send(self, pool: str, parts: Sequence[SentPart]) -> dict[str, int]:
        """Send contents, or parts of them; returns the incomplete ones."""
        path = path_of("pool", pool, "data", "contents")
        content = b"".join(map(write_part, parts))
        return self._transport.send_content(MissingContents, path, content).missing

    def publish(self, address: DataAddress, draft: str) -> DataChanged:
        """Write all files of a draft at once, below a path."""
        path = path_of("pool", address.pool, "data", "draft", draft, "publish")
        return self._transport.send(DataChanged, "POST", path, PublishDraft(address.path))
