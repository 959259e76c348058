"""Downloads objects of a store into files: resumable, and checked against their checksums.

A file gets its name when it is complete and correct. Until then its name contains the version of
the object, so that another process resumes the same version or starts again.
"""

# Types are checked without the library as well, which only servers need.
# pyright: reportMissingImports=false

from __future__ import annotations

import base64
import hashlib
import os
import re
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from bough.model.object_store import StoreCredential, StoreUrl
from bough.object_stores.failures import Damaged, StoreFailed, reason_of, telling
from bough.object_stores.listing import StoreObject
from bough.object_stores.opening import do_all, open_store, s3_requests
from bough.object_stores.s3_multipart import CHECKSUM

if TYPE_CHECKING:
    from obstore import GetOptions

#: The prefix of incomplete files.
UNFINISHED = ".bough-part-"
_AT_ONCE = 8
#: The most bytes that one request asks for.
_RANGE_BYTES = 64 << 20
_CHUNK = 4 << 20
#: How many times in a row to reconnect without receiving anything new.
_TRIES = 5
_MD5 = re.compile(r"([0-9a-f]{32})\Z")


class Fetch:
    """Downloads the objects at one URL to a folder."""

    def __init__(self, url: StoreUrl, credential: StoreCredential, folder: Path) -> None:
        self._url = url
        self._store = open_store(url, credential)
        self._requests = s3_requests(url, credential)
        self._folder = folder

    def fetch(
        self, objects: Iterable[StoreObject], tell: Callable[[int], None] | None = None
    ) -> None:
        """Download all of them; `tell` is called with the bytes as they arrive."""
        do_all(
            lambda each: self._fetch(each, tell),
            objects,
            at_once=_AT_ONCE,
            requests=self._requests,
        )
        for left in self._folder.rglob(f"{UNFINISHED}*"):
            left.unlink()

    def _fetch(self, wanted: StoreObject, tell: Callable[[int], None] | None) -> None:
        path = self._folder / wanted.name
        if is_fetched(path, wanted):
            return
        stamp_ns = _stamp_ns(wanted)
        path.parent.mkdir(parents=True, exist_ok=True)
        version = f"{wanted.key}\0{wanted.etag}\0{wanted.size_bytes}\0{stamp_ns}"
        part = path.with_name(UNFINISHED + hashlib.sha256(version.encode()).hexdigest()[:32])
        with part.open("ab") as file:
            checksum = self._receive(wanted, file.fileno(), tell)
        fault = self._fault(wanted, part, checksum)
        if fault is not None:
            part.unlink()
            raise Damaged(f"{self._shown(wanted)} was damaged on its way: {fault}")
        os.utime(part, ns=(stamp_ns, stamp_ns))
        part.replace(path)

    def _receive(
        self, wanted: StoreObject, file: int, tell: Callable[[int], None] | None
    ) -> str | None:
        """Download the missing rest; returns the checksum stored with the object, if any."""
        import obstore  # noqa: PLC0415  needed by few tasks

        checksum: str | None = None
        failures = 0
        offset = os.fstat(file).st_size
        # The last answer also has the checksum, so ask even if nothing is missing.
        while offset < wanted.size_bytes or checksum is None:
            until = min(wanted.size_bytes, offset + _RANGE_BYTES)
            options: GetOptions = {"if_match": f'"{wanted.etag}"'} if wanted.etag else {}
            if until > offset:
                options["range"] = offset, until
            else:
                options["head"] = True
            with telling(self._shown(wanted), "read"):
                try:
                    found = obstore.get(self._store, wanted.key, options=options)
                    checksum = str(found.attributes.get(CHECKSUM, ""))
                    if until > offset:
                        for chunk in found.stream(min_chunk_size=_CHUNK):
                            _write_all(file, memoryview(chunk))
                            offset += len(chunk)
                            failures = 0
                            if tell is not None:
                                tell(len(chunk))
                except Exception as error:
                    if not _broke(error) or failures == _TRIES:
                        raise
                    failures += 1
                    offset = os.fstat(file).st_size
                    time.sleep(0.2 * 2**failures)
        return checksum or None

    def _fault(self, wanted: StoreObject, part: Path, checksum: str | None) -> str | None:
        """What is wrong with the downloaded file; `None`: nothing that a checksum shows."""
        size = part.stat().st_size
        if size != wanted.size_bytes:
            return f"it has {size:,} bytes, and {wanted.size_bytes:,} were announced"
        if checksum is not None:
            found = _digest(part, hashlib.sha256())
            return None if found == checksum else "it has another SHA-256 than when it was written"
        etag = _MD5.match(wanted.etag)
        if etag and _digest(part, hashlib.md5(usedforsecurity=False)) == etag[1]:
            return None
        return self._fault_by_store(wanted, part, has_md5=etag is not None)

    def _fault_by_store(self, wanted: StoreObject, part: Path, *, has_md5: bool) -> str | None:
        """Compare with the checksums that S3 keeps. The ETag of an encrypted object is not one."""
        if self._requests is None:
            return None
        headers = {"x-amz-checksum-mode": "ENABLED"}
        answer = self._requests.ask("HEAD", wanted.key, headers=headers)
        if not answer.good:
            return None
        whole = answer.headers.get("x-amz-checksum-type", "FULL_OBJECT") == "FULL_OBJECT"
        sha256 = answer.headers.get("x-amz-checksum-sha256", "")
        if whole and sha256 and "-" not in sha256:
            found = base64.b64encode(bytes.fromhex(_digest(part, hashlib.sha256()))).decode()
            return None if found == sha256 else "it has another SHA-256 than the store says"
        crc32 = answer.headers.get("x-amz-checksum-crc32", "")
        if whole and crc32 and "-" not in crc32:
            same = base64.b64encode(_crc32(part).to_bytes(4, "big")).decode() == crc32
            return None if same else "it has another CRC-32 than the store says"
        encrypted = answer.headers.get("x-amz-server-side-encryption", "AES256") != "AES256" or any(
            name.startswith("x-amz-server-side-encryption-customer") for name in answer.headers
        )
        return "it has another MD5 than the store says" if has_md5 and not encrypted else None

    def _shown(self, wanted: StoreObject) -> str:
        return f"{self._url.scheme}://{self._url.container}/{wanted.key}"


def is_fetched(path: Path, wanted: StoreObject) -> bool:
    """Whether this version was already downloaded completely."""
    try:
        about = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (about.st_size, about.st_mtime_ns) == (wanted.size_bytes, _stamp_ns(wanted))


def _stamp_ns(wanted: StoreObject) -> int:
    """The modification time that its file gets."""
    return int(wanted.modified.timestamp() * 1_000) * 1_000_000


def _write_all(file: int, content: memoryview) -> None:
    while content:
        content = content[os.write(file, content) :]


def _broke(error: Exception) -> bool:
    """Whether the connection broke, so that a retry makes sense."""
    if isinstance(error, (StoreFailed, OSError)):
        return False
    return "the connection to the store broke" in reason_of(str(error))


def _digest(path: Path, digest: hashlib._Hash) -> str:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _crc32(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            value = zlib.crc32(chunk, value)
    return value
