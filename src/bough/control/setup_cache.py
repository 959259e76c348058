"""What requests ask of the database again and again, kept for as long as a counter stays the same.

A counter is raised in the transaction of every change (`store.settings`). It is read at the same
moment as what is kept by it, so only in reading transactions: what is kept under a number is what
every transaction sees that sees this number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from bough.model.access import Actor
from bough.model.cluster import Resources
from bough.model.pool import BackendRecord, DefaultLimits, OfferedNode, Pool, ResourceAssertion
from bough.model.settings import ServiceSettings, WorkflowSettings
from bough.model.subpool import Subpool
from bough.store import Store
from bough.store import nodes as node_store
from bough.store import pools as pool_store
from bough.store import settings as setting_store

Made = TypeVar("Made")

#: Actors that are kept; with more, all are forgotten.
ACTORS = 10_000
#: How old heartbeats may be that are read again because a backend seems silent.
HEARD_MS = 1_000


class Setup(msgspec.Struct, frozen=True):
    """All that a submission is checked against, at one moment."""

    #: The counter `SETUP`.
    version: int
    #: Pools and subpools by name, archived ones too.
    pools: Mapping[str, Pool | Subpool]
    settings: WorkflowSettings
    #: One node of each size that there is.
    sizes: tuple[OfferedNode, ...]
    #: A heartbeat does not raise the counter, so each may be later than here.
    backends: Mapping[str, BackendRecord]
    #: Rules for what tasks may ask for, by name.
    validations: Mapping[str, tuple[ResourceAssertion, ...]] = {}
    #: Which clients are too old.
    service: ServiceSettings = ServiceSettings()

    def pool_of(self, name: str) -> Pool | None:
        """The pool of a name; for a subpool the one above it."""
        found = self.pools.get(name)
        if isinstance(found, Subpool):
            found = self.pools.get(found.parent)
        return found if isinstance(found, Pool) else None

    def subpools_of(self, pool: str) -> list[Subpool]:
        """The subpools of a pool."""
        found = self.pools.values()
        return [each for each in found if isinstance(each, Subpool) and each.parent == pool]

    def largest(self, backend: str, needs: Resources) -> Resources | None:
        """The most that any one node of a backend has, of each resource.

        `None`: there is no node, or one is large enough for what is needed.
        """
        sizes = [each for each in self.sizes if each.backend == backend]
        if not sizes or any(_has_room(each, needs) for each in sizes):
            return None
        return Resources(
            gpus=max(each.gpus for each in sizes),
            cpu_milli=max(each.cpu_milli for each in sizes),
            memory_bytes=max(each.memory_bytes for each in sizes),
        )

    def sizes_of(self, backend: str) -> tuple[OfferedNode, ...]:
        """One node of each size that a backend has, the largest first."""
        return tuple(each for each in self.sizes if each.backend == backend)

    def default_limits(self, backend: str) -> DefaultLimits | None:
        """What bounds a task with one GPU on the node that gives the least."""
        found = [each.default_limits(1) for each in self.sizes if each.backend == backend]
        if not found:
            return None
        return DefaultLimits(
            min(each.memory_bytes for each in found), min(each.storage_bytes for each in found)
        )


def read_setup(connection: sa.Connection) -> Setup:
    """Read it all."""
    version = setting_store.counter(connection, setting_store.SETUP)
    every: Iterable[Pool | Subpool] = (
        *pool_store.list_pools(connection),
        *pool_store.list_subpools(connection),
    )
    return Setup(
        version,
        {each.name: each for each in every},
        setting_store.workflow_settings(connection),
        tuple(node_store.sizes(connection)),
        node_store.backends(connection),
        setting_store.resource_validations(connection),
        setting_store.service_settings(connection),
    )


class _Answer:
    """An answer, and of what moment it is."""

    def __init__(self) -> None:
        self.making = threading.Lock()
        self.moment = ""
        self.made: Any = None


class Kept:
    """What one server has read. Threads may share it."""

    def __init__(self) -> None:
        self._setup: Setup | None = None
        #: The latest `SETUP` that was seen.
        self._seen = -1
        #: When heartbeats were read again.
        self._heard_ms = 0
        self._hearing = threading.Lock()
        #: Actors with the end of their rights, by key, and the counter `ACCESS` that they are of.
        self._actors: tuple[int, dict[str, tuple[int, Actor]]] = (-1, {})
        self._lock = threading.Lock()
        self._answers: dict[str, _Answer] = {}

    def actor(
        self, connection: sa.Connection, key: str, find: Callable[[], tuple[int, Actor]]
    ) -> tuple[int, Actor]:
        """The actor that has a key, read by `find` if it is not kept, and when its rights end.

        In a reading transaction. An actor that is not found, which is an error, is not kept.
        """
        counted = self.look(connection)
        access, actors = self._actors
        if counted.access > access or len(actors) >= ACTORS:
            access, actors = self._actors = (counted.access, {})
        if counted.access != access:
            # A transaction of before a change that another thread has seen.
            return find()
        found = actors.get(key)
        if found is None:
            found = actors[key] = find()
        return found

    def known_actor(self, access: int, key: str) -> tuple[int, Actor] | None:
        """The same as it is kept, for a reader who saw the counter of rights; `None`: it is not."""
        counted, actors = self._actors
        return actors.get(key) if counted == access else None

    def known_setup(self) -> Setup | None:
        """The latest setup that was seen, as it is kept; `None`: it has to be read."""
        found = self._setup
        return None if found is None or found.version < self._seen else found

    def look(self, connection: sa.Connection) -> setting_store.Counted:
        """See whether anything changed, so that `latest_setup` is at least as new as this."""
        counted = setting_store.counted(connection)
        self.expect(counted.setup)
        return counted

    def answer(self, store: Store, name: str, now_ms: int, make: Callable[[], Made]) -> Made:
        """An answer as it was made before, unless anything has changed or a new second began.

        Times show, and heartbeats change nothing that is counted, so none is older than a second.
        Of several requests at the same time one makes it, and the others wait.
        """
        moments = store.moments
        if moments is None:
            return make()
        moment = f"{now_ms // 1_000} {moments.now().state}"
        with self._lock:
            entry = self._answers.setdefault(name, _Answer())
        with entry.making:
            if entry.moment != moment:
                # It may include changes made after this moment; then the next look rebuilds it.
                entry.made = make()
                entry.moment = moment
            found: Made = entry.made
            return found

    def forget_answers(self) -> None:
        """Discard all answers, so that they are made again."""
        with self._lock:
            self._answers.clear()

    def expect(self, version: int) -> None:
        """The setup has changed: `latest_setup` is of this version or later from now on."""
        self._seen = max(self._seen, version)

    def latest_setup(self, store: Store) -> Setup:
        """The setup at the latest moment that was seen, or a later one."""
        found = self.known_setup()
        if found is None:
            with store.read() as connection:
                found = self.setup(connection)
        return found

    def hear_again(self, store: Store, setup: Setup, now_ms: int) -> Setup:
        """The same setup with the heartbeats of this moment, asked for once a second at most."""
        with self._hearing:
            if now_ms - self._heard_ms < HEARD_MS:
                kept = self._setup
                return kept if kept is not None and kept.version == setup.version else setup
            self._heard_ms = now_ms
            with store.read() as connection:
                if self.look(connection).setup != setup.version:
                    return setup
                heard = msgspec.structs.replace(setup, backends=node_store.backends(connection))
            if self._setup is setup:
                self._setup = heard
            return heard

    def setup(self, connection: sa.Connection) -> Setup:
        """The setup of this moment, in a reading transaction."""
        version = self.look(connection).setup
        found = self._setup
        if found is None or found.version != version:
            found = read_setup(connection)
            if self._setup is None or self._setup.version < found.version:
                self._setup = found
        return found


def _has_room(node: OfferedNode, needs: Resources) -> bool:
    return (
        node.gpus >= needs.gpus
        and node.cpu_milli >= needs.cpu_milli
        and node.memory_bytes >= needs.memory_bytes
    )
