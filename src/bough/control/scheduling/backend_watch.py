"""Asks one backend for its nodes and attempts, and stores the answers; its faults are its own.

A backend that raises, or does not know its nodes yet, has a fault in the store until it answers:
nothing starts on its nodes, its pools are OFFLINE, and nothing that ran there counts as lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from bough.control.nodes import node_sync
from bough.control.scheduling import after_restore, outbox
from bough.control.site import Site
from bough.control.workflows import observations
from bough.errors import BoughError, NotLeading
from bough.model.backend import Backend, Observation, Start, Stop
from bough.model.cluster import Resources
from bough.model.pool import OfferedNode
from bough.store import nodes as node_store
from bough.store.lease import Lease

LOG = logging.getLogger(__name__)

#: How often all observations of a backend are looked at, also those that are known.
LOOK_MS = 10_000
#: How often a backend is reminded of what is on its nodes, if that fails.
_REMINDERS = 3

Answer = TypeVar("Answer")


class BackendWatch:
    """What is known of one backend, so that it is not looked up again in every cycle."""

    def __init__(self, site: Site, backend: Backend, beat_ms: int = node_sync.HEARTBEAT_MS) -> None:
        """site:  its store refuses what is written by a server that does not speak for it."""
        self._site = site
        self.backend = backend
        self._beat_ms = beat_ms
        self._cache = _ObservationCache()
        #: The nodes as last written, and when; when all observations were last looked at.
        self._offered: tuple[OfferedNode, ...] | None = None
        self._synced_ms = 0
        self._looked_ms = 0
        #: How often it is still to be told what is on its nodes, since this server began to decide.
        self._reminders = _REMINDERS
        #: The fault that was last logged.
        self._logged: str | None = None
        self.answers = False

    def attend(self, *, leads: bool) -> None:
        """Ask for its nodes and attempts, and write down what is new; or why that is not possible.

        What goes wrong with the store is raised, as it concerns all backends.
        """
        try:
            if not self._speaks(leads=leads):
                self.answers = False
                return
            self._sync()
            if self._reminders:
                self._end_unknown()
                told = outbox.remind(self._site, self.backend)
                self._reminders = 0 if told else self._reminders - 1
            self._observe()
        except BackendFault as fault:
            self._fail(fault)
        else:
            self._logged = None

    def reset(self) -> None:
        """Drop all state that may be half done."""
        self._cache.clear()
        self._offered, self._reminders, self.answers = None, _REMINDERS, False

    def deliver(self) -> int:
        """Tell it what was decided, where it answers; how many messages were told."""
        if not self.answers:
            return 0
        return outbox.deliver(self._site, {self.backend.name: self.backend})

    def _speaks(self, *, leads: bool) -> bool:
        """Whether this server speaks for it: the one that leads, unless it belongs to a machine."""
        if not leads:
            return False
        with self._site.store.read() as connection:
            record = node_store.find_backend(connection, self.backend.name)
        return record is None or record.machine is None

    def observe(self) -> None:
        """Ask only for its observations, if it answered before."""
        if not self.answers:
            return
        try:
            self._observe()
        except BackendFault as fault:
            self._fail(fault)

    def _sync(self) -> None:
        """Write down what nodes there are, where that may not be what is written already."""
        now_ms = self._site.clock.now_ms()
        offered = self.ask(self.backend.nodes)
        if offered is None:
            raise BackendFault(f"Backend {self.backend.name} does not know its nodes yet.")
        due = abs(now_ms - self._synced_ms) >= self._beat_ms // 2
        if offered != self._offered or due or not self.answers:
            node_sync.sync(self._site, self.backend.name, offered, self._beat_ms)
            self._offered, self._synced_ms = offered, now_ms
        self.answers = True

    def _end_unknown(self) -> None:
        """Once after a restore of the database, end the attempts that it did not bring back."""
        restore = after_restore.unattended(self._site, self.backend.name)
        if not restore:
            return
        stop = after_restore.stop_unknown(self._site, self.ask(self.backend.observe))
        if stop is not None:
            LOG.warning(
                "%d attempts are not in the restored database; ending them", len(stop.attempts)
            )
            self.ask(lambda: self.backend.stop(stop))
        after_restore.note_attended(self._site, self.backend.name, restore)

    def _observe(self) -> None:
        """Write down what it sees, as far as it is new."""
        now_ms = self._site.clock.now_ms()
        all_of_it = abs(now_ms - self._looked_ms) >= LOOK_MS
        if all_of_it:
            self._cache.clear()
            self._looked_ms = now_ms
        seen = self.ask(self.backend.observe)
        if all_of_it and self.backend.machine is None:
            self._sweep(seen)
        news = self._cache.news(seen)
        if news:
            ended = observations.observe(self._site, news)
            self.ask(lambda: self.backend.forget(ended))
            self._cache.keep(seen)

    def _sweep(self, seen: Sequence[Observation]) -> None:
        """Now and then, end what runs there and holds nothing in the store."""
        stop = after_restore.stop_strays(self._site, seen)
        if stop is not None:
            LOG.warning(
                "%d attempts run that hold nothing in the database; ending them", len(stop.attempts)
            )
            self.ask(lambda: self.backend.stop(stop))

    def ask(self, ask: Callable[[], Answer]) -> Answer:
        """The answer of the backend; whatever it raises becomes a `BackendFault`."""
        try:
            return ask()
        except NotLeading:
            raise
        except Exception as error:
            raise BackendFault(f"Backend {self.backend.name} does not answer: {error}") from error

    def _fail(self, fault: BackendFault) -> None:
        """Nothing starts there until it answers again."""
        text = str(fault)
        if text != self._logged:
            cause = fault.__cause__
            expected = cause is None or isinstance(cause, (BoughError, OSError))
            LOG.warning("%s", text, exc_info=None if expected else cause)
        self._logged, self.answers = text, False
        node_sync.write_fault(self._site, self.backend.name, text)


class LedBackend:
    """A backend that is told the current lease before every order."""

    def __init__(self, backend: Backend, lease: Lease) -> None:
        self._backend = backend
        self._lease = lease
        self.name = backend.name
        self.machine = backend.machine
        self.read_log = backend.read_log
        self.open_session = backend.open_session
        self.lead = backend.lead

    def nodes(self) -> tuple[OfferedNode, ...] | None:
        """The nodes that it has now."""
        return self._backend.nodes()

    def used_by_others(self) -> Mapping[str, Resources]:
        """What others hold of its nodes."""
        return self._backend.used_by_others()

    def forget(self, attempts: tuple[str, ...]) -> None:
        """The end of these is stored."""
        self._backend.forget(attempts)

    def start(self, start: Start) -> None:
        """Start tasks together."""
        self._backend.lead(self._lease.leadership())
        self._backend.start(start)

    def stop(self, stop: Stop) -> None:
        """End attempts."""
        self._backend.lead(self._lease.leadership())
        self._backend.stop(stop)

    def observe(self) -> tuple[Observation, ...]:
        """All attempts that it knows; what did not start yet may be begun once more."""
        self._backend.lead(self._lease.leadership())
        return self._backend.observe()


class BackendFault(Exception):
    """A backend does not answer, and why."""


class _ObservationCache:
    """What a backend said when it was last asked, so that only news is looked up and written.

    A backend tells everything that it sees, as often as it is asked.
    """

    def __init__(self) -> None:
        self._known: dict[str, Observation] = {}

    def news(self, seen: Sequence[Observation]) -> list[Observation]:
        """What is not known yet."""
        known = self._known.get
        # Most backends tell what has not changed with the same object.
        return [each for each in seen if (last := known(each.attempt)) is not each and last != each]

    def keep(self, seen: Sequence[Observation]) -> None:
        """Remember what was just written."""
        self._known = {each.attempt: each for each in seen}

    def clear(self) -> None:
        """Forget everything, so that all is looked at once more."""
        self._known = {}
