"""The data of pools, `bough://POOL/path`: listing, reading and writing files.

Files are written in three steps. A draft lists the files with the checksums of their contents; the
answer says which contents are missing. These are uploaded, several small ones or one part of a
large one per request. Then the draft is published, and all its files become visible at once.

The body of an upload is a sequence of parts, each a header of `PART_HEAD` bytes followed by its
bytes. Numbers are big-endian:

    32  SHA-256 of the whole content
     8  the size of the whole content
     8  where this part begins
     4  the size of this part
    32  SHA-256 of this part
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

_HEAD = struct.Struct(">32sQQI32s")
PART_HEAD = _HEAD.size
#: The most bytes in one upload request, headers included.
MOST_BYTES = 8_000_000
#: The most files that one request adds to a draft.
MOST_ENTRIES = 5_000


class DataFileEntry(msgspec.Struct, frozen=True):
    """A file of a pool."""

    path: str
    size_bytes: int
    sha256: str
    modify_time: str
    owner: str
    #: When it is removed, unless it is written or used by a task again.
    kept_until: str
    executable: bool = False


class DataPage(msgspec.Struct, frozen=True):
    """Files of a pool, in the order of their paths."""

    #: The pool that the data belongs to; for a subpool the one above it.
    pool: str
    files: list[DataFileEntry]
    more_entries: bool


class DataPart(msgspec.Struct, frozen=True):
    """A part of a file."""

    offset: int
    #: In base64, as JSON has it.
    content: bytes
    #: Of this part.
    sha256: str
    #: Of the whole file.
    size_bytes: int
    version: str


class DataUsageAnswer(msgspec.Struct, frozen=True):
    """How much data a pool has; equal contents count once."""

    pool: str
    files: int
    used_bytes: int
    quota_bytes: int


class DataListing(msgspec.Struct, frozen=True):
    """Files of a pool and how full the pool is, as the command line shows them."""

    pool: str
    files: list[DataFileEntry]
    more_entries: bool
    used_bytes: int
    quota_bytes: int


class StoreEntry(msgspec.Struct, frozen=True):
    """An object of a store."""

    path: str
    size_bytes: int
    modify_time: str


class StoreListing(msgspec.Struct, frozen=True):
    """Objects of a store, as the command line shows them."""

    url: str
    files: list[StoreEntry]
    more_entries: bool


class DraftEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file to write."""

    path: str
    sha256: str
    size_bytes: int
    executable: bool = False
    modified_ns: int = 0


class DraftFiles(msgspec.Struct, frozen=True):
    """Files of a draft."""

    files: list[DraftEntry]


class MissingContents(msgspec.Struct, frozen=True):
    """Contents that are missing, by checksum, with the bytes of each received so far."""

    missing: dict[str, int]


class PublishDraft(msgspec.Struct, frozen=True):
    """The path below which to write the files of a draft."""

    path: str = ""


class DataChanged(msgspec.Struct, frozen=True):
    """How many files were written or removed."""

    files: int


class SentPart(NamedTuple):
    """A part of a content."""

    sha256: str
    size_bytes: int
    offset: int
    content: bytes


class Transferred(msgspec.Struct, frozen=True):
    """What an upload did."""

    url: str
    files: int
    bytes: int
    #: Sent now; the rest was there already.
    sent_bytes: int
    left_out: int = 0


def write_part(part: SentPart) -> bytes:
    """Encode a part for the body of a request."""
    digest = hashlib.sha256(part.content).digest()
    sha256 = bytes.fromhex(part.sha256)
    head = _HEAD.pack(sha256, part.size_bytes, part.offset, len(part.content), digest)
    return head + part.content


def read_parts(body: bytes) -> Iterator[SentPart]:
    """Decode the parts of a body; raises `ValueError` if it is malformed or damaged."""
    at = 0
    while at < len(body):
        if len(body) - at < PART_HEAD:
            raise ValueError(f"the head of a part is not whole at byte {at:,}")
        sha256, size, offset, length, digest = _HEAD.unpack_from(body, at)
        at += PART_HEAD
        content = body[at : at + length]
        if len(content) < length:
            raise ValueError(f"a part is not whole at byte {at:,}")
        if hashlib.sha256(content).digest() != digest:
            raise ValueError(f"the part at byte {at:,} is damaged")
        yield SentPart(sha256.hex(), size, offset, content)
        at += length
