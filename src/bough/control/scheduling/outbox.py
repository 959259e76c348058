"""Sends decisions to the backends, after the transaction that decided. Repeating is harmless.

A message names attempts; what a backend must know about them is looked up when it is told
(`attempt_starts`).
"""

from __future__ import annotations

import errno
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

from bough.control.change_recording import happen
from bough.control.config.policy import PolicyReader, grace_s
from bough.control.config.settings import read_workflow_settings
from bough.control.scheduling.attempt_starts import (
    Sealed,
    StartRecords,
    Unstartable,
    read_records,
    starts_of,
)
from bough.control.site import Site
from bough.control.workflows import observations
from bough.control.workflows.lifecycle import is_victim
from bough.control.workflows.workflow_changes import START
from bough.errors import Conflict, Invalid, NotLeading, Unavailable
from bough.model.backend import Backend, Observation, Sight, Stop
from bough.model.change_record import EventKind, OutboxMessage
from bough.model.subpool import Subpool
from bough.store import change_records as record_store
from bough.store import pools as pool_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store
from bough.store.rows import convert

LOG = logging.getLogger(__name__)

#: How many messages are sent before their delivery is written.
_AT_ONCE = 20
#: How often a start is tried that fails while others succeed.
START_TRIES = 3
#: After so many failures in one round without a success, a backend is left alone until the next.
_SILENT = 3


def deliver(site: Site, backends: Mapping[str, Backend]) -> int:
    """Deliver all messages in order, and say how many were. What fails is tried again.

    What goes wrong with one workflow holds up its own messages alone. A start that fails while
    others are taken is given up after some tries, one that is refused at once.
    """
    with site.store.read() as connection:
        messages = record_store.list_outbox(connection, sorted(backends))
    delivery = _Delivery(site, backends)
    for start in range(0, len(messages), _AT_ONCE):
        delivery.tell(messages[start : start + _AT_ONCE])
    delivery.judge()
    return delivery.told


