"""The server's side of sessions with tasks: keys, limits, and how long each lives.

A request for a session is answered with a key, with which the user opens one websocket within a
minute. The connection is then handed over to the session, a process near the task. The server keeps
a line to it, and closes the line when the user loses the permission.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Protocol

import msgspec

from bough.control.workflows.sessions import SessionTarget
from bough.errors import NotFound, Throttled, Unavailable
from bough.model.session import (
    SessionConnection,
    SessionEnd,
    SessionKind,
    SessionNews,
    SessionRequest,
)
from bough.server.bounded_counts import OwnTally, Tally, Want

#: The most sessions of one user, and of all users.
PER_USER = 100
IN_ALL = 400
#: How long a key is valid, and how many unused ones a user can have.
KEY_S = 60.0
MOST_KEYS = 200
#: How long a client's connection waits for the session to announce it.
ANNOUNCED_S = 10.0
#: The most announced connections of one session that have not arrived.
MOST_ANNOUNCED = 256
_LINE_BYTES = 64 << 10
UNKNOWN_KEY = "The key of the session is not known; it is good for one connection, within a minute."
_ALL = "sessions"


class Offer(msgspec.Struct, frozen=True):
    """A session that was requested, but not opened yet."""

    user: str
    target: SessionTarget
    wanted: SessionRequest
    until_s: float


class AnnouncedSession(Protocol):
    """A session that waits for a connection of its client."""

    def hand_over(self, connection: socket.socket, told: SessionConnection) -> None:
        """Give the session a connection of its client."""
        ...


class LiveSession:
    """The line to a session. For one event loop."""

    def __init__(self, line: int, user: str, target: SessionTarget, kind: SessionKind) -> None:
        self._line = socket.socket(fileno=line)
        self._line.setblocking(False)
        self._heard = asyncio.Event()
        self.user = user
        self.target = target
        self.kind = kind
        #: The keys of connections that the client will open, oldest first.
        self.keys: deque[str] = deque(maxlen=MOST_ANNOUNCED)
        #: Told each of these keys as it comes.
        self.announce: Callable[[str], None] = lambda _: None
        self.ended = False
        self.exit_code: int | None = None
        asyncio.get_running_loop().add_reader(self._line.fileno(), self._hear)

    def hand_over(self, connection: socket.socket, told: SessionConnection) -> None:
        """Give the session a connection of its client."""
        with connection:
            try:
                socket.send_fds(self._line, [msgspec.json.encode(told)], [connection.fileno()])
            except OSError:
                # The session is just ending.
                self.ended = True
                self._heard.set()

    async def wait(self, timeout_s: float) -> bool:
        """Wait a while for the end of the session; returns whether it has ended."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self.ended:
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError:
            pass
        return self.ended

    def tell_why(self, reason: str) -> None:
        """Say why it is about to be closed, for its client."""
        with suppress(OSError):
            self._line.send(msgspec.json.encode(SessionEnd(reason)))

    def close(self) -> None:
        """End it, if it has not ended."""
        asyncio.get_running_loop().remove_reader(self._line.fileno())
        self._line.close()
        self.ended = True

    def _hear(self) -> None:
        try:
            content = self._line.recv(_LINE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            content = b""
        news = SessionNews(ended=True)
        if content:
            news = msgspec.json.decode(content, type=SessionNews)
        if news.key:
            self.keys.append(news.key)
            self.announce(news.key)
        if news.ended:
            self.ended = True
            self.exit_code = self.exit_code if news.exit_code is None else news.exit_code
            # A closed line is always readable, so stop watching it.
            asyncio.get_running_loop().remove_reader(self._line.fileno())
        self._heard.set()


class Sessions:
    """All sessions of a server, and those that were only requested."""

    def __init__(self, tally: Tally | None = None) -> None:
        #: Offers are made in threads.
        self._lock = threading.Lock()
        self._offers: dict[str, Offer] = {}
        self._tally: Tally = tally or OwnTally()
        self._live: set[LiveSession] = set()

    @property
    def count(self) -> int:
        """How many there are."""
        return self._tally.count(_ALL)

    def offer(self, user: str, target: SessionTarget, wanted: SessionRequest) -> str:
        """Offer a session; returns its key."""
        now_s = monotonic()
        key = f"{wanted.kind.name}-{secrets.token_urlsafe(24)}"
        with self._lock:
            for old in [each for each, offer in self._offers.items() if offer.until_s < now_s]:
                del self._offers[old]
            if sum(offer.user == user for offer in self._offers.values()) >= MOST_KEYS:
                raise Throttled(f"{user} has asked for {MOST_KEYS} sessions and opened none.")
            self._offers[key] = Offer(user, target, wanted, now_s + KEY_S)
        return key

    def take(self, user: str, kind: SessionKind, workflow: str, key: str) -> Offer | None:
        """Redeem a key for its offer; `None`: the key is not valid.

        A key is valid once, and for its own user, kind and workflow only.
        """
        with self._lock:
            found = self._offers.get(key)
            fits = (
                found is not None
                and found.user == user
                and found.wanted.kind is kind
                and workflow == found.target.workflow_id
                and found.until_s >= monotonic()
            )
            return self._offers.pop(key) if fits else None

    async def announced(
        self, user: str, kind: SessionKind, workflow: str, key: str
    ) -> AnnouncedSession:
        """The session that announced this connection; waits a moment for the announcement."""
        until_s = monotonic() + ANNOUNCED_S
        while True:
            own = [
                each
                for each in self._live
                if each.user == user
                and each.kind is kind
                and each.target.workflow_id == workflow
                and not each.ended
            ]
            for each in own:
                if key in each.keys:
                    each.keys.remove(key)
                    return each
            if not own or monotonic() > until_s:
                raise NotFound(UNKNOWN_KEY)
            await asyncio.sleep(0.02)

    @contextmanager
    def counted(self, user: str) -> Generator[None]:
        """Count a session while it lives; refuses if there are too many."""
        # Comparing and counting is one step, so the limits are never exceeded.
        own = Want(f"sessions of {user}", 1, PER_USER)
        refused = self._tally.take(own, Want(_ALL, 1, IN_ALL))
        if refused is own:
            raise Throttled(f"{user} has {PER_USER} sessions already; end some of them.")
        if refused is not None:
            raise Unavailable(
                f"There are {IN_ALL} sessions, as many as this server has; try again."
            )
        try:
            yield
        finally:
            self._tally.give_back(own.key, 1)
            self._tally.give_back(_ALL, 1)

    @contextmanager
    def living(self, session: LiveSession) -> Generator[None]:
        """Let connections find a session while it lives."""
        self._live.add(session)
        try:
            yield
        finally:
            self._live.discard(session)
            session.close()
