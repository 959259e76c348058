"""The server itself: version, health and events."""

from __future__ import annotations

import msgspec

from bough.api.common import Json


class VersionAnswer(msgspec.Struct, frozen=True):
    """The version of the server."""

    major: str
    minor: str
    revision: str
    hash: str = ""


class HealthAnswer(msgspec.Struct, frozen=True):
    """Whether the server can answer."""

    status: str
    #: Whether this server decides; among several, one does.
    schedules: bool
    #: Backends that do not answer: nothing starts on their nodes, and their pools are OFFLINE.
    offline: list[str]


class EventLine(msgspec.Struct, frozen=True):
    """Something that happened, as the stream of events sends it."""

    number: int
    kind: str
    at: str | None
    subject: str
    pool: str | None
    message: str
    data: Json
