"""Apps: workflow files that a server keeps under a name, in numbered versions."""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

#: What existing clients accept as a name.
_NAME = re.compile(r"[a-zA-Z](?:[a-zA-Z0-9_-]*[a-zA-Z0-9])?\Z")
LONGEST_NAME = 63
_SHOWN = 60


class AppStatus(StrEnum):
    """Whether a version can be used."""

    READY = "READY"
    #: Its text is gone; the row stays, because workflows were submitted from it.
    DELETED = "DELETED"


class App(msgspec.Struct, frozen=True):
    """A workflow file that others can submit."""

    uuid: str
    name: str
    owner: str
    description: str
    created_ms: int


class AppVersion(msgspec.Struct, frozen=True):
    """One version of an app, without its text."""

    app_uuid: str
    #: Starts at 1; never reused.
    version: int
    created_by: str
    created_ms: int
    status: AppStatus


class AppSource(msgspec.Struct, frozen=True):
    """The version of an app that a workflow was submitted from."""

    uuid: str
    version: int


def app_name_fault(name: str) -> str | None:
    """What is wrong with the name of an app."""
    if _NAME.match(name) and len(name) <= LONGEST_NAME:
        return None
    return (
        f"App {name[:_SHOWN]!r}: a name begins with a letter, ends with a letter or digit, has "
        f"only letters, digits, - and _, and at most {LONGEST_NAME} characters."
    )
