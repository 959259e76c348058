"""The server itself: version, health, metrics, OpenAPI; and the stream of events."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import msgspec
from anyio import sleep, to_thread
from litestar import MediaType, Response
from litestar.params import FromQuery
from litestar.response import Stream

from bough.api.common import Json
from bough.api.system import EventLine, HealthAnswer, ServerKeyAnswer, VersionAnswer
from bough.control.nodes import node_list
from bough.control.records import change_history
from bough.control.records.event_stream import follow
from bough.errors import BoughError, Invalid, Unavailable
from bough.model.access import Action
from bough.model.change_record import StoredEvent
from bough.server.client_versions import newest_version
from bough.server.concurrency_limits import count_stream
from bough.server.loop_view import LoopView
from bough.server.route_declaration import MAXIMUM_NUMBER, OptionalNumber, Visit, caller, route
from bough.server.server_key import ServerKey
from bough.server.stream_access import StreamAccess
from bough.server.values import time_text
from bough.version import VERSION

#: How often to look for new events, and after how many looks a keep-alive is sent.
_LOOK_S = 0.5
_LOOKS = 30
_NUMBER = re.compile(r"[0-9]{1,16}")
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@route("GET", "/api/version", Action.SYSTEM_VERSION)
def version(request: Visit) -> VersionAnswer:
    """The version of the server."""
    del request
    return _version()


@route("GET", "/client/version", Action.SYSTEM_VERSION, answer=VersionAnswer)
def client_version(request: Visit) -> Response[VersionAnswer] | Response[str]:
    """The version that clients should have (default: the version of the server)."""
    newest = newest_version(caller(request)[0])
    if "text/plain" in request.headers.get("accept", ""):
        return Response(newest, media_type=MediaType.TEXT)
    return Response(_version(newest))


def _version(text: str = VERSION) -> VersionAnswer:
    major, minor, revision = text.split(".")[:3]
    return VersionAnswer(major, minor, revision)


@route("GET", "/api/server-key", Action.SYSTEM_VERSION)
async def server_key(request: Visit, challenge: FromQuery[str]) -> ServerKeyAnswer:
    """Prove the server's identity: it signs a challenge from the client with its key."""
    # As the server sees it: behind a proxy it is another one than the client's.
    host, port = request.scope.get("server") or ("", 0)
    key: ServerKey = request.app.state.server_key
    return key.prove(challenge, f"{host}:{port}")


@route("GET", "/health", Action.SYSTEM_HEALTH)
def health(request: Visit) -> HealthAnswer:
    """Whether the server and its database answer; `reasons` lists what does not work."""
    site, _ = caller(request)
    engine: LoopView = request.app.state.engine
    change_history.last_event(site)
    if engine.stopping.is_set():
        raise Unavailable("The scheduler does not run.")
    reasons = [*filter(None, [engine.fault]), *request.app.state.faults()]
    status = "degraded" if reasons else "ok"
    return HealthAnswer(status, engine.leads, node_list.offline_backends(site), reasons)


@route("GET", "/metrics", Action.METRICS_READ, media_type=MediaType.TEXT)
def metrics(request: Visit) -> Response[str]:
    """Metrics for Prometheus."""
    return Response(request.app.state.gauges.text(request.user), media_type=_PROMETHEUS)


@route(
    "GET",
    "/api/openapi.json",
    Action.SYSTEM_VERSION,
    answer=dict[str, Json],
    include_in_schema=False,
)
def openapi(request: Visit) -> Response[bytes]:
    """The OpenAPI description of the whole interface."""
    state = request.app.state
    # It never changes, and takes a fifth of a second to put together.
    if "description" not in state:
        described = request.app.openapi_schema.to_schema()
        plain = {name: _one_of(part) for name, part in described.items()}
        state.description = msgspec.json.encode(plain)
    return Response(state.description, media_type=MediaType.JSON)


@route("GET", "/api/events", Action.EVENT_READ)
async def events(request: Visit, after: OptionalNumber = None) -> Stream:
    """A stream of events, from now on or after the event with a given number."""
    sent = request.headers.get("last-event-id")
    if after is None and sent is not None:
        # Other scripts have digits, too; and a number can be too long to be read at all.
        if not _NUMBER.fullmatch(sent) or int(sent) > MAXIMUM_NUMBER:
            raise Invalid(f"Last-Event-ID must be the number of an event, not {sent[:40]!r}.")
        after = int(sent)
    site, _ = caller(request)
    count_stream(request)
    begin = await to_thread.run_sync(change_history.last_event, site) if after is None else after
    return Stream(
        _events(request, begin),
        media_type="text/event-stream",
        headers={"cache-control": "no-cache", "x-accel-buffering": "no"},
    )


async def _events(request: Visit, number: int) -> AsyncIterator[str]:
    site, _ = caller(request)
    access = StreamAccess(request)
    engine: LoopView = request.app.state.engine
    # Sent at once, so that clients know that they are connected.
    yield f": after {number}\n\n"
    looks = 0
    while not engine.stopping.is_set():
        try:
            actor = await to_thread.run_sync(access.check)
            found, number = await to_thread.run_sync(follow, site, actor, number)
            looks += 1
            if looks % _LOOKS == 0:
                yield ": still here\n\n"
        except BoughError:
            return
        for event in found:
            yield _framed(event)
        if not found:
            await sleep(_LOOK_S)


def _one_of(part: Json) -> Json:
    """Without integers where numbers are allowed, too: of `oneOf`, a value may match only one."""
    if isinstance(part, dict):
        choices = part.get("oneOf")
        if isinstance(choices, list) and {"type": "number"} in choices:
            part = {**part, "oneOf": [each for each in choices if each != {"type": "integer"}]}
        return {key: _one_of(value) for key, value in part.items()}
    return [_one_of(each) for each in part] if isinstance(part, list) else part


def _framed(event: StoredEvent) -> str:
    body = EventLine(
        number=event.number,
        kind=event.kind,
        at=time_text(event.at_ms),
        subject=event.subject,
        pool=event.pool,
        message=event.message,
        data=event.data,
    )
    text = msgspec.json.encode(body).decode()
    return f"id: {event.number}\nevent: {event.kind.value}\ndata: {text}\n\n"


HANDLERS = (version, client_version, server_key, health, metrics, openapi, events)
