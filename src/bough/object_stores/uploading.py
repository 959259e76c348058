"""Uploads files as objects of a store: each completely or not at all, with its checksum.

A journal notes what was sent, so that another process can resume, and so that unchanged files are
not sent again as long as the store still has them.
"""

# Types are checked without the library as well, which only servers need.
# pyright: reportMissingImports=false

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from bough.model.object_store import StoreCredential, StoreUrl
from bough.object_stores.failures import StoreFailed, telling
from bough.object_stores.listing import iterate_objects, plain_etag
from bough.object_stores.opening import do_all, open_store, s3_requests
from bough.object_stores.s3_multipart import CHECKSUM, PART_BYTES, LargeFile, MultipartUpload

_AT_ONCE = 4
_CHUNK = 4 << 20
#: Smaller files are read into memory and sent in one request.
_SMALL_BYTES = 2 * PART_BYTES
_DECODER = msgspec.json.Decoder(tuple[str, int, int, str])


class FileToSend(NamedTuple):
    """A file, by its path below the URL, and how to open it (`None`: it no longer exists)."""

    name: str
    open: Callable[[], int | None]


class Sent(NamedTuple):
    """The result of an upload."""

    files: int
    bytes: int
    #: Files that changed while they were read, and were therefore not sent.
    changed: tuple[str, ...]


class _Changed(Exception):
    """The file changed while it was read."""


class Sending:
    """Uploads files to one URL."""

    def __init__(
        self,
        url: StoreUrl,
        credential: StoreCredential,
        journal: Path,
        tell: Callable[[int], None] | None = None,
    ) -> None:
        self._url = url
        self._signs = credential.signs
        self._store = open_store(url, credential)
        self._requests = s3_requests(url, credential)
        self._folder = journal
        self._journal = journal / f"{hashlib.sha256(str(url).encode()).hexdigest()[:32]}.sent"
        self._tell = tell or _say_nothing
        self._lock = threading.Lock()
        self._files = 0
        self._bytes = 0
        self._changed: list[str] = []

    def send(self, files: Iterable[FileToSend]) -> Sent:
        """Send all files that the store does not have."""
        if not self._signs:
            raise StoreFailed(f"{self._url} could not be written: its credential has no key")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = self._known()
        do_all(
            lambda each: self._send(each, known), files, at_once=_AT_ONCE, requests=self._requests
        )
        return Sent(self._files, self._bytes, tuple(self._changed))

    def _known(self) -> dict[str, tuple[int, int]]:
        """Files that were sent before and are still in the store, by key: their size and time."""
        try:
            lines = self._journal.read_bytes().splitlines()
        except FileNotFoundError:
            return {}
        sent: dict[str, tuple[int, int, str]] = {}
        for line in lines:
            try:
                key, size, modified_ns, etag = _DECODER.decode(line)
            except msgspec.MsgspecError:
                # An incomplete last line, written by a process that was killed.
                continue
            sent[key] = size, modified_ns, etag
        there = {each.key: each.etag for each in iterate_objects(self._store, self._url)}
        return {
            key: (size, modified_ns)
            for key, (size, modified_ns, etag) in sent.items()
            if key in there and there[key] == etag
        }

    def _send(self, file: FileToSend, known: dict[str, tuple[int, int]]) -> None:
        key = f"{self._url.path}/{file.name}" if self._url.path else file.name
        descriptor = file.open()
        if descriptor is None:
            return
        try:
            before = os.fstat(descriptor)
            if known.get(key) == (before.st_size, before.st_mtime_ns):
                return
            try:
                with telling(self._shown(key), "written"):
                    etag = self._write(key, descriptor, before)
            except _Changed:
                with self._lock:
                    self._changed.append(file.name)
                return
            except StoreFailed as error:
                if self._shown(key) in error.message:
                    raise
                raise StoreFailed(
                    f"{self._shown(key)} could not be written: {error.message}"
                ) from None
            self._note(key, before, etag)
        finally:
            os.close(descriptor)

    def _write(self, key: str, file: int, before: os.stat_result) -> str:
        import obstore  # noqa: PLC0415  needed by few tasks

        def unchanged() -> bool:
            after = os.fstat(file)
            return (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)

        if before.st_size <= _SMALL_BYTES:
            content = b"".join(_read(file, before.st_size))
            if not unchanged() or len(content) != before.st_size:
                raise _Changed
            attributes = {CHECKSUM: hashlib.sha256(content).hexdigest()}
            done = obstore.put(
                self._store, key, content, attributes=attributes, use_multipart=False
            )
            self._tell(before.st_size)
            return plain_etag(done["e_tag"])
        digest = hashlib.sha256()
        for chunk in _read(file, before.st_size):
            digest.update(chunk)
        if not unchanged():
            raise _Changed
        large = LargeFile(file, before.st_size, digest.hexdigest())
        if self._requests is None:
            attributes = {CHECKSUM: large.sha256}
            chunks = self._stream(file, before.st_size, unchanged)
            done = obstore.put(
                self._store, key, chunks, attributes=attributes, chunk_size=PART_BYTES
            )
            return plain_etag(done["e_tag"])
        name = hashlib.sha256(f"{self._url}\0{key}".encode()).hexdigest()[:32]
        upload = MultipartUpload(self._requests, key, large, self._folder / f"{name}.upload")
        if not upload.send(unchanged, self._tell):
            raise _Changed
        return plain_etag(obstore.head(self._store, key)["e_tag"])

    def _stream(self, file: int, size: int, unchanged: Callable[[], bool]) -> Iterator[bytes]:
        """Yield a file in chunks; raises at the end if it changed, so that no object is made."""
        for chunk in _read(file, size):
            yield chunk
            self._tell(len(chunk))
        if not unchanged():
            raise _Changed

    def _note(self, key: str, about: os.stat_result, etag: str) -> None:
        line = msgspec.json.encode((key, about.st_size, about.st_mtime_ns, etag)) + b"\n"
        with self._lock:
            self._files += 1
            self._bytes += about.st_size
            with self._journal.open("ab") as file:
                file.write(line)

    def _shown(self, key: str) -> str:
        return f"{self._url.scheme}://{self._url.container}/{key}"


def _read(file: int, size: int) -> Iterator[bytes]:
    offset = 0
    while offset < size and (chunk := os.pread(file, min(_CHUNK, size - offset), offset)):
        yield chunk
        offset += len(chunk)


def _say_nothing(_: int) -> None:
    """No progress is shown."""
