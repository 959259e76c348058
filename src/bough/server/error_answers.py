"""Errors as answers: one body for all of them, with the status of whose fault it is.

An unexpected error is logged with a number, and the answer has the number alone.
"""

from __future__ import annotations

import logging
import secrets
from http import HTTPStatus

import msgspec
from litestar import Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.types import ExceptionHandlersMap

from bough.api.common import ErrorBody
from bough.errors import BoughError, Busy, Invalid, Refused, Unavailable
from bough.formats.workflow.values import workflow_fault
from bough.server.authenticator import Visit

LOG = logging.getLogger(__name__)

USER = "USER"
USAGE = "USAGE"
DATABASE = "DATABASE"
SERVER = "SERVER"

_CODES = {
    400: "invalid",
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    429: "throttled",
    415: "invalid",
}


def answer_error(_request: Visit, error: BoughError) -> Response[ErrorBody]:
    """Answer one of Bough's own errors."""
    if error.http_status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return answer_bug(_request, error)
    body = ErrorBody(
        message=error.message,
        error_code=_error_code(error),
        workflow_id=error.workflow_id if isinstance(error, Refused) else None,
        code=error.code,
        hint=error.hint,
        details=error.details,
    )
    headers = {"www-authenticate": "Bearer"} if error.http_status == 401 else {}
    if isinstance(error, Busy):
        headers["retry-after"] = str(error.retry_after_s)
    return Response(body, status_code=error.http_status, headers=headers)


def answer_http(request: Visit, error: HTTPException) -> Response[ErrorBody]:
    """What the framework refuses: no such path, a body or a parameter of the wrong form."""
    status = error.status_code
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return answer_bug(request, error)
    details = _details(error) if isinstance(error, ValidationException) else ()
    message = details[0] if details else f"{error.detail or HTTPStatus(status).phrase}."
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        message = _too_large(request)
    body = ErrorBody(
        message=message.replace("..", "."),
        error_code=USER,
        code=_CODES.get(status, "invalid"),
        hint=_without_pages(request.url.path) if status == HTTPStatus.NOT_FOUND else "",
        details=details,
    )
    return Response(body, status_code=status, headers=error.headers)


def answer_depth(request: Visit, error: RecursionError) -> Response[ErrorBody]:
    """A body that is nested deeper than it can be read, or else a bug."""
    if "deserializing" in str(error):
        return answer_error(request, Invalid("The body is nested too deep to be read."))
    return answer_bug(request, error)


def answer_bug(request: Visit, error: Exception) -> Response[ErrorBody]:
    """An unexpected error."""
    number = secrets.token_hex(4)
    path = request.url.path
    LOG.error("%s: %s %s failed", number, request.method, path, exc_info=error)
    body = ErrorBody(
        message=f"Internal server error; the server's log has more under {number}.",
        error_code=SERVER,
        code="broken",
    )
    return Response(body, status_code=HTTPStatus.INTERNAL_SERVER_ERROR)


def _without_pages(path: str) -> str:
    """What helps people who open this server, or the overview of a workflow, in a browser."""
    workflow = path.removeprefix("/workflows/")
    if path != "/" and (workflow == path or workflow_fault(workflow) is not None):
        return ""
    command = "bough --help" if path == "/" else f"bough workflow query {workflow}"
    return f"This server has no web pages; `{command}` shows more in a terminal."


def _too_large(request: Visit) -> str:
    most = request.app.request_max_body_size
    size = f"{most / 2**20:g} MiB" if isinstance(most, int) else "its limit"
    return f"The body is larger than {size}, the most that this server takes."


def _error_code(error: BoughError) -> str:
    if isinstance(error, Refused):
        return USAGE
    if isinstance(error, Busy):
        return SERVER
    return DATABASE if isinstance(error, Unavailable) else USER


def _details(error: ValidationException) -> tuple[str, ...]:
    """A line for each parameter or field that is wrong."""
    extra = error.extra if isinstance(error.extra, list) else []
    found: list[str] = []
    for each in extra:
        if isinstance(each, dict):
            names = [each[key] for key in ("source", "key") if each.get(key)]
            what = " ".join(str(getattr(name, "value", name)) for name in names)
            found.append(f"{what}: {each.get('message', '')}" if what else str(each["message"]))
    return tuple(found) or (str(error.detail),)


def handlers() -> ExceptionHandlersMap:
    """The handler of each kind of error."""
    return {
        BoughError: answer_error,
        HTTPException: answer_http,
        msgspec.ValidationError: answer_bug,
        RecursionError: answer_depth,
        Exception: answer_bug,
    }
