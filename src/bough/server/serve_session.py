"""Makes the connection of a request a session with a task, and watches over it.

What comes on the connection is none of the server's business: it is handed over to a process near
the task. The server watches whether the user still has the right, and records begin and end.
"""

from __future__ import annotations

import logging
import socket
from functools import partial

import msgspec
from anyio import to_thread

from bough.control.workflows import sessions as use_case
from bough.errors import BoughError, Invalid, Unavailable
from bough.model.session import SessionConnection
from bough.server.connections import CONNECTION, ServedConnection
from bough.server.loop_view import LoopView
from bough.server.route_declaration import Visit, caller
from bough.server.sessions import AnnouncedSession, LiveSession, Offer, Sessions
from bough.server.stream_access import StreamAccess
from bough.websocket import handshake
from bough.websocket.channels import PROTOCOL

LOG = logging.getLogger(__name__)
#: How often to check that a session is still allowed.
_CHECK_S = 1.0
_STOPPED = "the server was stopped"


def check_upgrade(request: Visit) -> None:
    """Refuse what does not ask for a websocket."""
    fault = handshake.fault_of(request.headers)
    if fault is not None:
        raise Invalid(f"This is the address of a session: {fault}.")


async def serve(request: Visit, offer: Offer) -> None:
    """Make the connection of a request a session, counted for its user, and stay until its end."""
    sessions: Sessions = request.app.state.sessions
    with sessions.counted(offer.user):
        await _live(request, sessions, offer)


async def _live(request: Visit, sessions: Sessions, offer: Offer) -> None:
    """Open a session, hand the connection over, and watch until it ends."""
    site, actor = caller(request)
    engine: LoopView = request.app.state.engine
    speaks = handshake.offers(request.headers, PROTOCOL)
    wanted = msgspec.structs.replace(
        offer.wanted, channels=speaks, halves=speaks, terminal=offer.wanted.terminal or not speaks
    )
    opened = partial(use_case.open_session, site, engine.backends, offer.target, wanted)
    line = await to_thread.run_sync(opened)
    session = LiveSession(line, actor.name, offer.target, wanted.kind)
    reason = "the server failed"
    with sessions.living(session):
        identity = site.ids.uuid()
        begin = partial(use_case.record_begin, site, actor, offer.target, wanted, identity)
        await to_thread.run_sync(begin)
        try:
            hand_over(request, session, "")
            reason = await _watch(request, session, engine)
        finally:
            end = partial(
                use_case.record_end,
                site,
                actor,
                offer.target,
                wanted.kind,
                identity,
                reason=reason,
                exit_code=session.exit_code,
            )
            await _record(end)


async def _record(end: partial[None]) -> None:
    try:
        await to_thread.run_sync(end)
    except BoughError as error:
        # The session has ended all the same.
        LOG.warning("the end of a session could not be recorded: %s", error.message)


async def _watch(request: Visit, session: LiveSession, engine: LoopView) -> str:
    """Wait for the end of a session; why it ended."""
    access = StreamAccess(request)
    while not await session.wait(_CHECK_S):
        if engine.stopping.is_set():
            session.tell_why(_STOPPED)
            return _STOPPED
        try:
            await to_thread.run_sync(access.check)
        except Unavailable:
            continue
        except BoughError as error:
            reason = f"the right to it was lost: {error.message}"
            session.tell_why(reason.removesuffix("."))
            return reason
    return "it ended"


def hand_over(request: Visit, session: AnnouncedSession, key: str) -> None:
    """Give the connection of a request to a session, as the websocket of a key."""
    connection, head, rest = accept(request)
    session.hand_over(connection, SessionConnection(head, rest, key))


def accept(request: Visit) -> tuple[socket.socket, bytes, bytes]:
    """Take the connection of a request; the answer to send first, and what has come already."""
    found = request.scope.get("state", {}).get(CONNECTION)
    if not isinstance(found, ServedConnection):
        raise Unavailable("This server cannot hand connections over.")
    protocol = PROTOCOL if handshake.offers(request.headers, PROTOCOL) else None
    head = handshake.answer(request.headers, protocol)
    connection, rest = found.hand_over()
    return connection, head, rest
