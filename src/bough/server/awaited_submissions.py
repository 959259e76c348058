"""Submissions that wait for the commit in the event loop, without a thread for each of them.

A request whose checks ask the database nothing only waits until it is written. Those of one pool
that come while others are written are written next by the same thread, together, and all of them
hear the outcome in one turn of the event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from anyio import to_thread

from bough.control.joined_submissions import MOST, Draft
from bough.control.site import Site
from bough.store.submissions import NewSubmission

_Future = asyncio.Future[NewSubmission | None]
_Waiting = list[tuple[Draft, _Future]]


class AwaitedSubmissions:
    """The submissions of one server, of all its pools; requests of one event loop share it."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lock = threading.Lock()
        #: Those that wait, by pool; a pool is here as long as a thread writes its submissions.
        self._waiting: dict[str, _Waiting] = {}
        #: The event loop itself does not keep its tasks alive.
        self._tasks: set[asyncio.Task[None]] = set()

    async def keep(self, draft: Draft) -> NewSubmission | None:
        """Keep a submission, and return it as it was kept; `None`: it has to be done alone."""
        future: _Future = asyncio.get_running_loop().create_future()
        with self._lock:
            waiting = self._waiting.get(draft.pool)
            if waiting is None:
                self._waiting[draft.pool] = [(draft, future)]
            else:
                waiting.append((draft, future))
        if waiting is None:
            # A task of its own: the request that began may end before the others are written.
            task = asyncio.create_task(self._write(draft.pool))
            self._tasks.add(task)
            task.add_done_callback(partial(self._end, draft.pool))
        return await future

    async def _write(self, pool: str) -> None:
        await to_thread.run_sync(self._write_all, pool, asyncio.get_running_loop())

    def _write_all(self, pool: str, loop: asyncio.AbstractEventLoop) -> None:
        """Write what waits for a pool, until nothing does. In a thread.

        It need not wait for the event loop between two batches, which may be busy.
        """
        site = self._site
        while batch := self._next(pool):
            kept: Sequence[NewSubmission] | None = None
            fault: Exception | None = None
            try:
                drafts = [draft for draft, _ in batch]
                kept = site.joined_submissions.keep(site.store, drafts, site.wake)
            except Exception as error:
                fault = error
            # A server that has stopped answers none of them.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_tell, batch, kept, fault)

    def _next(self, pool: str) -> _Waiting:
        """What is written next; a pool for which nothing waits has no thread from now on."""
        with self._lock:
            waiting = self._waiting.pop(pool, [])
            if waiting:
                self._waiting[pool] = waiting[MOST:]
        return waiting[:MOST]

    def _end(self, pool: str, task: asyncio.Task[None]) -> None:
        """Where the server stops, or no thread could begin, none is left waiting."""
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is None:
            return
        with self._lock:
            waiting = self._waiting.pop(pool, [])
        for _, future in waiting:
            if task.cancelled():
                future.cancel()
            elif not future.done():
                future.set_result(None)


def _tell(batch: _Waiting, kept: Sequence[NewSubmission] | None, fault: Exception | None) -> None:
    """Say to each what came of it, unless it has stopped waiting."""
    for number, (_, future) in enumerate(batch):
        if future.done():
            continue
        if fault is not None:
            future.set_exception(fault)
        else:
            future.set_result(None if kept is None else kept[number])
