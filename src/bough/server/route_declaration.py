"""How a route is declared: its method, its path, and the permission that it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Annotated, TypedDict, Unpack, get_args, get_origin, get_type_hints

import msgspec
from litestar import MediaType, Response, delete, get, patch, post, put
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import ResponseSpec
from litestar.params import QueryParameter

from bough.api.common import ErrorBody
from bough.control.site import Site
from bough.model.access import Action, Actor
from bough.server.authenticator import Visit
from bough.server.concurrency_limits import AT_ONCE, run_limited
from bough.server.permissions import Permit, Scope, permit
from bough.store.database import again_if_given_up

#: Pages are no longer than this; existing clients ask for as many at most.
MAXIMUM_PAGE = 1_000
#: What fits into every database.
MAXIMUM_NUMBER = 2**53

Limit = Annotated[int, QueryParameter(ge=1, le=MAXIMUM_PAGE)]
#: Of workflows and tasks, of which interfaces ask for more at once.
WorkLimit = Annotated[int, QueryParameter(ge=1, le=10 * MAXIMUM_PAGE)]
Offset = Annotated[int, QueryParameter(ge=0, le=MAXIMUM_NUMBER)]
Number = Annotated[int, QueryParameter(ge=0, le=MAXIMUM_NUMBER)]
#: Of the first to show, from 1.
Position = Annotated[int, QueryParameter(ge=1, le=MAXIMUM_NUMBER)]
OptionalNumber = Annotated[int | None, QueryParameter(ge=0, le=MAXIMUM_NUMBER)]

#: The option of routes whose bodies need not be text.
BINARY = "binary"

#: A function that answers a request, as its types say.
Handler = Callable[..., object]
#: The same without a thread; its answer is `None` where it needs one.
Unthreaded = Callable[..., Awaitable[object | None]]

_METHODS = {"GET": get, "POST": post, "PUT": put, "PATCH": patch, "DELETE": delete}
_ERRORS = {
    400: "What was sent cannot be right",
    401: "The request has no valid token",
    403: "The user has no permission for it",
    404: "Something that the request names does not exist",
    409: "Right in itself, but not in this state",
    410: "It has ended, and cannot be reached any more",
    413: "The body is too large",
    429: "Too much at once; try again",
    503: "Not now; try again",
}


class _More(TypedDict, total=False):
    """What few routes say."""

    media_type: MediaType
    include_in_schema: bool
    #: The body is bytes, and need not be text.
    binary: bool
    #: Takes the same arguments, and is tried first, in the event loop.
    unthreaded: Unthreaded


class _Options(_More):
    """What the framework is told about a route."""

    opt: dict[str, Permit | bool]
    status_code: int
    responses: dict[int, ResponseSpec]


class Declared:
    """A handler with all that is declared about it; each application makes its own of it."""

    def __init__(
        self,
        fn: Handler,
        method: str,
        path: str,
        options: _Options,
        at_once: int = AT_ONCE,
        unthreaded: Unthreaded | None = None,
    ) -> None:
        self.fn = fn
        self._unthreaded = unthreaded
        self.method = method
        self.path = path
        self._options = options
        self._at_once = at_once

    @property
    def answer(self) -> object:
        """The type of what is sent: one of `bough.api`, `None`, or a stream of the framework."""
        declared = self._options["responses"].get(self._options["status_code"])
        found = get_type_hints(self.fn)["return"] if declared is None else declared.data_container
        return get_args(found)[0] if get_origin(found) is Response else found

    def make(self) -> HTTPRouteHandler:
        """A handler of the framework, which registers one only once."""
        return _METHODS[self.method](
            self.path,
            operation_id=self.fn.__name__,
            summary=(self.fn.__doc__ or "").partition("\n")[0],
            **self._options,
        )(self.fn if iscoroutinefunction(self.fn) else self._threaded())

    def _threaded(self) -> Callable[..., Awaitable[object]]:
        return _threaded(self.fn, self._at_once, self._unthreaded)


def _threaded(
    fn: Handler, at_once: int, unthreaded: Unthreaded | None
) -> Callable[..., Awaitable[object]]:
    """Use cases wait for the database, so they run in threads.

    The framework can do that too, but wraps a handler again for every further one of its path.
    """
    # The request is not answered yet, so it can be done again.
    work = again_if_given_up(fn)

    @wraps(fn)
    async def run(request: Visit, **arguments: object) -> object:
        call = partial(work, request=request, **arguments)
        soon = None if unthreaded is None else partial(unthreaded, request, **arguments)
        return await run_limited(request.user.name, call, at_once, soon)

    return run


def route(
    method: str,
    path: str,
    action: Action,
    scope: Scope = Scope.NOTHING,
    *,
    status: int = 200,
    answer: type | None = None,
    at_once: int = AT_ONCE,
    **more: Unpack[_More],
) -> Callable[[Handler], Declared]:
    """Declare a handler. Success is 200 unless it says otherwise, for POST and DELETE too.

    `answer` is the type of what is sent, where the handler does not say it; `at_once` how many
    such requests of one user are worked on at a time.
    """
    responses: dict[int, ResponseSpec] = {
        code: ResponseSpec(ErrorBody, description=text, generate_examples=False)
        for code, text in _ERRORS.items()
    }
    if answer is not None:
        responses[status] = ResponseSpec(answer, generate_examples=False)
    binary, unthreaded = more.pop("binary", False), more.pop("unthreaded", None)
    options: _Options = {
        "opt": {**permit(action, scope), BINARY: binary},
        "status_code": status,
        "responses": responses,
        **more,
    }
    return lambda fn: Declared(fn, method, path, options, at_once, unthreaded)


def text_route(
    path: str, action: Action, scope: Scope = Scope.NOTHING
) -> Callable[[Handler], Declared]:
    """Declare a handler that answers with lines of text as they come."""
    return route("GET", path, action, scope, media_type=MediaType.TEXT)


def json_text(text: str) -> Response[bytes]:
    """A bare text as JSON; the framework would send it without quotes."""
    return Response(msgspec.json.encode(text), media_type=MediaType.JSON)


def caller(request: Visit) -> tuple[Site, Actor]:
    """The site, and the user of the request, as the guard found them."""
    return request.app.state.authenticator.site, request.user
