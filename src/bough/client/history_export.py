"""The history of a server in a file: finished workflows, a line of JSON each, checked when read.

The first line says what the file is, the last one how many workflows it has, with a checksum of
all lines before. It appears under its name when it is whole and on the disk, and only then is
anything dropped that was written to it.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from bough.api.common import Json
from bough.api.history_export import (
    DropHistory,
    DroppedHistory,
    HistoryEnd,
    HistoryExport,
    HistoryHead,
    HistoryPage,
)
from bough.client.addresses import given, path_of
from bough.client.transport import Transport
from bough.durable_files import whole_file
from bough.errors import Invalid, Unavailable
from bough.sealed_lines import LineWriter, SealedFile, check_lines, read_lines, wrong_checksum
from bough.version import VERSION

#: How many workflows are dropped with one request.
AT_ONCE = 200
#: How the line of a workflow begins.
_WORKFLOW = b'{"workflow":'


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
        lines = LineWriter(file)
        written = 0
        created = datetime.now(UTC).isoformat(timespec="seconds")
        lines.write(HistoryHead(VERSION, created, page.until))
        while True:
            for each in page.workflows:
                lines.write(each)
            written += len(page.workflows)
            tell(written)
            if page.next is None:
                break
            page = self.page(page.until, page.next)
        lines.write(HistoryEnd(written, lines.sha256()))


def check_export(path: Path) -> HistoryExport:
    """Read a file to its end; what it has, if nothing is wrong with it."""
    names: list[str] = []
    count = 0

    def take(line: bytes) -> None:
        nonlocal names, count
        if line.startswith(_WORKFLOW):
            names = [*names[:1], _workflow(path, line).workflow_id]
            count += 1

    head, end = check_lines(_export_at(path), HistoryHead("", "", ""), HistoryEnd, take)
    if end.workflows != count:
        raise wrong_checksum(path)
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
    for line in read_lines(_export_at(path)):
        if line.startswith(_WORKFLOW):
            yield msgspec.json.decode(line)


def read_uuids(path: Path) -> Iterator[str]:
    """The identities of the same."""
    for line in read_lines(_export_at(path)):
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


def _export_at(path: Path) -> SealedFile:
    return SealedFile(path, path.suffix == ".gz", otherwise="no history of Bough")


def _workflow(path: Path, line: bytes) -> _Named:
    try:
        return msgspec.json.decode(line, type=_Line).workflow
    except msgspec.MsgspecError:
        raise Invalid(f"{path} is damaged: a line is not a workflow.") from None
