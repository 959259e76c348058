"""What the server and its loop's process say to each other on their line.

The bell is an eventfd beside the line: ringing it never blocks, and several rings count as one
until the loop answers.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bough.control.pools.node_shares import Standings
from bough.control.scheduling.plan_questions import Answers, Question
from bough.server.loop_view import Counts
from bough.server.process_channel import Failed, Stop


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """The first message: what the loop needs to begin."""

    settings: dict[str, Any]
    #: The server's time at a moment of the machine's monotonic clock.
    since_boot_ms: int
    at_ms: int
    #: The server's address, if it is known yet.
    address: str | None = None


class Listens(msgspec.Struct, frozen=True, tag="listens"):
    """The server's address."""

    address: str


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """A question about gangs."""

    number: int
    question: Question


class AskStandings(msgspec.Struct, frozen=True, tag="standings"):
    """A question about the quota tree."""

    number: int
    user: str


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The loop has opened its backends, and starts."""

    #: What the administrator should know about the machine.
    warnings: tuple[str, ...]
    #: The GPUs of the first backend.
    gpus: int


class Status(msgspec.Struct, frozen=True, tag="status"):
    """The loop is alive; sent regularly."""

    leads: bool
    counts: Counts


class Answered(msgspec.Struct, frozen=True, tag="answered"):
    """The answer to a question about gangs."""

    number: int
    answers: Answers


class Stand(msgspec.Struct, frozen=True, tag="stand"):
    """The answer to a question about the quota tree."""

    number: int
    standings: Standings


ToLoop = Begin | Listens | Ask | AskStandings | Stop
FromLoop = Ready | Status | Answered | Stand | Failed

TO_LOOP = msgspec.msgpack.Decoder(ToLoop)
FROM_LOOP = msgspec.msgpack.Decoder(FromLoop)
