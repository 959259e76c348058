"""What a server said went wrong, as an error of this program. Must not know how it was asked."""

from __future__ import annotations

import json
from typing import Any

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


def failure(status: int, body: bytes) -> BoughError:
    """The error for an answer that is none; its status is the server's."""
    text = body.decode(errors="replace").strip()
    document = _document(text)
    message = str(document.get("message") or text or f"The server answered with status {status}.")
    error = _error(status, message, document)
    error.http_status = status
    return error


def _error(status: int, message: str, document: dict[str, Any]) -> BoughError:
    details = document.get("details")
    lines = tuple(map(str, details)) if isinstance(details, list) else ()
    hint = str(document.get("hint") or _HINTS.get(status, ""))
    if status == 400 and document.get("error_code") in _SUBMISSION:
        refused = Refused(message, workflow_id=document.get("workflow_id"))
        refused.hint, refused.details = hint, lines
        return refused
    found = _TYPES.get(status)
    if found is None:
        found = Unavailable if status > 500 else Invalid
    return found(message, hint=hint, details=lines)


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
