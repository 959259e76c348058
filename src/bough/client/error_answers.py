"""An error that a server answered, as one of `bough.errors`."""

from __future__ import annotations

import msgspec

from bough.api.common import ErrorBody
from bough.errors import (
    BoughError,
    Broken,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Refused,
    Throttled,
    Unauthenticated,
    Unavailable,
)

_TYPES: dict[int, type[BoughError]] = {
    error.http_status: error
    for error in (Invalid, Unauthenticated, Forbidden, NotFound, Conflict, Throttled, Broken)
}
#: Codes of errors about a workflow that was submitted.
_SUBMISSION = ("USAGE", "RESOURCE", "CREDENTIAL")
_HINTS = {
    401: "log in with `bough login URL`, or set BOUGH_TOKEN",
    403: "`bough profile list` shows your roles and the pools they reach",
}


def failure(status: int, content: bytes) -> BoughError:
    """The error for an answer with an error status, which it keeps."""
    text = content.decode(errors="replace").strip()
    try:
        body = msgspec.json.decode(content, type=ErrorBody)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # A proxy between may answer with a page of its own.
        body = ErrorBody(text)
    message = body.message or text or f"The server answered with status {status}."
    error = _error(status, message, body)
    error.hint = body.hint or _HINTS.get(status, "")
    error.details = body.details
    error.http_status = status
    return error


def _error(status: int, message: str, body: ErrorBody) -> BoughError:
    if status == 400 and body.error_code in _SUBMISSION:
        return Refused(message, workflow_id=body.workflow_id)
    found = _TYPES.get(status)
    if found is None:
        found = Unavailable if status > 500 else Invalid
    return found(message)
