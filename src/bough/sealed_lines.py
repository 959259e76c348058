"""Files of JSON lines that can be checked: a head, lines, and an end with a checksum of all others.

Backups and exported histories have this form, packed with gzip or plain. The head says what the
file is, the end how many lines it has, so that a file that was cut off or damaged is noticed.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol, TypeVar

import msgspec

from bough.errors import Invalid


class Head(Protocol):
    """What every first line says: what the file is, in which form, made by which version."""

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def form(self) -> int: ...  # noqa: D102
    @property
    def version(self) -> str: ...  # noqa: D102


class End(Protocol):
    """What every last line says."""

    @property
    def sha256(self) -> str: ...  # noqa: D102


HeadT = TypeVar("HeadT", bound=Head)
EndT = TypeVar("EndT", bound=End)


class SealedFile(NamedTuple):
    """A file to read."""

    path: Path
    #: Whether gzip packed it.
    packed: bool
    #: What messages say about a file of another kind, such as `no history of Bough`.
    otherwise: str


class LineWriter:
    """Writes lines, and computes their checksum."""

    def __init__(self, file: BinaryIO | gzip.GzipFile) -> None:
        self._file = file
        self._digest = hashlib.sha256()

    def write(self, value: object) -> None:
        """Write one line."""
        line = msgspec.json.encode(value) + b"\n"
        self._digest.update(line)
        self._file.write(line)

    def sha256(self) -> str:
        """The checksum of the lines so far, for the end."""
        return self._digest.hexdigest()


def read_lines(file: SealedFile) -> Iterator[bytes]:
    """All lines, unchecked; raises `Invalid` where they cannot be read."""
    path = file.path
    try:
        with gzip.open(path, "rb") if file.packed else path.open("rb") as opened:
            yield from opened
    except EOFError:
        raise _cut_off(path) from None
    except gzip.BadGzipFile as error:
        damaged = "CRC" in str(error) or "length" in str(error)
        what = "damaged" if damaged else file.otherwise
        raise Invalid(f"{path} is {what}: {error}.") from None
    except zlib.error as error:
        raise Invalid(f"{path} is damaged: {error}.") from None
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror or error}.") from None


def check_lines(
    file: SealedFile, like: HeadT, end_type: type[EndT], take: Callable[[bytes], None]
) -> tuple[HeadT, EndT]:
    """Read a file to its end; returns its head and its end if the checksum is right.

    like:  a head of the same type, kind and form.
    take:  is given each line between head and end; the caller compares their number with the end.
    """
    digest = hashlib.sha256()
    head: HeadT | None = None
    last: bytes | None = None
    for line in read_lines(file):
        if head is None:
            head = _read_head(file, line, like)
            digest.update(line)
            continue
        if last is not None:
            digest.update(last)
            take(last)
        last = line
    if head is None:
        raise Invalid(f"{file.path} is {file.otherwise}: it is empty.")
    try:
        end = msgspec.json.decode(last or b"", type=end_type)
    except msgspec.MsgspecError:
        raise _cut_off(file.path) from None
    if end.sha256 != digest.hexdigest():
        raise wrong_checksum(file.path)
    return head, end


def wrong_checksum(path: Path) -> Invalid:
    """The error for a file whose end does not agree with its lines."""
    return Invalid(f"{path} is damaged: its checksum is wrong.")


def _cut_off(path: Path) -> Invalid:
    return Invalid(f"{path} is not whole: its end is missing.")


def _read_head(file: SealedFile, line: bytes, like: HeadT) -> HeadT:
    try:
        head = msgspec.json.decode(line, type=type(like))
    except msgspec.MsgspecError:
        head = None
    if head is None or head.kind != like.kind:
        raise Invalid(f"{file.path} is {file.otherwise}.")
    if head.form != like.form:
        raise Invalid(
            f"{file.path} has form {head.form}, and this program reads form {like.form}.",
            hint=f"it was made by version {head.version}",
        )
    return head
