"""What a worker and the server say to each other, on a line of their own (`process_channel.Line`).

A question has a number, and so has its answer. What is asked of the loop is passed on to it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bough.control.workflows.sessions import SessionTarget
from bough.model.session import SessionKind, SessionRequest
from bough.server.loop_messages import Answered, Ask, AskStandings, Stand
from bough.server.loop_view import Counts
from bough.server.process_channel import Failed, Stop
from bough.server.sessions import Offer

# To a worker


class BeginWorker(msgspec.Struct, frozen=True, tag="begin"):
    """The first message: what a worker needs to begin."""

    settings: dict[str, Any]
    #: Its own number, from 0.
    worker: int
    #: The server's time at a moment of the machine's monotonic clock.
    since_boot_ms: int
    at_ms: int
    public_url: str
    #: The last event before the server started.
    last_event: int


class Standing(msgspec.Struct, frozen=True, tag="standing"):
    """How the server is; sent whenever that changes."""

    leads: bool
    #: Why nothing is scheduled; empty: it is.
    loop_fault: str
    #: What is wrong with workers.
    worker_faults: tuple[str, ...]


class Figures(msgspec.Struct, frozen=True, tag="figures"):
    """The counters of the whole server."""

    number: int
    loop: Counts
    loop_restarts: int
    workers: int
    worker_restarts: int


class Offered(msgspec.Struct, frozen=True, tag="offered"):
    """The key of a session that was offered."""

    number: int
    key: str


class Redeemed(msgspec.Struct, frozen=True, tag="redeemed"):
    """The offer of a key; `None`: it is not valid."""

    number: int
    offer: Offer | None


class Whereabouts(msgspec.Struct, frozen=True, tag="whereabouts"):
    """Which worker has the session that announced a key."""

    number: int
    #: `None`: it was not announced.
    worker: int | None
    #: Whether there is a session that may still announce it.
    awaited: bool


class Turn(msgspec.Struct, frozen=True, tag="turn"):
    """A worker may render a template now."""

    number: int


ToWorker = (
    BeginWorker
    | Standing
    | Figures
    | Offered
    | Redeemed
    | Whereabouts
    | Turn
    | Answered
    | Stand
    | Failed
    | Stop
)

# From a worker


class WorkerReady(msgspec.Struct, frozen=True, tag="ready"):
    """It can take connections."""


class Beat(msgspec.Struct, frozen=True, tag="beat"):
    """It is alive; sent regularly by what answers its requests."""


class AskFigures(msgspec.Struct, frozen=True, tag="ask-figures"):
    """A question about the counters of the whole server."""

    number: int


class MakeOffer(msgspec.Struct, frozen=True, tag="offer"):
    """A user asked for a session."""

    number: int
    user: str
    target: SessionTarget
    wanted: SessionRequest


class TakeOffer(msgspec.Struct, frozen=True, tag="redeem"):
    """A user opened a websocket with a key."""

    number: int
    user: str
    kind: SessionKind
    workflow: str
    key: str


class SessionBegan(msgspec.Struct, frozen=True, tag="began"):
    """The worker has a session."""

    session: int
    user: str
    kind: SessionKind
    workflow: str


class SessionAnnounced(msgspec.Struct, frozen=True, tag="announced"):
    """A session of the worker will get another connection with this key."""

    session: int
    key: str


class SessionEnded(msgspec.Struct, frozen=True, tag="ended"):
    """A session of the worker has ended."""

    session: int


class FindSession(msgspec.Struct, frozen=True, tag="find"):
    """A user opened a websocket with a key that a session may have announced."""

    number: int
    user: str
    kind: SessionKind
    workflow: str
    key: str


class TakeTurn(msgspec.Struct, frozen=True, tag="take-turn"):
    """A user wants a template rendered."""

    number: int
    user: str
    wait_s: float


class GiveTurn(msgspec.Struct, frozen=True, tag="give-turn"):
    """The template of this number is rendered."""

    number: int


FromWorker = (
    WorkerReady
    | Beat
    | Ask
    | AskStandings
    | AskFigures
    | MakeOffer
    | TakeOffer
    | SessionBegan
    | SessionAnnounced
    | SessionEnded
    | FindSession
    | TakeTurn
    | GiveTurn
    | Failed
)
#: Answers to numbered questions.
Answer = Figures | Offered | Redeemed | Whereabouts | Turn | Answered | Stand | Failed

TO_WORKER = msgspec.msgpack.Decoder(ToWorker)
FROM_WORKER = msgspec.msgpack.Decoder(FromWorker)
