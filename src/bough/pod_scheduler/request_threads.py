"""Threads that send requests for the loop, one request per thread at a time.

Jobs that continue something come before new ones. A job that failed can be put off for a while.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

LOG = logging.getLogger(__name__)

Job = Callable[[], object]


class Workers:
    """Threads, and the jobs that they have to do."""

    def __init__(self, count: int, name: str) -> None:
        self._changed = threading.Condition()
        self._begun: deque[Job] = deque()
        self._waiting: deque[Job] = deque()
        #: By due time; the number keeps jobs with the same time in order.
        self._later: list[tuple[float, int, Job]] = []
        self._numbers = itertools.count()
        self._busy = 0
        #: First no new job is accepted; then none is run.
        self._stopping = self._closing = False
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True)
            for number in range(count)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self, patience_s: float) -> None:
        """Stop: finish what was begun, drop the rest."""
        until_s = time.monotonic() + patience_s
        with self._changed:
            self._stopping = True
            self._waiting.clear()
            self._later.clear()
            self._changed.wait_for(lambda: not (self._begun or self._busy), patience_s)
            self._closing = True
            self._begun.clear()
            self._changed.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.1, until_s - time.monotonic()))

    def put(self, job: Job) -> None:
        """Add a new job, after all others."""
        with self._changed:
            if not self._stopping:
                self._waiting.append(job)
                self._changed.notify()

    def go_on(self, jobs: Iterable[Job]) -> None:
        """Add jobs that continue something already begun; they run before anything new."""
        with self._changed:
            before = len(self._begun)
            self._begun.extend(jobs)
            self._changed.notify(len(self._begun) - before)

    def put_off(self, job: Job, wait_s: float) -> None:
        """Add a job that runs after a while."""
        with self._changed:
            if not self._stopping:
                due = (time.monotonic() + wait_s, next(self._numbers), job)
                heapq.heappush(self._later, due)
                self._changed.notify()

    def pause(self, wait_s: float) -> bool:
        """Wait inside a job before its next try; return whether to give up, as the threads stop."""
        with self._changed:
            return self._changed.wait_for(lambda: self._closing, wait_s)

    def _run(self) -> None:
        while (job := self._next()) is not None:
            try:
                job()
            except Exception:
                LOG.exception("a request failed")
            with self._changed:
                self._busy -= 1
                if self._stopping:
                    self._changed.notify_all()

    def _next(self) -> Job | None:
        with self._changed:
            while not self._closing:
                wait_s = self._wake_due()
                jobs = self._begun or self._waiting
                if jobs:
                    self._busy += 1
                    return jobs.popleft()
                self._changed.wait(wait_s)
            return None

    def _wake_due(self) -> float | None:
        """Queue the jobs that are due; return how long until the next."""
        now_s = time.monotonic()
        while self._later and self._later[0][0] <= now_s:
            self._waiting.append(heapq.heappop(self._later)[2])
        return self._later[0][0] - now_s if self._later else None
