"""The AdmissionReview of an apiserver: reading the request and writing the answer."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from bough.errors import BoughError, Invalid
from bough.kube_webhook.checks import Checked, Lookups, check

API_VERSION = "admission.k8s.io/v1"
#: How many problems an answer names; `bough gang check` names them all.
MOST_NAMED = 20
#: The most characters for one problem: names can be long, and so can cycles.
LONGEST_ERROR = 500
#: Clients show about this many characters of a warning.
LONGEST_WARNING = 250


class _Sent(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    operation: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: _Sent


_DECODER = msgspec.json.Decoder(_Review)


class ReviewCounts:
    """How many objects were accepted and refused, for metrics. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.allowed = self.refused = self.warned = 0

    def note(self, response: Mapping[str, Any]) -> None:
        """Count one more answer."""
        with self._lock:
            self.allowed += bool(response["allowed"])
            self.refused += not response["allowed"]
            self.warned += "warnings" in response


def answer_review(body: bytes, lookups: Lookups, counts: ReviewCounts | None = None) -> bytes:
    """The answer to an AdmissionReview; raises `Invalid` if the body is not one."""
    try:
        review = _DECODER.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Invalid(f"the body is not an AdmissionReview: {error}") from None
    if review.api_version != API_VERSION or review.kind != "AdmissionReview":
        raise Invalid(
            f"the body is {review.kind[:60]!r} of {review.api_version[:60]!r}, not an "
            f"AdmissionReview of {API_VERSION}"
        )
    response = _respond(review.request, lookups)
    if counts is not None:
        counts.note(response)
    answer = {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
    return msgspec.json.encode(answer)


def _respond(sent: _Sent, lookups: Lookups) -> dict[str, Any]:
    written = sent.object
    # Deletions are never held up, and an object that was accepted is not checked again when
    # nothing that is checked changes.
    if written is None or sent.operation == "DELETE" or _is_same(written, sent.old_object):
        return {"uid": sent.uid, "allowed": True}
    try:
        checked = check(written, lookups)
    except BoughError as error:
        checked = Checked((error.message,), ())
    response: dict[str, Any] = {"uid": sent.uid, "allowed": not checked.errors}
    if checked.errors:
        status = {"code": 422, "reason": "Invalid", "message": _message(checked.errors)}
        response["status"] = status
    if checked.warnings:
        shown = [_short(text, LONGEST_WARNING) for text in checked.warnings[:MOST_NAMED]]
        if len(checked.warnings) > MOST_NAMED:
            shown.append(f"... and {len(checked.warnings) - MOST_NAMED} more")
        response["warnings"] = shown
    return response


def _is_same(written: dict[str, Any], before: dict[str, Any] | None) -> bool:
    """Whether a change touches nothing that is checked, for example only the status."""
    if before is None:
        return False
    return written.get("spec") == before.get("spec") and _marks(written) == _marks(before)


def _marks(written: dict[str, Any]) -> tuple[object, object]:
    metadata: Any = written.get("metadata")
    if not isinstance(metadata, Mapping):
        return None, None
    fields = cast("Mapping[str, object]", metadata)
    return fields.get("labels"), fields.get("annotations")


def _message(errors: tuple[str, ...]) -> str:
    named = [_short(text, LONGEST_ERROR) for text in errors[:MOST_NAMED]]
    if len(errors) > MOST_NAMED:
        named.append(f"... and {len(errors) - MOST_NAMED} more")
    return "; ".join(named)


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
