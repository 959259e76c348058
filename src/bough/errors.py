"""The error tree, told apart by whose fault it is; codes are the same on both sides of the wire.

    BoughError
    ├── Invalid       yours: the request cannot be right, whatever the state
    │   └── Refused   yours: a workflow asks for more than its pool guarantees
    ├── Unauthenticated  yours: no valid token
    ├── Forbidden     yours: your roles do not allow it
    ├── NotFound      yours: what it names does not exist
    ├── Conflict      timing: right in itself, but not in this state
    ├── Throttled     timing: too much at once
    ├── Unavailable   ours: try again later
    │   ├── Busy        ours: try again in a moment
    │   └── NotLeading  ours: the scheduler of another server decides
    └── Broken        ours: an invariant of the core does not hold; always a bug

Nothing here depends on what the core decides or on how a message is shown.
"""

from __future__ import annotations

from typing import ClassVar


class BoughError(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "error"
    #: The default of the class; an error that came over the wire keeps the status it came with.
    http_status: int = 500

    def __init__(self, message: str = "", *, hint: str = "", details: tuple[str, ...] = ()) -> None:
        #: The docstring of the class is the default message.
        self.message = message or (type(self).__doc__ or "")
        #: What the reader can do about it.
        self.hint = hint
        #: A line for each single thing that is wrong, where there are several.
        self.details = details
        super().__init__(self.message)


class Invalid(BoughError):
    """The request is not valid."""

    code = "invalid"
    http_status = 400


class Refused(Invalid):
    """The workflow asks for more than its pool has to give."""

    code = "usage"

    def __init__(self, message: str = "", *, workflow_id: str | None = None) -> None:
        super().__init__(message)
        #: The record of the refusal, where one was kept.
        self.workflow_id = workflow_id
        #: What was refused.
        self.request = "submit"


class Unauthenticated(BoughError):
    """Say who you are: log in, or send a token that is valid."""

    code = "unauthenticated"
    http_status = 401


class Forbidden(BoughError):
    """Your roles do not allow this."""

    code = "forbidden"
    http_status = 403


class NotFound(BoughError):
    """What the request names does not exist."""

    code = "not_found"
    http_status = 404


class Conflict(BoughError):
    """The request does not fit the current state."""

    code = "conflict"
    http_status = 409


class Throttled(BoughError):
    """That was too much at once; try again later."""

    code = "throttled"
    http_status = 429


class Unavailable(BoughError):
    """Bough cannot answer right now; try again."""

    code = "unavailable"
    http_status = 503


class Busy(Unavailable):
    """Bough is busy, or a part of it is being started again; try again in a moment."""

    #: After how many seconds.
    retry_after_s = 1


class NotLeading(Unavailable):
    """Another server decides; nothing was changed."""


class Broken(BoughError):
    """An invariant does not hold. This is a bug in Bough; please report it."""

    code = "broken"
    http_status = 500
