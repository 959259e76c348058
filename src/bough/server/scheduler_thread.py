"""The scheduler in a thread of its process, and its counters."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from time import perf_counter

from bough.control.pools.node_shares import Standings
from bough.control.scheduling.loop import TICK_S, CycleResult, Scheduler
from bough.control.scheduling.loop_bell import Bell
from bough.control.scheduling.plan_questions import Answers, Question
from bough.control.site import Site
from bough.model.backend import Backend
from bough.server.loop_view import Counts
from bough.server.thread_liveness import ThreadPulse
from bough.store.notices import Notice, Notices

LOG = logging.getLogger(__name__)

#: How long a stop waits for the cycle that is under way.
STOP_S = 30
#: How long to wait after an unexpected error.
PAUSE_S = 1.0


class Engine:
    """Starts and stops the scheduler."""

    #: It goes on after every error, and is never started again.
    restarts = 0

    def __init__(
        self,
        site: Site,
        backends: Iterable[Backend],
        bell: Bell,
        tick_s: float = TICK_S,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """changed:  called after every cycle."""
        self.counts = Counts()
        self.leads = False
        self._changed = changed
        #: Set when the server is told to stop: nothing new is begun, and streams end.
        self.stopping = threading.Event()
        self.backends = {backend.name: backend for backend in backends}
        self._bell = bell
        self._tick_s = tick_s
        self._scheduler = _Counted(site, self.backends.values(), bell, self)
        self._notices = Notices(site.store, self._hear)
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)
        #: Marked by the thread before and after each cycle.
        self.pulse = ThreadPulse(self._thread)

    def listens_at(self, address: str) -> None:
        """Where this server answers."""
        self._scheduler.listens_at(address)

    def start(self) -> None:
        """Begin to decide, as soon as the lease can be had."""
        self._notices.start()
        self._thread.start()

    def stop(self) -> None:
        """Finish the cycle that is under way, and let another server decide."""
        self.stopping.set()
        self._bell()
        if self._thread.is_alive():
            self._thread.join(STOP_S)
            self._notices.call(Notice.FREE)
        self._notices.stop()
        self.leads = False

    @property
    def alive(self) -> bool:
        """Whether the thread is there at all."""
        return self._thread.is_alive()

    @property
    def stack(self) -> str:
        """Where the thread is, for the log."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "".join(traceback.format_stack(frame)) if frame is not None else ""

    @property
    def fault(self) -> str:
        """Why nothing is decided; empty: the thread is there."""
        return "" if self.alive else "The scheduler does not run."

    def ask(self, question: Question) -> Answers:
        """What the current plan says about gangs."""
        return self._scheduler.live.ask(question)

    def standings(self, user: str) -> Standings:
        """What the nodes of the quota tree take and could have, by what the loop decides by."""
        return self._scheduler.live.standings(user)

    def count(self, cycle: CycleResult, seconds: float) -> None:
        """Add up what a cycle did."""
        told = cycle.leads or self.leads
        self.leads = cycle.leads
        if cycle.leads:
            self._add(cycle, seconds)
        if told:
            self._changed()

    def _add(self, cycle: CycleResult, seconds: float) -> None:
        counts = self.counts
        counts.cycles += 1
        counts.seconds += seconds
        counts.last_seconds = seconds
        counts.planning_seconds += cycle.planned_us / 1_000_000
        counts.started += cycle.applied.started
        counts.evicted += cycle.applied.evicted
        counts.void += cycle.applied.void

    def _run(self) -> None:
        """The loop goes on after any error, which is logged."""
        while not self.stopping.is_set():
            try:
                self._scheduler.run(self._bell, self.stopping, self._tick_s, self._pass_on)
            except Exception:
                self.counts.failures += 1
                LOG.exception("the scheduler failed, continuing")
                self.stopping.wait(PAUSE_S)
        self._scheduler.release()

    def _pass_on(self) -> None:
        self._notices.call(Notice.WORK)

    def _hear(self, notice: Notice) -> None:
        """Another server has work for the one that decides, or decides no more."""
        if self.leads == (notice is Notice.WORK):
            self._bell()


class _Counted(Scheduler):
    """A scheduler that says what each cycle did."""

    def __init__(self, site: Site, backends: Iterable[Backend], ring: Bell, engine: Engine) -> None:
        super().__init__(site, backends, ring)
        self._engine = engine

    def cycle(self) -> CycleResult:
        started = perf_counter()
        self._engine.pulse.mark()
        done = super().cycle()
        self._engine.pulse.mark()
        self._engine.count(done, perf_counter() - started)
        return done
