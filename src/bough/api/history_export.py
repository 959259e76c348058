"""Finished workflows to be kept elsewhere: pages, what is dropped, and the lines of a file."""

from __future__ import annotations

import msgspec

from bough.api.common import Json


class HistoryPage(msgspec.Struct, frozen=True):
    """Finished workflows in the order in which they ended, each with everything about it."""

    workflows: list[Json]
    #: Before when they ended; the next page is asked for with the same.
    until: str
    #: What to send as `after` for the next page; `null`: there is none.
    next: str | None


class DropHistory(msgspec.Struct, frozen=True):
    """Finished workflows, by uuid, of which only usage, events and audit stay."""

    workflows: list[str]


class DroppedHistory(msgspec.Struct, frozen=True):
    """How many of them were not dropped before."""

    dropped: int


class HistoryHead(msgspec.Struct, frozen=True):
    """The first line of the file of an export."""

    #: The program that made it, when, and up to when workflows ended that are in it.
    version: str
    created: str
    until: str
    kind: str = "bough history"
    form: int = 1


class HistoryEnd(msgspec.Struct, frozen=True):
    """Its last line: how many workflows it has, and the checksum of all lines before."""

    workflows: int
    sha256: str


class HistoryExport(msgspec.Struct, frozen=True):
    """What the file of an export has."""

    file: str
    until: str
    created: str
    version: str
    workflows: int
    #: The first and the last that ended; `null`: there is none.
    first: str | None
    last: str | None
    #: How many were dropped on the server once the file was written.
    dropped: int = 0
