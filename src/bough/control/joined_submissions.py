"""Submissions to one pool that come at the same time are kept in one transaction, with one commit.

The first one writes; those that come meanwhile wait, and one of them writes all of these next. Each
has been checked before, against what is known of the pool: if that has changed, or anything goes
wrong before the commit, nothing is kept, and each of them is done alone. So none is harmed by
another one, and each is answered when it is on the disk. A thread may bring several at once, of
requests that have no thread of their own.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec
import sqlalchemy as sa

from bough.store import Store
from bough.store import pools as pool_store
from bough.store import submissions as submission_store
from bough.store import workflows as workflow_store
from bough.store.database import GivenUp
from bough.store.submissions import NewSubmission

#: The most submissions in one transaction.
MOST = 32


class Draft(msgspec.Struct, frozen=True):
    """A submission that was checked, and only lacks its number."""

    #: The pool that is held; for a subpool the one above it.
    pool: str
    #: The name of the workflow.
    name: str
    #: The counter `SETUP` of what it was checked against.
    setup: int
    #: All of it, given its number.
    finish: Callable[[int], NewSubmission]


class JoinedSubmissions:
    """Lets submissions of one process wait for each other. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Those that wait, by pool; a pool is here as long as one of its submissions writes.
        self._waiting: dict[str, list[_Entry]] = {}

    def keep(
        self, store: Store, drafts: Sequence[Draft], wake: Callable[[], None]
    ) -> Sequence[NewSubmission] | None:
        """Keep submissions to one pool, and return them as they were kept.

        `None`: nothing was kept, and each of them has to be done alone. `wake` is called once for
        all that are kept together.
        """
        entry = _Entry(drafts)
        with self._lock:
            others = self._waiting.get(entry.pool)
            if others is None:
                self._waiting[entry.pool] = [entry]
            else:
                others.append(entry)
        if others is not None:
            entry.told.acquire()
        if others is None or entry.leads:
            self._lead(store, entry)
            if entry.kept is not None:
                wake()
        if entry.error is not None:
            raise entry.error
        return entry.kept

    def _lead(self, store: Store, own: _Entry) -> None:
        """Write those that wait, which one's own is the first of; then another one does."""
        pool = own.pool
        with self._lock:
            waiting = self._waiting[pool]
            many = _fitting(waiting)
            batch, self._waiting[pool] = waiting[:many], waiting[many:]
        try:
            _write(store, batch)
        finally:
            with self._lock:
                waiting = self._waiting[pool]
                if waiting:
                    waiting[0].leads = True
                    waiting[0].told.release()
                else:
                    del self._waiting[pool]
            for each in batch:
                if each is not own:
                    each.told.release()


class _Entry:
    """Submissions of one thread that wait, and their outcome."""

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self.drafts = drafts
        self.pool = drafts[0].pool
        #: Free once there is an outcome, or once this one has to write.
        self.told = threading.Lock()
        self.told.acquire()
        self.leads = False
        self.kept: Sequence[NewSubmission] | None = None
        self.error: Exception | None = None


def _fitting(waiting: Sequence[_Entry]) -> int:
    """How many of those that wait are written next: the first, and more while there is room."""
    size = 0
    for number, each in enumerate(waiting):
        size += len(each.drafts)
        if number and size > MOST:
            return number
    return len(waiting)


class _Changed(Exception):
    """What a submission was checked against is no longer so."""


def _write(store: Store, batch: Sequence[_Entry]) -> None:
    """Keep all of them, or none; says to each of them what came of it."""
    under_way = False
    try:
        with store.write() as connection:
            under_way = True
            kept = _add(connection, [draft for each in batch for draft in each.drafts])
            under_way = False
    except (_Changed, GivenUp):
        return
    except Exception as error:
        # If it failed before it was written, one of them may be the reason. Otherwise it is the
        # database; and whether it was committed is not known, so it must not be done again.
        if not under_way:
            for each in batch:
                each.error = error
        return
    rest = iter(kept)
    for each in batch:
        each.kept = [next(rest) for _ in each.drafts]


def _add(connection: sa.Connection, drafts: Sequence[Draft]) -> Sequence[NewSubmission]:
    pool_store.hold(connection, drafts[0].pool)
    numbers: dict[str, Iterator[int]] = {}
    for name, many in sorted(Counter(each.name for each in drafts).items()):
        drawn, setup = workflow_store.next_numbers(connection, name, many)
        if any(each.setup != setup for each in drafts):
            raise _Changed
        numbers[name] = iter(drawn)
    new = [each.finish(next(numbers[each.name])) for each in drafts]
    submission_store.add(connection, new)
    return new
