"""Clusters whose own queues follow Bough's: the wanted tree, and the differences found.

The backend compares and repairs; this module derives the tree from the pools, and records repairs.
"""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import SYSTEM_ACTOR, audit, happen
from bough.control.people.access import authorise
from bough.control.pools.pool_setup import PoolSetup, read_pool_setup, unallocated
from bough.control.site import Site
from bough.model.access import Action, Actor
from bough.model.change_record import EventKind
from bough.model.names import SHARED, QueueName
from bough.model.pool import Pool
from bough.model.queue_tree import (
    KeepsQueues,
    LeafQueue,
    PoolQueue,
    QueueReport,
    QueueTree,
    Repair,
)
from bough.model.subpool import Subpool
from bough.store import settings as setting_store
from bough.store.rows import convert

#: How many repairs are shown; the audit has all.
_SHOWN = 50
_DRIFT = "drift/"


class Drift(msgspec.Struct, frozen=True):
    """What is stored of a cluster."""

    backend: str
    #: What cannot be repaired, and the last repairs, the newest first.
    troubles: tuple[str, ...] = ()
    repairs: tuple[Repair, ...] = ()


class QueueWatch:
    """Sends one cluster every change of the pools, and stores what its backend reports."""

    def __init__(self, site: Site, backend: KeepsQueues) -> None:
        self._site = site
        self._backend = backend
        #: The version of the pools from which the tree was last derived.
        self._setup: int | None = None
        self._troubles: tuple[str, ...] | None = None

    def attend(self) -> None:
        """Send the tree if pools changed, and record the report."""
        with self._site.store.read() as connection:
            setup = setting_store.counter(connection, setting_store.SETUP)
            config = None if setup == self._setup else read_pool_setup(connection)
        if config is not None:
            root = QueueName(self._site.namespace, prefix=self._site.prefix)
            self._backend.keep_queues(queue_tree(config, root, self._backend.name))
            self._setup = setup
        report = self._backend.queue_report()
        if report.repairs or report.troubles != self._troubles:
            self._record(report)

    def _record(self, report: QueueReport) -> None:
        name = self._backend.name
        with self._site.store.write() as connection:
            before = _read(connection, name)
            after = Drift(name, report.troubles, (*report.repairs[::-1], *before.repairs)[:_SHOWN])
            if after != before:
                setting_store.put(connection, _DRIFT + name, msgspec.to_builtins(after))
            for each in report.repairs:
                audit(connection, self._site, SYSTEM_ACTOR, "kube:Repair", each.subject, None, each)
                data = {"backend": name, "subject": each.subject}
                happen(
                    connection,
                    self._site,
                    EventKind.CLUSTER_REPAIRED,
                    name,
                    message=f"{each.subject}: {each.message}",
                    data=data,
                )
            for text in sorted(set(report.troubles) - set(before.troubles)):
                kind, data = EventKind.CLUSTER_TROUBLE, {"backend": name}
                happen(connection, self._site, kind, name, message=text, data=data)
        self._backend.forget_repairs(len(report.repairs))
        self._troubles = report.troubles


def list_drift(site: Site, actor: Actor) -> list[Drift]:
    """The stored differences of all clusters whose queues follow Bough's."""
    authorise(actor, Action.AUDIT_READ, names=site.role_names)
    backends = (name for name, can in site.abilities.items() if not can.places_tasks)
    with site.store.read() as connection:
        return [_read(connection, name) for name in sorted(backends)]


def queue_tree(config: PoolSetup, root: QueueName, backend: str) -> QueueTree:
    """The queues of the pools of one backend. Pure: same pools, same tree."""
    subpools: dict[str, list[Subpool]] = {
        pool.name: [] for pool in config.pools if pool.backend == backend
    }
    for each in config.subpools:
        if each.visible and each.parent in subpools:
            subpools[each.parent].append(each)
    mine = (pool for pool in config.pools if pool.name in subpools)
    return QueueTree(root, tuple(_pool_queue(root, pool, subpools[pool.name]) for pool in mine))


def _pool_queue(root: QueueName, pool: Pool, subpools: list[Subpool]) -> PoolQueue:
    def named(leaf: str | None) -> QueueName:
        return msgspec.structs.replace(root, pool=pool.name, leaf=leaf)

    return PoolQueue(
        named(None),
        pool.gpu.guarantee,
        pool.gpu.maximum,
        pool.gpu.weight,
        (
            LeafQueue(named(SHARED), unallocated(pool, subpools)),
            *(LeafQueue(named(each.subpool), each.counted) for each in subpools),
        ),
        tuple(each.label for each in pool.topology_keys),
    )


def _read(connection: sa.Connection, backend: str) -> Drift:
    found = setting_store.get(connection, _DRIFT + backend)
    return Drift(backend) if found is None else convert(found, Drift)
