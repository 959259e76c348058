"""Uploads one large file to S3 in parts; parts that arrived are not sent again.

The upload's id is kept in a file until the upload is done, so that another process can resume it.
The store itself says which parts it has; each is compared with the file by its checksum.
"""

from __future__ import annotations

import hashlib
import html
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from bough.durable_files import write_whole
from bough.object_stores.failures import StoreFailed, reason
from bough.object_stores.s3_requests import Answer, S3Requests

#: Smaller files are sent in one request.
PART_BYTES = 16 << 20
#: The most parts that any store accepts.
_MOST_PARTS = 9_000
_AT_ONCE = 4
#: The header with the checksum of the whole object.
CHECKSUM = "boughsha256"
_UPLOAD = re.compile(r"<UploadId>([^<]+)</UploadId>")
_PART = re.compile(r"<Part>(.*?)</Part>", re.DOTALL)
_FIELD = re.compile(r"<(PartNumber|ETag|Size)>([^<]*)<")
_NEXT = re.compile(r"<NextPartNumberMarker>([0-9]+)<")
_MORE = re.compile(r"<IsTruncated>true<")


class LargeFile(NamedTuple):
    """An open file with its size and checksum."""

    descriptor: int
    size_bytes: int
    sha256: str


class _Begun(msgspec.Struct, frozen=True):
    """An upload that was begun."""

    key: str
    upload: str
    part_bytes: int
    size_bytes: int
    sha256: str


class MultipartUpload:
    """The upload of one file to one key."""

    def __init__(self, requests: S3Requests, key: str, file: LargeFile, journal: Path) -> None:
        self._requests = requests
        self._key = key
        self._file = file
        self._journal = journal

    def send(self, unchanged: Callable[[], bool], tell: Callable[[int], None]) -> bool:
        """Send the missing parts and complete the upload, unless the file has changed meanwhile."""
        begun, there = self._go_on() or (self._begin(), {})
        try:
            parts = self._send_parts(begun, there, tell)
            if not unchanged():
                self._abort(begun)
                return False
            self._complete(begun, parts)
        except StoreFailed:
            # Leave nothing that takes space; what a killed process leaves, the next one resumes.
            self._abort(begun)
            raise
        self._journal.unlink(missing_ok=True)
        return True

    def _go_on(self) -> tuple[_Begun, dict[int, tuple[str, int]]] | None:
        """The upload that an earlier process began, with the parts that it sent."""
        try:
            begun = msgspec.json.decode(self._journal.read_bytes(), type=_Begun)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None
        wanted = (self._key, self._file.size_bytes, self._file.sha256)
        if wanted != (begun.key, begun.size_bytes, begun.sha256):
            self._abort(begun)
            return None
        there: dict[int, tuple[str, int]] = {}
        marker = "0"
        while True:
            query = {"uploadId": begun.upload, "part-number-marker": marker}
            answer = self._requests.ask("GET", self._key, query)
            if answer.status == 404:
                return None
            text = self._checked(answer)
            for found in _PART.findall(text):
                part = dict(_FIELD.findall(found))
                etag = html.unescape(part["ETag"]).strip('"')
                there[int(part["PartNumber"])] = etag, int(part["Size"])
            following = _NEXT.search(text)
            if not _MORE.search(text) or following is None or following[1] == marker:
                return begun, there
            marker = following[1]

    def _begin(self) -> _Begun:
        headers = {
            f"x-amz-meta-{CHECKSUM}": self._file.sha256,
            "content-type": "application/octet-stream",
        }
        text = self._checked(
            self._requests.ask("POST", self._key, {"uploads": ""}, headers=headers)
        )
        found = _UPLOAD.search(text)
        if found is None:
            raise StoreFailed("the store began no upload")
        size = self._file.size_bytes
        part_bytes = max(PART_BYTES, -(-size // _MOST_PARTS))
        begun = _Begun(self._key, html.unescape(found[1]), part_bytes, size, self._file.sha256)
        write_whole(self._journal, msgspec.json.encode(begun), durably=False)
        return begun

    def _send_parts(
        self, begun: _Begun, there: dict[int, tuple[str, int]], tell: Callable[[int], None]
    ) -> list[str]:
        """Send the missing parts; returns the store's checksums of all parts, in order."""
        count = max(1, -(-begun.size_bytes // begun.part_bytes))

        def send(number: int) -> str:
            start = (number - 1) * begun.part_bytes
            content = os.pread(self._file.descriptor, begun.part_bytes, start)
            digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
            if there.get(number) == (digest, len(content)):
                return digest
            query = {"partNumber": str(number), "uploadId": begun.upload}
            answer = self._requests.ask("PUT", self._key, query, content=content)
            self._checked(answer)
            tell(len(content))
            return answer.headers.get("etag", "").strip('"') or digest

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(send, range(1, count + 1)))

    def _complete(self, begun: _Begun, etags: list[str]) -> None:
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>&quot;{html.escape(etag)}&quot;</ETag></Part>"
            for number, etag in enumerate(etags, 1)
        )
        content = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        query = {"uploadId": begun.upload}
        answer = self._requests.ask("POST", self._key, query, content=content)
        if answer.code == "NoSuchUpload" and self._is_there():
            # An earlier attempt succeeded, but its answer was lost.
            return
        self._checked(answer)

    def _is_there(self) -> bool:
        answer = self._requests.ask("HEAD", self._key)
        return answer.headers.get(f"x-amz-meta-{CHECKSUM}") == self._file.sha256

    def _abort(self, begun: _Begun) -> None:
        """Abort an upload, if the store can be reached."""
        try:
            self._requests.ask("DELETE", begun.key, {"uploadId": begun.upload})
        except StoreFailed:
            return
        self._journal.unlink(missing_ok=True)

    def _checked(self, answer: Answer) -> str:
        if not answer.good:
            raise StoreFailed(reason(answer.status, answer.code))
        return answer.content.decode(errors="replace")
