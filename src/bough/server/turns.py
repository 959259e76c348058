"""Whose turn it is: few requests of one user are worked on at the same time.

So whoever sends many that take long waits for their own, and nobody else for them. Those that are
open to everybody, as whether the server is well, are answered whatever users do. Must not know any
route.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, Semaphore, to_thread
from anyio.lowlevel import RunVar

from bough.errors import Throttled

#: Requests of one user at one time; how many more may wait for their turn.
AT_ONCE = 10
WAITING = 200
#: Streams that one user can have open.
STREAMS = 200
#: Requests at one time of those who do not say who they are.
STRANGERS = 8

Result = TypeVar("Result")


class _Turns:
    """Everything that is under way in one event loop."""

    def __init__(self) -> None:
        self.strangers = CapacityLimiter(STRANGERS)
        self.streams: Counter[str] = Counter()
        #: Forgotten as soon as nobody uses one.
        self._users: WeakValueDictionary[tuple[str, int], Semaphore] = WeakValueDictionary()

    def of(self, user: str, at_once: int) -> Semaphore:
        """The turns of a user among the requests of which so many may be worked on at once."""
        found = self._users.get((user, at_once))
        if found is None:
            found = self._users[user, at_once] = Semaphore(at_once, fast_acquire=True)
        return found


_TURNS: RunVar[_Turns] = RunVar("turns")


async def take_turn(user: str, work: Callable[[], Result], at_once: int = AT_ONCE) -> Result:
    """Do something in a thread when it is the user's turn; nobody: for a stranger."""
    turns = _turns()
    if not user:
        return await to_thread.run_sync(work, limiter=turns.strangers)
    own = turns.of(user, at_once)
    if own.statistics().tasks_waiting >= WAITING:
        raise Throttled(f"{user} waits for {WAITING} answers already; try again.")
    async with own:
        return await to_thread.run_sync(work)


def check_streams(user: str) -> None:
    """Refuse another stream to somebody who has enough of them."""
    if _turns().streams[user] >= STREAMS:
        raise Throttled(f"{user} has {STREAMS} streams open already; close some of them.")


async def counted(user: str, texts: AsyncIterator[str]) -> AsyncIterator[str]:
    """A stream that counts while it is open."""
    with streaming(user):
        async for text in texts:
            yield text


@contextmanager
def streaming(user: str) -> Iterator[None]:
    """Count a stream while it is open."""
    streams = _turns().streams
    streams[user] += 1
    try:
        yield
    finally:
        streams[user] -= 1
        if not streams[user]:
            del streams[user]


def _turns() -> _Turns:
    turns = _TURNS.get(None)
    if turns is None:
        turns = _Turns()
        _TURNS.set(turns)
    return turns
