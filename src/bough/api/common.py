"""JSON of any form, the body of errors, and how streams end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    #: JSON of any form. It must be checked before it is used, so it is no `Any`.
    Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
else:
    Json = Any

#: Prefix of the line that replaces a log that is not kept.
LOG_NOT_KEPT = "Nothing is kept of what "
#: The last line of a stream when the server stops.
STREAM_STOPPED = "(The server is being stopped; ask again to read on.)\n"

Priority = Literal["HIGH", "NORMAL", "LOW"]


class ErrorBody(msgspec.Struct, frozen=True):
    """The body of every error."""

    message: str
    #: The codes of existing clients: USER, USAGE, DATABASE or SERVER.
    error_code: str = "USER"
    #: The record of a workflow that was refused.
    workflow_id: str | None = None
    #: For programs; see the reference of error codes.
    code: str = "invalid"
    hint: str = ""
    details: tuple[str, ...] = ()
