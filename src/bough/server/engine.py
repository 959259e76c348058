"""The scheduler in its thread, and its counters."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from time import perf_counter

import msgspec

from bough.control.pools.quotas import Standings
from bough.control.records.event_stream import Recent
from bough.control.scheduling.live_plan import Answers, Question
from bough.control.scheduling.loop import TICK_S, Bell, CycleResult, Scheduler
from bough.control.site import Site
from bough.model.backend import Backend
from bough.store.notices import Notice, Notices

LOG = logging.getLogger(__name__)

#: How long a stop waits for the cycle that is under way.
STOP_S = 30
#: How long to wait after an unexpected error.
PAUSE_S = 1.0


class Counts(msgspec.Struct):
    """What the scheduler did since this server started."""

    cycles: int = 0
    seconds: float = 0.0
    planning_seconds: float = 0.0
    last_seconds: float = 0.0
    started: int = 0
    evicted: int = 0
    void: int = 0
    failures: int = 0


class Engine:
    """Starts and stops the scheduler."""

    def __init__(
        self, site: Site, backends: Iterable[Backend], bell: Bell, tick_s: float = TICK_S
    ) -> None:
        self.counts = Counts()
        self.leads = False
        #: Set when the server is told to stop: nothing new is begun, and streams end.
        self.stopping = threading.Event()
        #: By name; for reading logs.
        self.backends = {backend.name: backend for backend in backends}
        self.recent = Recent(site)
        self._bell = bell
        self._tick_s = tick_s
        self._scheduler = _Counted(site, self.backends.values(), bell, self)
        self._notices = Notices(site.store, self._hear)
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

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

    def ask(self, question: Question) -> Answers:
        """What the current plan says about gangs."""
        return self._scheduler.live.ask(question)

    def standings(self, user: str) -> Standings:
        """What the nodes of the quota tree take and could have, by what the loop decides by."""
        return self._scheduler.live.standings(user)

    def count(self, cycle: CycleResult, seconds: float) -> None:
        """Add up what a cycle did."""
        self.leads = cycle.leads
        if not cycle.leads:
            return
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
                LOG.exception("the scheduler failed, and goes on")
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
        done = super().cycle()
        self._engine.count(done, perf_counter() - started)
        return done
