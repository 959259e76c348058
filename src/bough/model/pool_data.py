"""The data of pools: files that live with a pool, as `bough://POOL/path`.

Contents are named by their checksums. A set of files is written as a draft: first its names and
checksums, then the contents that are missing, then all of it becomes visible at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

SCHEME = "bough"
LONGEST_PART = 255
LONGEST_PATH = 1_024
#: The most files in one draft.
MOST_FILES = 100_000
#: Defaults for pools that do not set their own.
QUOTA_BYTES = 100 << 30
KEEP_S = 30 * 86_400


class DataUrl(NamedTuple):
    """The pool and path of `bough://POOL/path`; an empty path is all data of the pool."""

    pool: str
    path: str

    def __str__(self) -> str:
        return f"{SCHEME}://{self.pool}/{self.path}"


class PoolSpace(msgspec.Struct, frozen=True):
    """The data of one pool, with its quota and how long files are kept."""

    #: The uuid of the pool, which is never reused.
    pool: str
    quota_bytes: int = QUOTA_BYTES
    keep_s: int = KEEP_S
    #: For messages.
    name: str = ""


class DataEntry(msgspec.Struct, frozen=True):
    """A file to write, by the checksum of its content."""

    path: str
    sha256: str
    size_bytes: int
    executable: bool = False
    #: When the file was last modified where it came from.
    modified_ns: int = 0


class DataFile(msgspec.Struct, frozen=True):
    """A file of a pool."""

    path: str
    size_bytes: int
    sha256: str
    executable: bool
    modified_ns: int
    #: When it was written here, by which user.
    stored_ms: int
    owner: str
    #: When it is removed, unless it is written or used again.
    until_ms: int


class DataFiles(NamedTuple):
    """Files of a pool, in the order of their paths."""

    files: tuple[DataFile, ...]
    more: bool


class DataUsage(msgspec.Struct, frozen=True):
    """How much data a pool has; equal contents count once."""

    files: int
    used_bytes: int
    quota_bytes: int


class ContentPart(NamedTuple):
    """An uploaded part of a content; a small content is one part."""

    sha256: str
    #: Of the whole content.
    size_bytes: int
    offset: int
    content: bytes


class PoolDataStore(Protocol):
    """Keeps the data of pools."""

    def draft(
        self, space: PoolSpace, draft: str, entries: Sequence[DataEntry]
    ) -> Mapping[str, int]:
        """Add files to a draft; returns the missing contents, with the bytes received of each."""
        ...

    def receive(self, space: PoolSpace, parts: Iterable[ContentPart]) -> Mapping[str, int]:
        """Keep parts of contents that drafts name; returns the incomplete ones likewise."""
        ...

    def publish(self, space: PoolSpace, draft: str, below: str, owner: str) -> int:
        """Make all files of a draft visible at once, below a path; returns how many."""
        ...

    def list_files(self, space: PoolSpace, path: str, after: str, limit: int) -> DataFiles:
        """List files at and below a path, after one of them, up to a limit."""
        ...

    def read_part(
        self, space: PoolSpace, path: str, offset: int, limit: int
    ) -> tuple[DataFile, bytes] | None:
        """A part of a file; `None`: there is no such file."""
        ...

    def delete(self, space: PoolSpace, path: str) -> int:
        """Remove the file or the folder at a path; returns how many files."""
        ...

    def usage(self, space: PoolSpace) -> DataUsage:
        """How much there is."""
        ...

    def clean(self, spaces: Iterable[PoolSpace]) -> int:
        """Remove expired files, and contents that nothing needs; returns how many files."""
        ...


@runtime_checkable
class PoolDataKeeper(Protocol):
    """A backend that keeps the data of its pools."""

    @property
    def pool_data(self) -> PoolDataStore:
        """The data of its pools."""
        ...


def read_data_url(url: str) -> DataUrl | None:
    """Parse a URL of a pool's data; `None`: it is another URL."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() != SCHEME:
        return None
    pool, _, path = rest.partition("/")
    return DataUrl(pool, path.removesuffix("/"))


def data_path_fault(path: str) -> str | None:
    """What is wrong with the path of a file in a pool's data; `None`: nothing is."""
    parts = path.split("/")
    if any(each in ("", ".", "..") for each in parts):
        return 'no part of it can be empty, "." or ".."'
    if not path.isprintable():
        return "it contains characters that cannot be shown"
    encoded = [len(each.encode(errors="replace")) for each in parts]
    if max(encoded) > LONGEST_PART:
        return f"a part of it is longer than {LONGEST_PART} bytes"
    if sum(encoded) + len(encoded) > LONGEST_PATH:
        return f"it is longer than {LONGEST_PATH} bytes"
    return None
