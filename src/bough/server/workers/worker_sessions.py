"""Sessions of a server with several workers.

The key that one worker gave out may come back to another, and so may a further connection of a
session. So the server keeps the keys and knows which worker has which session; a connection that
comes to another worker is passed on to that one.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from time import monotonic

from anyio import to_thread

from bough.control.workflows.sessions import SessionTarget
from bough.errors import NotFound
from bough.model.session import SessionConnection, SessionKind, SessionRequest
from bough.server.bounded_counts import Tally
from bough.server.sessions import (
    ANNOUNCED_S,
    UNKNOWN_KEY,
    AnnouncedSession,
    LiveSession,
    Offer,
    Sessions,
)
from bough.server.workers.messages import (
    FindSession,
    MakeOffer,
    Offered,
    Redeemed,
    SessionAnnounced,
    SessionBegan,
    SessionEnded,
    TakeOffer,
    Whereabouts,
)
from bough.server.workers.passed_connections import ForSession, give
from bough.server.workers.server_link import ServerLink

#: How long the server may take to answer, and how often it is asked for a key.
_PATIENCE_S = 30.0
_LOOK_S = 0.05


class WorkerSessions(Sessions):
    """The sessions of one worker."""

    def __init__(self, worker: int, link: ServerLink, hands: socket.socket, tally: Tally) -> None:
        super().__init__(tally)
        self._worker = worker
        self._link = link
        self._hands = hands
        self._numbers = itertools.count(1)

    def offer(self, user: str, target: SessionTarget, wanted: SessionRequest) -> str:
        """Offer a session; returns its key."""
        number = self._link.number()
        asked = MakeOffer(number, user, target, wanted)
        return self._link.ask(number, asked, Offered, _PATIENCE_S).key

    def take(self, user: str, kind: SessionKind, workflow: str, key: str) -> Offer | None:
        """Redeem a key for its offer; `None`: the key is not valid."""
        number = self._link.number()
        asked = TakeOffer(number, user, kind, workflow, key)
        return self._link.ask(number, asked, Redeemed, _PATIENCE_S).offer

    async def announced(
        self, user: str, kind: SessionKind, workflow: str, key: str
    ) -> AnnouncedSession:
        """The session that announced this connection; waits a moment for the announcement."""
        until_s = monotonic() + ANNOUNCED_S
        while True:
            find = partial(self._find, user, kind, workflow, key)
            found = await to_thread.run_sync(find)
            if found.worker == self._worker:
                own = self._own(key)
                if own is not None:
                    return own
            elif found.worker is not None:
                return _SessionElsewhere(self._hands, found.worker)
            if not found.awaited or monotonic() > until_s:
                raise NotFound(UNKNOWN_KEY)
            await asyncio.sleep(_LOOK_S)

    @contextmanager
    def living(self, session: LiveSession) -> Generator[None]:
        """Let connections find a session while it lives, whichever worker they come to."""
        number = next(self._numbers)
        self._link.tell(
            SessionBegan(number, session.user, session.kind, session.target.workflow_id)
        )
        session.announce = lambda key: self._link.tell(SessionAnnounced(number, key))
        # What came before there was anything to tell.
        for key in tuple(session.keys):
            session.announce(key)
        try:
            with super().living(session):
                yield
        finally:
            self._link.tell(SessionEnded(number))

    def arrive(self, connection: socket.socket, told: SessionConnection) -> None:
        """Take a connection that came to another worker; one for a session that ended is closed."""
        own = self._own(told.key)
        if own is None:
            connection.close()
        else:
            own.hand_over(connection, told)

    def _find(self, user: str, kind: SessionKind, workflow: str, key: str) -> Whereabouts:
        number = self._link.number()
        asked = FindSession(number, user, kind, workflow, key)
        return self._link.ask(number, asked, Whereabouts, _PATIENCE_S)

    def _own(self, key: str) -> LiveSession | None:
        for each in self._live:
            if key in each.keys and not each.ended:
                each.keys.remove(key)
                return each
        return None


class _SessionElsewhere:
    """A session of another worker."""

    def __init__(self, hands: socket.socket, worker: int) -> None:
        self._hands = hands
        self._worker = worker

    def hand_over(self, connection: socket.socket, told: SessionConnection) -> None:
        """Give the session a connection of its client."""
        with connection:
            try:
                give(self._hands, ForSession(self._worker, told), connection)
            except OSError:
                # Closed with that, so the client can try again.
                return
