"""Results of tasks, and what a download of them did."""

from __future__ import annotations

import msgspec


class ResultFile(msgspec.Struct, frozen=True):
    """A file that a task left behind."""

    #: Below the folder of its results.
    path: str
    size_bytes: int
    #: Another one as soon as the file may be another.
    version: str
    modify_time: str


class ResultPage(msgspec.Struct, frozen=True):
    """Files of a task, in the order of their paths."""

    files: list[ResultFile]
    more_entries: bool
    #: Links and other things that are no files, passed over up to here.
    left_out: int


class ResultPart(msgspec.Struct, frozen=True):
    """A part of a file."""

    offset: int
    #: In base64, as JSON has it.
    content: bytes
    #: Of the content.
    sha256: str
    #: Of the whole file.
    size_bytes: int
    version: str


class Downloaded(msgspec.Struct, frozen=True):
    """What a download did."""

    folder: str
    #: Written now.
    files: int
    bytes: int
    #: Files that were there already.
    unchanged: int
    left_out: int
