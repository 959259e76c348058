"""What can go wrong with a request: the apiserver refuses it, or no answer comes.

BoughError
└── KubeFailure
    ├── KubeRefused    the apiserver answered, but did not do what was asked
    │   ├── KubeNotFound   404
    │   ├── AlreadyExists  409: an object of this name exists
    │   ├── KubeConflict   409: the object is not what the request assumes (version, uid, bound)
    │   ├── Gone           410: the apiserver no longer knows this version; list again
    │   └── Busy           429: not now; nothing was done
    └── Unreachable    no answer came, so it may or may not have been done
        └── Silent         a stream is open, and nothing came for too long
"""

from __future__ import annotations

import msgspec

from bough.errors import BoughError


class KubeFailure(BoughError):
    """A request to Kubernetes failed."""

    code = "kubernetes"
    http_status = 503


class KubeRefused(KubeFailure):
    """The apiserver refused a request."""

    def __init__(self, message: str, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        #: The HTTP status of the answer, for example 403.
        self.status = status
        #: Kubernetes' own word for it, for example `Forbidden`; empty if it gave none.
        self.reason = reason
        #: How long the apiserver asks us to wait before a retry, if it says so.
        self.retry_after_s: float | None = None


class KubeNotFound(KubeRefused):
    """There is no such object, or no such kind."""


class AlreadyExists(KubeRefused):
    """An object of this name is there already."""


class KubeConflict(KubeRefused):
    """The object is not what the request supposes: another version, another uid, bound already."""


class Gone(KubeRefused):
    """The apiserver no longer knows this version; list again."""


class Busy(KubeRefused):
    """Not now: too many requests, or a disruption budget forbids it. Nothing was done."""


class Unreachable(KubeFailure):
    """No answer came. What was asked for may have been done, unless `sent` is false."""

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        #: Whether the request may have reached the apiserver.
        self.sent = sent


class Silent(Unreachable):
    """A stream is open, and nothing came for too long."""


class _RefusalStatus(msgspec.Struct):
    """The apiserver's own description of a failure."""

    message: str = ""
    reason: str = ""
    code: int = 0


_BY_STATUS: dict[int, type[KubeRefused]] = {
    404: KubeNotFound,
    409: KubeConflict,
    410: Gone,
    429: Busy,
}


def is_final(error: BoughError) -> bool:
    """Whether the same request would be refused again: it is invalid, or forbidden."""
    if isinstance(error, Busy) or not isinstance(error, KubeRefused):
        return False
    return 400 <= error.status < 500


def read_refusal(status: int, body: bytes | msgspec.Raw) -> KubeRefused:
    """The failure in an answer or a watch event; if `status` is 0, the body has it."""
    try:
        told = msgspec.json.decode(body, type=_RefusalStatus)
    except msgspec.MsgspecError:
        told = _RefusalStatus(message=bytes(body)[:200].decode("utf-8", "replace"))
    status = status or told.code
    kind = AlreadyExists if told.reason == "AlreadyExists" else _BY_STATUS.get(status, KubeRefused)
    return kind(told.message or f"status {status}", status, told.reason)
