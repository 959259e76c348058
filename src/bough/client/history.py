"""The history of a server in a file: finished workflows, a line of JSON each, checked when read.

The first line says what the file is, the last one how many workflows it has, with a checksum of
all lines before. It appears under its name when it is whole and on the disk, and only then is
anything dropped that was written to it.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from bough.api.common import Json
from bough.api.history import (
    DropHistory,
    DroppedHistory,
    HistoryEnd,
    HistoryExport,
    HistoryHead,
    HistoryPage,
)
from bough.client.addresses import given, path_of
from bough.client.transport import Transport
from bough.disk import whole_file
from bough.errors import Invalid, Unavailable
from bough.version import VERSION

#: How many workflows are dropped with one request.
AT_ONCE = 200
#: How the line of a workflow begins.
_WORKFLOW = b'{"workflow":'
_KIND = HistoryHead("", "", "").kind


class _Named(msgspec.Struct, frozen=True):
    uuid: str
    workflow_id: str


class _Line(msgspec.Struct, frozen=True):
    """What is read of a workflow to check a file."""

    workflow: _Named


def _silent(_: int) -> None:
    """Say nothing."""


class History:
    """Finished workflows, for administrators."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def page(self, until: str, after: str | None = None, limit: int = AT_ONCE) -> HistoryPage:
        """Some of the workflows that ended before a time, in the order in which they ended."""
        query = {"until": until, "limit": limit, **given(after=after)}
        return self._transport.get(HistoryPage, path_of("history"), query)

    def drop(self, uuids: list[str]) -> int:
        """Drop finished workflows; how many had not been dropped before."""
        path = path_of("history", "drop")
        return self._transport.send(DroppedHistory, "POST", path, DropHistory(uuids)).dropped

    def export(
        self,
        path: Path,
        until: str,
        *,
        drop: bool = False,
        tell: Callable[[int], None] = _silent,
    ) -> HistoryExport:
        """Write the workflows that ended before a time to a new file, and drop them if asked to.

        tell:  is told how many are written so far.
        """
        first = self.page(until)
        try:
            if os.path.lexists(path):
                raise FileExistsError
            with whole_file(path, replace=False) as file, _packed(path, file) as lines:
                self._write(lines, first, tell)
        except FileExistsError:
            raise Invalid(f"{path} exists; name another file, or remove it.") from None
        except OSError as error:
            raise Unavailable(f"{path} cannot be written: {error.strerror or error}.") from None
        found = check_export(path)
        if not drop:
            return found
        dropped = 0
        part: list[str] = []
        for uuid in read_uuids(path):
            part.append(uuid)
            if len(part) == AT_ONCE:
                dropped += self.drop(part)
                part = []
        if part:
            dropped += self.drop(part)
        return msgspec.structs.replace(found, dropped=dropped)

    def _write(
        self, file: BinaryIO | gzip.GzipFile, page: HistoryPage, tell: Callable[[int], None]
    ) -> None:
        digest = hashlib.sha256()
        written = 0

        def write(value: object) -> None:
            line = msgspec.json.encode(value) + b"\n"
            digest.update(line)
            file.write(line)

        created = datetime.now(UTC).isoformat(timespec="seconds")
        write(HistoryHead(VERSION, created, page.until))
        while True:
            for each in page.workflows:
                write(each)
            written += len(page.workflows)
            tell(written)
            if page.next is None:
                break
            page = self.page(page.until, page.next)
        file.write(msgspec.json.encode(HistoryEnd(written, digest.hexdigest())) + b"\n")


def check_export(path: Path) -> HistoryExport:
    """Read a file to its end; what it has, if nothing is wrong with it."""
    digest = hashlib.sha256()
    head: HistoryHead | None = None
    names: list[str] = []
    count = 0
    last = b""
    for line in _lines(path):
        if head is None:
            head = _head(path, line)
        if last:
            digest.update(last)
        if last.startswith(_WORKFLOW):
            names = [*names[:1], _workflow(path, last).workflow_id]
            count += 1
        last = line
    if head is None:
        raise Invalid(f"{path} is no history of Bough: it is empty.")
    try:
        end = msgspec.json.decode(last, type=HistoryEnd)
    except msgspec.MsgspecError:
        raise Invalid(f"{path} is not whole: its end is missing.") from None
    if (end.workflows, end.sha256) != (count, digest.hexdigest()):
        raise Invalid(f"{path} is damaged: its checksum is wrong.")
    return HistoryExport(
        file=str(path),
        until=head.until,
        created=head.created,
        version=head.version,
        workflows=count,
        first=names[0] if names else None,
        last=names[-1] if names else None,
    )


def read_export(path: Path) -> Iterator[Json]:
    """The workflows of a file, in the order in which they ended."""
    for line in _lines(path):
        if line.startswith(_WORKFLOW):
            yield msgspec.json.decode(line)


def read_uuids(path: Path) -> Iterator[str]:
    """The identities of the same."""
    for line in _lines(path):
        if line.startswith(_WORKFLOW):
            yield _workflow(path, line).uuid


@contextmanager
def _packed(path: Path, file: BinaryIO) -> Generator[BinaryIO | gzip.GzipFile]:
    """What to write lines to: packed where the name ends so."""
    if path.suffix != ".gz":
        yield file
        return
    with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
        yield packed


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            yield from file
    except EOFError:
        raise Invalid(f"{path} is not whole: its end is missing.") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise Invalid(f"{path} is damaged: {error}.") from None
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror or error}.") from None


def _head(path: Path, line: bytes) -> HistoryHead:
    wrong = Invalid(f"{path} is no history of Bough.")
    try:
        head = msgspec.json.decode(line, type=HistoryHead)
    except msgspec.MsgspecError:
        raise wrong from None
    if head.kind != _KIND:
        raise wrong
    if head.form != 1:
        raise Invalid(
            f"{path} has form {head.form}, and this program reads form 1.",
            hint=f"it was made by version {head.version}",
        )
    return head


def _workflow(path: Path, line: bytes) -> _Named:
    try:
        return msgspec.json.decode(line, type=_Line).workflow
    except msgspec.MsgspecError:
        raise Invalid(f"{path} is damaged: a line is no workflow.") from None
