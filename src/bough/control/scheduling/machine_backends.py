"""Backends that belong to one machine: the server that holds its folder speaks for them, no other.

The identity of the machine is kept in its folder and registered with the backend. Its server looks
after its backend whether it leads or not; the one that leads leaves the tasks of other machines as
they are, and says which of them do not answer. A machine that was declared lost ends what it runs
when it comes back, before it offers anything.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from uuid import uuid4

import sqlalchemy as sa

from bough.control.nodes import node_sync
from bough.control.scheduling.backend_watch import BackendFault, BackendWatch
from bough.control.site import Site
from bough.errors import NotLeading
from bough.model.backend import Backend, Leadership, Machine, Sight, Stop
from bough.model.pool import BackendRecord
from bough.store import nodes as node_store
from bough.store import tasks as task_store
from bough.store.lease import now_ms as since_boot_ms

LOG = logging.getLogger(__name__)

#: How often a machine sends its heartbeat, and how long it may be silent.
BEAT_MS = 5_000
SILENT_S = 20.0
#: For how long its orders hold after it looked: it says that it is there within BEAT_MS, so it
#: cannot be declared lost before. What was frozen with an order in its hand is refused.
ORDERS_S = 12.0
#: Why attempts are ended whose end was recorded before.
_LOST = "lost"
_ALIVE = (Sight.STARTING, Sight.RUNNING)


class MachineWatch(BackendWatch):
    """The backend of this machine."""

    def __init__(self, site: Site, backend: Backend, machine: Machine) -> None:
        self._plain_site = site
        self.machine = machine
        self._speaker = uuid4().hex
        #: Where this server answers, once that is known.
        self.address: str | None = None
        #: Whether nothing runs here of which the record has ended.
        self._clean = False
        self._told: str | None = None
        checked = site.store.checked(self._check)
        super().__init__(replace(site, store=checked), backend, BEAT_MS)

    def attend(self, *, leads: bool) -> None:
        """The same, whether this server leads or not."""
        with self._while_speaking():
            super().attend(leads=leads)

    def observe(self) -> None:
        """The same, as long as this server speaks for it."""
        with self._while_speaking():
            super().observe()

    def deliver(self) -> int:
        """The same, as long as this server speaks for it."""
        with self._while_speaking():
            try:
                if self.answers:
                    # A long plan may have come between.
                    self._sync()
            except BackendFault as fault:
                self._fail(fault)
            return super().deliver()
        return 0

    def _sync(self) -> None:
        """The same; then orders hold for a while."""
        before_ms, synced_ms = since_boot_ms(), self._synced_ms
        super()._sync()
        if self._synced_ms != synced_ms:
            self._order_from(before_ms)

    def _order_from(self, at_ms: int) -> None:
        leadership = Leadership(0, at_ms + int(1_000 * ORDERS_S))
        self.ask(lambda: self.backend.lead(leadership))

    @contextmanager
    def _while_speaking(self) -> Iterator[None]:
        try:
            yield
        except NotLeading:
            # Another server speaks for it by now, or none; what was being written is not kept.
            self.answers = False

    def _check(self, connection: sa.Connection) -> None:
        """Refuse a transaction unless this server speaks for the backend."""
        if not node_store.speaks_for(connection, self.backend.name, self._speaker):
            raise NotLeading

    def _speaks(self, *, leads: bool) -> bool:
        name = self.backend.name
        with self._plain_site.store.read() as connection:
            record = node_store.find_backend(connection, name) or BackendRecord(name)
        refusal = self._refusal(record)
        if refusal is not None:
            self._say(refusal)
            if leads and record.machine is None:
                node_sync.write_fault(self._plain_site, name, refusal)
            self._end_strays()
            self._clean = False
            return False
        known = (record.speaker, record.place, record.address)
        if known != (self._speaker, self.machine.place, self.address) and not self._claim(record):
            return False
        if not self._clean and self._end_strays():
            text = f"Machine {self.machine.place} ends what was declared lost there."
            node_sync.write_fault(self._site, name, text)
            return False
        self._clean = True
        if record.fault is not None:
            # It is written anew that this machine answers.
            self.answers = False
        return True

    def _refusal(self, record: BackendRecord) -> str | None:
        """Why this machine does not have the backend."""
        if record.machine == self.machine.id:
            return None
        if record.machine is not None:
            return (
                f"Backend {record.name} belongs to machine {record.place}: this server answers "
                "requests and schedules, and runs no tasks itself."
            )
        with self._plain_site.store.read() as connection:
            held = {each.attempt for each in task_store.holding(connection, record.name)}
        known = {each.attempt for each in self.ask(self.backend.observe)} if held else set()
        if held and not held & known and not self._plain_site.store.is_sqlite:
            return (
                f"Backend {record.name} has tasks that {self.machine.place} does not know: start "
                "the server that has them, or declare their node lost."
            )
        return None

    def _claim(self, before: BackendRecord) -> bool:
        """Claim the backend for this machine, unless another one was faster."""
        with self._plain_site.store.write() as connection:
            found = node_store.find_backend(connection, before.name, lock=True)
            if found is not None and found.machine != before.machine:
                return False
            machine = self.machine
            node_store.put_speaker(
                connection, before.name, machine.id, machine.place, self._speaker, self.address
            )
        return True

    def _end_strays(self) -> bool:
        """End what runs here although its record has ended; whether there is any."""
        alive = [each.attempt for each in self.ask(self.backend.observe) if each.sight in _ALIVE]
        if not alive:
            return False
        with self._plain_site.store.read() as connection:
            known = task_store.attempts(connection, alive)
        strays = tuple(task.attempt for task in known if not task.status.holds_node)
        if strays:
            LOG.warning("%d attempts run here that were declared lost; ending them", len(strays))
            # What has ended stays so, whichever server speaks for the machine.
            self._order_from(since_boot_ms())
            self.ask(lambda: self.backend.stop(Stop(strays, _LOST)))
        return bool(strays)

    def _say(self, text: str) -> None:
        if text != self._told:
            LOG.warning("%s", text)
        self._told = text


class OtherMachines:
    """The machines of other servers, for the server that leads."""

    def __init__(self, site: Site, own: frozenset[str]) -> None:
        self._site = site
        self._own = own
        #: By backend: its machine and heartbeat as they were last seen to change, and when.
        self._seen: dict[str, tuple[tuple[str | None, int | None], float]] = {}

    def look(self) -> None:
        """Say of each that is silent that it does not answer.

        One that was never looked at is asked: it takes the fault away if it is there.
        """
        with self._site.store.read() as connection:
            records = node_store.backends(connection).values()
        for record in records:
            if record.machine is None or record.machine in self._own:
                continue
            state = (record.speaker, record.last_heartbeat_ms)
            before = self._seen.get(record.name)
            if before is None or before[0] != state:
                self._seen[record.name] = (state, monotonic())
            silent = before is not None and before[0] == state
            if before is None or (silent and monotonic() - before[1] >= SILENT_S):
                text = f"Machine {record.place} of backend {record.name} does not answer."
                node_sync.write_fault(self._site, record.name, text)
