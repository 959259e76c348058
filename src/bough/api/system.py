"""The server itself: version, health, its key and events."""

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

    #: `ok`, or `degraded` where it answers and cannot do everything.
    status: str
    #: Whether this server decides; among several, one does.
    schedules: bool
    #: Backends that do not answer: nothing starts on their nodes, and their pools are OFFLINE.
    offline: list[str]
    #: Why it is degraded, in sentences.
    reasons: list[str]


class ServerKeyAnswer(msgspec.Struct, frozen=True):
    """The server's key, and the signed challenge."""

    #: Its public key (Ed25519), in hexadecimal digits.
    key: str
    #: Where the server was asked, as it sees that: another address means that something between
    #: passes requests on.
    address: str
    #: Of `signed_text`, in hexadecimal digits.
    signature: str

    @staticmethod
    def signed_text(challenge: str, address: str) -> bytes:
        """What the server signs; the first line keeps it apart from everything else."""
        return f"bough server key 1\n{challenge}\n{address}\n".encode()


class EventLine(msgspec.Struct, frozen=True):
    """An event, as the event stream sends it."""

    number: int
    kind: str
    at: str | None
    subject: str
    pool: str | None
    message: str
    data: Json
