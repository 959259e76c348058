"""How a route is declared: its path, its method, and what one must be allowed to do.

Handlers run in threads, since use cases wait for the database. Must not know any route.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Annotated, Any

from litestar import MediaType, Request, delete, get, patch, post, put
from litestar.datastructures import State
from litestar.openapi import ResponseSpec
from litestar.params import QueryParameter

from bough.control.site import Site
from bough.model.access import Action, Actor
from bough.server.permission import Scope, permit
from bough.server.shapes import ErrorBody

Visit = Request[Actor, Any, State]

#: Pages are no longer than this; existing clients ask for as many at most.
MAXIMUM_PAGE = 1_000
#: What fits into every database.
MAXIMUM_NUMBER = 2**53

Limit = Annotated[int, QueryParameter(ge=1, le=MAXIMUM_PAGE)]
Offset = Annotated[int, QueryParameter(ge=0, le=MAXIMUM_NUMBER)]
Number = Annotated[int, QueryParameter(ge=0, le=MAXIMUM_NUMBER)]
OptionalNumber = Annotated[int | None, QueryParameter(ge=0, le=MAXIMUM_NUMBER)]

_METHODS = {"GET": get, "POST": post, "PUT": put, "PATCH": patch, "DELETE": delete}
_ERRORS = {
    400: "What was sent cannot be right",
    401: "It is not known who asks",
    403: "The one who asks may not",
    404: "Something that was named does not exist",
    409: "Right in itself, but not in this state",
    413: "The body is too large",
    429: "Too much at once; try again",
    503: "Not now; try again",
}


def route(
    method: str,
    path: str,
    action: Action,
    scope: Scope = Scope.NOTHING,
    *,
    status: int = 200,
    **options: Any,
) -> Any:
    """Declare a handler. Success is 200 unless it says otherwise, for POST and DELETE too."""
    responses = {
        code: ResponseSpec(ErrorBody, description=text, generate_examples=False)
        for code, text in _ERRORS.items()
    }

    def declare(handler: Callable[..., Any]) -> Any:
        threaded = None if iscoroutinefunction(handler) else True
        return _METHODS[method](
            path,
            opt=permit(action, scope),
            status_code=status,
            sync_to_thread=threaded,
            responses=responses,
            operation_id=handler.__name__,
            summary=(handler.__doc__ or "").partition("\n")[0],
            **options,
        )(handler)

    return declare


def text_route(path: str, action: Action, scope: Scope = Scope.NOTHING) -> Any:
    """Declare a handler that answers with lines of text as they come."""
    return route("GET", path, action, scope, media_type=MediaType.TEXT)


def caller(request: Visit) -> tuple[Site, Actor]:
    """The site, and the one who asks, as the guard found out."""
    return request.app.state.desk.site, request.user
