"""How many requests and streams of one user are served at the same time.

A user who sends many slow requests waits for these, and other users do not. Requests that need no
user, such as the check of health, have a limit of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, Semaphore, to_thread
from anyio.lowlevel import RunVar

from bough.errors import Busy, Invalid, Throttled
from bough.server.authenticator import Connection

#: Requests of one user that are served at once, and how many more may wait.
AT_ONCE = 10
WAITING = 200
#: Streams that one user can have open.
STREAMS = 200
#: What the bodies of one user's requests have together, until these are answered.
BODIES_BYTES = 64 << 20
#: What the bodies of all users' requests have together.
ALL_BODIES_BYTES = 256 << 20
#: What the body of a request without a user has.
ANONYMOUS_BODY_BYTES = 64 << 10
#: Requests without a user that are served at once.
ANONYMOUS = 8

#: The name of the stack in the scope of a request.
AT_END = "bough.at_end"

Result = TypeVar("Result")


class _Limits:
    """The requests and streams of one event loop."""

    def __init__(self) -> None:
        self.anonymous = CapacityLimiter(ANONYMOUS)
        self.streams: Counter[str] = Counter()
        self.bodies: Counter[str] = Counter()
        #: Dropped with its last request.
        self._users: WeakValueDictionary[tuple[str, int], Semaphore] = WeakValueDictionary()

    def of(self, user: str, at_once: int) -> Semaphore:
        """The semaphore of a user for the routes with one limit."""
        found = self._users.get((user, at_once))
        if found is None:
            found = self._users[user, at_once] = Semaphore(at_once, fast_acquire=True)
        return found


_LIMITS: RunVar[_Limits] = RunVar("concurrency limits")


async def run_limited(user: str, work: Callable[[], Result], at_once: int = AT_ONCE) -> Result:
    """Run a request in a thread, as soon as the user has fewer than `at_once`."""
    limits = _limits()
    if not user:
        return await to_thread.run_sync(work, limiter=limits.anonymous)
    own = limits.of(user, at_once)
    if own.statistics().tasks_waiting >= WAITING:
        raise Throttled(f"{user} waits for {WAITING} answers already; try again.")
    async with own:
        return await to_thread.run_sync(work)


class BodyCount:
    """What was received of one request's body; counted for its user until the request ends."""

    def __init__(self) -> None:
        self._user = ""
        self._size = 0

    def add(self, user: str, size: int) -> None:
        """A part came; refused where the bodies of the user are too much together."""
        bodies = _limits().bodies
        if not user and self._size + size > ANONYMOUS_BODY_BYTES:
            most = f"{ANONYMOUS_BODY_BYTES >> 10} KiB"
            raise Invalid(f"The body is larger than {most}, the most without a user.")
        if user and bodies[user] + size > BODIES_BYTES:
            raise Throttled(
                f"{user} has sent {BODIES_BYTES >> 20} MiB in requests that are not answered yet; "
                "send them one after the other."
            )
        if user and bodies.total() + size > ALL_BODIES_BYTES:
            raise Busy("All users together have sent too much that is not answered yet; try again.")
        self._user = user
        self._size += size
        if user:
            bodies[user] += size

    def close(self) -> None:
        """The request is answered."""
        if self._user and self._size:
            bodies = _limits().bodies
            bodies[self._user] -= self._size
            if bodies[self._user] <= 0:
                del bodies[self._user]


def count_stream(request: Connection) -> None:
    """Count a stream until its request ends, however it ends; refused where there are too many."""
    at_end(request).enter_context(_counted(request.user.name))


def at_end(request: Connection) -> ExitStack:
    """Called as soon as a request is answered, or its client has gone; see `middleware`."""
    return request.scope[AT_END]  # pyright: ignore[reportGeneralTypeIssues] - of our own


@contextmanager
def _counted(user: str) -> Iterator[None]:
    streams = _limits().streams
    # Nothing runs between the check and the count, so the limit is never exceeded.
    if streams[user] >= STREAMS:
        raise Throttled(f"{user} has {STREAMS} streams open already; close some of them.")
    streams[user] += 1
    try:
        yield
    finally:
        streams[user] -= 1
        if not streams[user]:
            del streams[user]


def _limits() -> _Limits:
    limits = _LIMITS.get(None)
    if limits is None:
        limits = _Limits()
        _LIMITS.set(limits)
    return limits
