"""Submissions that wait for the commit in the event loop, without a thread for each of them.

A request whose checks ask the database nothing only waits until it is written. Those of one pool
that come while others are written are given to the next thread together, and all of them hear the
outcome in one turn of the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from anyio import to_thread

from bough.control.joined_submissions import Draft
from bough.control.site import Site
from bough.store.submissions import NewSubmission

_Future = asyncio.Future[NewSubmission | None]
_Waiting = list[tuple[Draft, _Future]]


class PromptSubmissions:
    """The submissions of one server. For event loops, one after another."""

    def __init__(self, site: Site) -> None:
        self._site = site
        #: Those that wait, by pool; a pool is here as long as a task writes its submissions.
        self._waiting: dict[str, _Waiting] = {}
        #: The event loop itself does not keep its tasks alive.
        self._tasks: set[asyncio.Task[None]] = set()

    async def keep(self, draft: Draft) -> NewSubmission | None:
        """Keep a submission, and return it as it was kept; `None`: it has to be done alone."""
        future: _Future = asyncio.get_running_loop().create_future()
        waiting = self._waiting.get(draft.pool)
        if waiting is None:
            self._waiting[draft.pool] = [(draft, future)]
            # A task of its own: the request that began may end before the others are written.
            task = asyncio.create_task(self._write(draft.pool))
            self._tasks.add(task)
            task.add_done_callback(partial(self._end, draft.pool))
        else:
            waiting.append((draft, future))
        return await future

    async def _write(self, pool: str) -> None:
        """Write what waits for a pool, until nothing does."""
        while batch := self._waiting[pool]:
            self._waiting[pool] = []
            try:
                await self._write_batch(batch)
            finally:
                _leave(batch)
        # In this very turn: one that comes in the next has to find that none writes any more.
        del self._waiting[pool]

    def _end(self, pool: str, task: asyncio.Task[None]) -> None:
        """Where the server stops, perhaps before the task has begun, none is left waiting."""
        self._tasks.discard(task)
        if task.cancelled():
            _leave(self._waiting.pop(pool, []))

    async def _write_batch(self, batch: _Waiting) -> None:
        try:
            kept = await to_thread.run_sync(self._keep, [draft for draft, _ in batch])
        except Exception as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for number, (_, future) in enumerate(batch):
            if not future.done():
                future.set_result(None if kept is None else kept[number])

    def _keep(self, drafts: Sequence[Draft]) -> Sequence[NewSubmission] | None:
        site = self._site
        return site.joined_submissions.keep(site.store, drafts, site.wake)


def _leave(waiting: _Waiting) -> None:
    """Let those stop waiting that have no outcome."""
    for _, future in waiting:
        future.cancel()
