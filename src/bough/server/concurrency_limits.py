"""How many requests and streams of one user are served at the same time.

A user who sends many slow requests waits for these, and other users do not. Requests that need no
user, such as the check of health, have a limit of their own.

Where several workers answer, streams and bodies are counted together, and each worker works on its
part of the requests that are worked on at once.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from anyio import CapacityLimiter, Semaphore, to_thread

from bough.errors import Busy, Invalid, Throttled
from bough.server.authenticator import Connection
from bough.server.bounded_counts import OwnTally, Tally, Want

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

_BODIES = "bodies"

Result = TypeVar("Result")


class _Together:
    """The workers of a server, of which this process is one."""

    workers = 1
    #: `None`: this process counts alone.
    tally: Tally | None = None


def share_limits(workers: int, tally: Tally) -> None:
    """Say that this process is one of several workers, before it answers anything."""
    _Together.workers, _Together.tally = workers, tally


def part_of(limit: int) -> int:
    """The part of a limit that a worker has; at least one."""
    return max(1, limit // _Together.workers)


class _Limits:
    """The requests and streams of one event loop."""

    def __init__(self) -> None:
        self.anonymous = CapacityLimiter(part_of(ANONYMOUS))
        self.tally: Tally = _Together.tally or OwnTally()
        #: Dropped with its last request.
        self._users: WeakValueDictionary[tuple[str, int], Semaphore] = WeakValueDictionary()

    def of(self, user: str, at_once: int) -> Semaphore:
        """The semaphore of a user for the routes with one limit."""
        found = self._users.get((user, at_once))
        if found is None:
            own = part_of(at_once)
            found = self._users[user, at_once] = Semaphore(own, fast_acquire=True)
        return found


#: By event loop; asked several times for each request.
_LIMITS: WeakKeyDictionary[AbstractEventLoop, _Limits] = WeakKeyDictionary()


async def run_limited(
    user: str,
    work: Callable[[], Result],
    at_once: int = AT_ONCE,
    unthreaded: Callable[[], Awaitable[Result | None]] | None = None,
) -> Result:
    """Run a request in a thread, as soon as the user has fewer than `at_once`.

    unthreaded:  the same without a thread, which is tried first; `None`: it needs one.
    """
    limits = _limits()
    if not user:
        return await to_thread.run_sync(work, limiter=limits.anonymous)
    own = limits.of(user, at_once)
    most = part_of(WAITING)
    if own.statistics().tasks_waiting >= most:
        raise Throttled(f"{user} waits for {most} answers already; try again.")
    async with own:
        if unthreaded is not None and (done := await unthreaded()) is not None:
            return done
        return await to_thread.run_sync(work)


class BodyCount:
    """What was received of one request's body; counted for its user until the request ends."""

    def __init__(self) -> None:
        self._user = ""
        self._size = 0

    def add(self, user: str, size: int) -> None:
        """A part came; refused where the bodies of the user are too much together."""
        if not user and self._size + size > ANONYMOUS_BODY_BYTES:
            most = f"{ANONYMOUS_BODY_BYTES >> 10} KiB"
            raise Invalid(f"The body is larger than {most}, the most without a user.")
        if user and size:
            self._take(user, size)
            self._user = user
        self._size += size

    def _take(self, user: str, size: int) -> None:
        own = Want(_bodies_of(user), size, BODIES_BYTES)
        refused = _limits().tally.take(own, Want(_BODIES, size, ALL_BODIES_BYTES))
        if refused is None:
            return
        if refused is own:
            raise Throttled(
                f"{user} has sent {BODIES_BYTES >> 20} MiB in requests that are not answered yet; "
                "send them one after the other."
            )
        raise Busy("All users together have sent too much that is not answered yet; try again.")

    def close(self) -> None:
        """The request is answered."""
        if self._user and self._size:
            tally = _limits().tally
            tally.give_back(_bodies_of(self._user), self._size)
            tally.give_back(_BODIES, self._size)


def count_stream(request: Connection) -> None:
    """Count a stream until its request ends, however it ends; refused where there are too many."""
    at_end(request).enter_context(_counted(request.user.name))


def at_end(request: Connection) -> ExitStack:
    """Called as soon as a request is answered, or its client has gone; see `middleware`."""
    return request.scope[AT_END]  # pyright: ignore[reportGeneralTypeIssues] - of our own


@contextmanager
def _counted(user: str) -> Iterator[None]:
    tally, key = _limits().tally, f"streams of {user}"
    # Comparing and counting is one step, so the limit is never exceeded.
    if tally.take(Want(key, 1, STREAMS)) is not None:
        raise Throttled(f"{user} has {STREAMS} streams open already; close some of them.")
    try:
        yield
    finally:
        tally.give_back(key, 1)


def _bodies_of(user: str) -> str:
    return f"bodies of {user}"


def _limits() -> _Limits:
    loop = get_running_loop()
    limits = _LIMITS.get(loop)
    if limits is None:
        limits = _LIMITS[loop] = _Limits()
    return limits
