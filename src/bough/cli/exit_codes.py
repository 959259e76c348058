"""How commands end. All have the same codes, which scripts for `osmo` know."""

from __future__ import annotations

from bough.errors import BoughError, Refused, Unavailable

DONE = 0
#: The answer is no, which is no error: a workflow is refused, a request does not fit.
REFUSED = 1
ERROR = 2
INTERRUPTED = 3
NO_SERVER = 10
TOO_MANY = 75

#: What the help says about them.
MEANINGS = {
    DONE: "done, or yes",
    REFUSED: "refused, or no",
    ERROR: "error, or wrong usage",
    INTERRUPTED: "interrupted",
    NO_SERVER: "no server",
    TOO_MANY: "too many requests",
}


def exit_code(error: BoughError) -> int:
    """The exit code of a command that failed with this error."""
    if isinstance(error, Refused):
        return REFUSED
    if error.http_status == 429:
        return TOO_MANY
    # An error that a server sent has the status of the answer; others have that of their class.
    failed = vars(error).get("http_status", 0) >= 500
    return NO_SERVER if failed or isinstance(error, Unavailable) else ERROR
