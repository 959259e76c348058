"""Apps: workflow files that a server keeps, in versions."""

from __future__ import annotations

import msgspec


class AppLine(msgspec.Struct, frozen=True):
    """An app in a list."""

    uuid: str
    name: str
    description: str
    created_date: str
    owner: str
    #: The latest version that can be used.
    latest_version: int


class AppList(msgspec.Struct, frozen=True):
    """A page of apps."""

    apps: list[AppLine]
    more_entries: bool


class AppVersionLine(msgspec.Struct, frozen=True):
    """A version of an app."""

    version: int
    created_by: str
    created_date: str
    #: READY or DELETED.
    status: str


class AppAnswer(msgspec.Struct, frozen=True):
    """An app with some of its versions."""

    uuid: str
    name: str
    description: str
    created_date: str
    owner: str
    #: The latest one that can be used; `None`: all were deleted.
    latest_version: int | None
    versions: list[AppVersionLine]


class NewAppVersion(msgspec.Struct, frozen=True):
    """A version that was just made."""

    uuid: str
    version: int
    name: str
    created_by: str
    created_date: str


class DeletedVersions(msgspec.Struct, frozen=True):
    """The versions of an app that are gone."""

    versions: list[int]