def remind(site: Site, backend: Backend) -> bool:
    """Tell a backend again about everything that is on its nodes, in case it has forgotten.

    Whether it took all of it; each group and each stop is tried, whatever becomes of the others.
    """
    now_ms = site.clock.now_ms()
    with site.store.read() as connection:
        termination_s = read_workflow_settings(connection).termination_grace_s
        victim_s = grace_s(PolicyReader().read(connection))
        tasks = task_store.holding(connection, backend.name)
    records = read_records(site, [task.attempt for task in tasks])
    taken = True
    for group in sorted({task.group_uuid for task in tasks if task.releasing is None}):
        attempts = [task.attempt for task in tasks if task.group_uuid == group]
        taken &= _remind_start(site, backend, records, attempts)
    for task in tasks:
        if task.releasing is not None:
            since_ms = now_ms if task.released_ms is None else task.released_ms
            whole_s = victim_s if is_victim(task.releasing) else termination_s
            left_s = max(0, whole_s - (now_ms - since_ms) // 1_000)
            try:
                backend.stop(Stop((task.attempt,), task.releasing, left_s, again=True))
            except NotLeading:
                raise
            except Exception as error:
                LOG.warning("backend %s could not stop %s: %s", backend.name, task.name, error)
                taken = False
    return taken


def _remind_start(site: Site, backend: Backend, records: StartRecords, attempts: list[str]) -> bool:
    try:
        for start in starts_of(records, attempts):
            backend.start(start)
    except Unstartable as error:
        observations.observe(site, [error.seen(site.clock.now_ms())])
    except Sealed as error:
        LOG.warning("a group waits: %s", error)
    except NotLeading:
        raise
    except Exception as error:
        LOG.warning("backend %s could not start a group again: %s", backend.name, error)
        return False
    return True


class _Delivery:
    """One round of delivering messages to backends."""

    def __init__(self, site: Site, backends: Mapping[str, Backend]) -> None:
        self._site = site
        self._backends = backends
        self.told = 0
        #: Workflows of which something could not be told, so that nothing after it is told either.
        self._held: set[str] = set()
        #: Backends that took something, and how often the others failed.
        self._took: set[str] = set()
        self._failures: Counter[str] = Counter()
        self._failed: list[tuple[OutboxMessage, Exception]] = []

    def tell(self, messages: Sequence[OutboxMessage]) -> None:
        """Deliver some of the messages."""
        done: list[int] = []
        unstartable: list[Observation] = []
        records = read_records(self._site, _attempts(messages))
        for message in messages:
            if message.subject in self._held or self._is_silent(message.backend):
                continue
            try:
                _tell(self._backends[message.backend], message, records)
            except Unstartable as error:
                unstartable.append(error.seen(self._site.clock.now_ms()))
            except NotLeading:
                raise
            except Exception as error:
                self._fail(message, error)
                continue
            else:
                self._took.add(message.backend)
            done.append(message.number)
        if unstartable:
            observations.observe(self._site, unstartable)
        if done:
            with self._site.store.write() as connection:
                record_store.finish_outbox(connection, done)
        self.told += len(done)

    def judge(self) -> None:
        """Decide what to do about messages that could not be delivered, now that all were tried."""
        given_up: list[tuple[OutboxMessage, Exception]] = []
        tried_again: list[tuple[OutboxMessage, Exception, bool]] = []
        for message, error in self._failed:
            own = message.kind == START and self._is_its_own(message, error)
            if own and (_is_refused(error) or message.attempts + 1 >= START_TRIES):
                given_up.append((message, error))
            else:
                tried_again.append((message, error, own))
        for message, error in given_up:
            now_ms, text = self._site.clock.now_ms(), f"The start was refused: {error}"
            observations.observe(
                self._site,
                [
                    Observation(attempt, Sight.UNSTARTABLE, now_ms, message=text)
                    for attempt in message.payload["attempts"]
                ],
            )
        if self._failed:
            with self._site.store.write() as connection:
                record_store.finish_outbox(connection, [each.number for each, _ in given_up])
                for message, error, counts in tried_again:
                    _note_failure(self._site, connection, message, str(error), counts=counts)

    def _is_silent(self, backend: str) -> bool:
        """Whether a backend failed often without a success.

        It is then left alone until later.
        """
        return backend not in self._took and self._failures[backend] >= _SILENT

    def _fail(self, message: OutboxMessage, error: Exception) -> None:
        self._failed.append((message, error))
        self._held.add(message.subject)
        if not isinstance(error, (Invalid, Conflict, Sealed)):
            self._failures[message.backend] += 1

    def _is_its_own(self, message: OutboxMessage, error: Exception) -> bool:
        """Whether it is this group that cannot be started, and not the backend that cannot start.

        While nothing is taken, only an error says that it is about the group. A full disk concerns
        all, also where something is taken: to end a task needs no room.
        """
        if isinstance(error, Sealed) or _lacks_room(error):
            return False
        return message.backend in self._took or not isinstance(error, (Unavailable, OSError))


def _lacks_room(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _is_refused(error: Exception) -> bool:
    return isinstance(error, (Invalid, Conflict))


def _note_failure(
    site: Site, connection: sa.Connection, message: OutboxMessage, error: str, *, counts: bool
) -> None:
    """Store what went wrong, and log it where it is new."""
    if record_store.fail_outbox(connection, message.number, error, counts=counts):
        text = f"it could not be told to backend {message.backend}, and is tried again: {error}"
        data = {"reason": message.kind, "message": text, "backend": message.backend}
        workflow = workflow_store.find(connection, message.subject)
        pool = None if workflow is None else pool_store.find(connection, workflow.pool)
        name = pool.parent if isinstance(pool, Subpool) else None if pool is None else pool.name
        kind = EventKind.WAITING
        happen(connection, site, kind, message.subject, pool=name, data=data)


def _attempts(messages: Iterable[OutboxMessage]) -> list[str]:
    """The attempts to start."""
    return [
        attempt
        for message in messages
        if message.kind == START
        for attempt in message.payload["attempts"]
    ]


def _tell(backend: Backend, message: OutboxMessage, records: StartRecords) -> None:
    if message.kind == START:
        for start in starts_of(records, message.payload["attempts"]):
            backend.start(start)
    else:
        backend.stop(convert(message.payload, Stop))
