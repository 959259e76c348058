"""The scheduler's loop: observe, snapshot, plan, apply, tell. One server at a time runs it.

Changes wake it, and a tick in case a wake-up was missed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from time import monotonic, thread_time

import msgspec

from bough.control.pools import subpool_drain
from bough.control.scheduling import after_restore, timeouts
from bough.control.scheduling.apply_plan import Applied, apply
from bough.control.scheduling.backend_watch import BackendWatch, LedBackend
from bough.control.scheduling.cluster_queues import QueueWatch
from bough.control.scheduling.live_plan import LivePlan
from bough.control.scheduling.loop_bell import Bell
from bough.control.scheduling.machine_backends import MachineWatch, OtherMachines
from bough.control.scheduling.node_tests import TestWatch
from bough.control.site import Site
from bough.control.workflows import arrays, predecessors
from bough.control.workflows.archive import Archiver
from bough.errors import BoughError, NotLeading
from bough.model.backend import Backend
from bough.model.cluster import Resources
from bough.model.node_test import KeepsTests
from bough.model.queue_tree import KeepsQueues
from bough.store.lease import Lease

LOG = logging.getLogger(__name__)

TICK_S = 1.0
#: How often to plan while nothing changes: minimum running times end without an event.
REPLAN_MS = 10_000
#: After a cycle the loop sleeps for PACE times the CPU time that the cycle took, however often it
#: is woken, but at most for a second. So a single submission starts at once, and a loop that has
#: always something to do leaves half of one core to those that answer.
PACE = 1
LONGEST_PAUSE_S = 1.0
#: How often a stale plan is made again within one cycle.
TRIES = 3


class CycleResult(msgspec.Struct, frozen=True):
    """What one cycle did, for metrics and tests."""

    #: Whether this server decides at all.
    leads: bool
    applied: Applied = Applied()
    told: int = 0
    archived: tuple[str, ...] = ()
    waiting: int = 0
    #: How long the core took to plan.
    planned_us: int = 0


class Scheduler:
    """Decides, as long as it holds the lease."""

    def __init__(
        self, site: Site, backends: Iterable[Backend], ring: Callable[[], None] = lambda: None
    ) -> None:
        """ring:  rings the bell of the loop."""
        self._lease = Lease(site.store)
        self._plain_site = site
        #: Nothing that the loop writes is kept unless this server leads.
        self._site = site = replace(site, store=site.store.checked(self._lease.check))
        self._backends = tuple(backends)
        self._watches: list[BackendWatch] = []
        self._machines: list[MachineWatch] = [
            MachineWatch(self._plain_site, each, each.machine)
            for each in self._backends
            if each.machine is not None
        ]
        self._watch()
        #: Questions are answered from it, by any thread.
        self.live = LivePlan(site, ring, self._held_by_others)
        self._leads = False
        #: The last restore of the database that this server knows of.
        self._restore = ""
        self._failed = False
        #: The last plan, if it changed nothing; and when it was made.
        self._idle: CycleResult | None = None
        self._planned_ms = 0
        self._archiver = Archiver(site)

    def run(
        self,
        bell: Bell,
        stop: threading.Event,
        tick_s: float = TICK_S,
        pass_on: Callable[[], None] | None = None,
    ) -> None:
        """Cycle until told to stop. What goes wrong is logged once, and tried again.

        While another server decides, whatever the bell rings for is passed on to it.
        """
        while not stop.is_set():
            rung = bell.answer()
            had_s = thread_time()
            try:
                done = self.cycle()
                again = done.applied.changed
                self._failed = False
                self.live.followed = done.leads
                if rung and not done.leads and pass_on is not None:
                    pass_on()
            except Exception as error:
                # Whatever it is: a server that no longer schedules is worse than one that tries.
                again = self.live.followed = False
                self._recover(error)
            pause_s = min(PACE * (thread_time() - had_s), LONGEST_PAUSE_S)
            earliest_s = monotonic() + pause_s
            if not again:
                bell.wait(tick_s)
            stop.wait(max(0.0, earliest_s - monotonic()))
        self.release()

    def cycle(self) -> CycleResult:
        """One cycle: look after this server's own machine, and decide if this server leads."""
        try:
            return self._cycle(leads=self._lead())
        except NotLeading:
            # Another server took the lease while this one was held up; the next cycle looks again.
            LOG.warning("another server leads now; this one was held up for too long")
            self._leads = False
            return CycleResult(leads=False)

    def _cycle(self, *, leads: bool) -> CycleResult:
        for watch in self._watches:
            watch.attend(leads=leads)
        done, archived = CycleResult(leads=False), []
        if leads:
            self._others.look()
            archived = subpool_drain.check_due_drains(self._site)
            timeouts.check_due(self._site)
            predecessors.follow(self._site)
            arrays.advance(self._site)
            for queues in self._queues:
                queues.attend()
            for tests in self._tests:
                tests.attend()
            done = self._decide()
        told = sum(watch.deliver() for watch in self._watches)
        if told:
            # What starts or ends at once is seen at once.
            for watch in self._watches:
                watch.observe()
        if leads:
            # The last: whatever starts or ends does not wait for it.
            self._archiver.work()
        return msgspec.structs.replace(done, told=told, archived=tuple(archived))

    def _recover(self, error: Exception) -> None:
        """Log what went wrong, once, and drop all state that may be half done."""
        if not self._failed:
            known = isinstance(error, BoughError)
            LOG.warning("the scheduler cannot run: %s", error, exc_info=None if known else error)
        self._failed = True
        self._forget()
        # Drains that a request or a cycle could not check are checked by the next cycle.
        self._leads = False

    def _forget(self) -> None:
        self.live.reset()
        self._idle = None
        self._watch()

    def _watch(self) -> None:
        """Start watching all backends from scratch."""
        led = (each for each in self._backends if each.machine is None)
        self._watches = [
            *(BackendWatch(self._site, LedBackend(each, self._lease)) for each in led),
            *self._machines,
        ]
        for each in self._machines:
            each.reset()
        self._queues = [
            QueueWatch(self._site, each) for each in self._backends if isinstance(each, KeepsQueues)
        ]
        self._tests = [
            TestWatch(self._site, each) for each in self._backends if isinstance(each, KeepsTests)
        ]
        own = frozenset(each.machine.id for each in self._machines)
        self._others = OtherMachines(self._site, own)

    def listens_at(self, address: str) -> None:
        """Set where this server answers, to which other servers send people."""
        for each in self._machines:
            each.address = address

    def release(self) -> None:
        """Let another server decide."""
        self.live.followed = False
        self._lease.release()
        self._leads = False

    def _held_by_others(self) -> dict[str, Mapping[str, Resources]]:
        """What others hold of the nodes of each backend."""
        return {each.name: each.used_by_others() for each in self._backends}

    def _lead(self) -> bool:
        leads = self._lease.held()
        restore = after_restore.last_restore(self._site)
        if (leads and not self._leads) or restore != self._restore:
            # Another server may have decided since then.
            self._forget()
            if leads:
                subpool_drain.rearm_drains(self._site)
        self._leads, self._restore = leads, restore
        return leads

    def _decide(self) -> CycleResult:
        now_ms = self._site.clock.now_ms()
        news = self.live.look()
        idle = self._idle
        if not news and idle is not None and now_ms - self._planned_ms < REPLAN_MS:
            return idle
        done = self._plan()
        self._idle = None if done.applied.changed or done.applied.stale else done
        self._planned_ms = now_ms
        return done

    def _plan(self) -> CycleResult:
        applied = Applied(stale=True)
        planned_us = waiting = 0
        for _ in range(TRIES):
            decided = self.live.decide()
            made, planned_us = decided.plan, decided.planned_us
            waiting = len(made.waits)
            applied = apply(self._site, decided.view, made, decided.excesses)
            if not applied.stale:
                if made.binds or made.evictions:
                    self.live.expect(made.version + 1)
                break
        return CycleResult(leads=True, applied=applied, waiting=waiting, planned_us=planned_us)
