"""The queues that a cluster should have, and what was found when they were compared with its own.

A backend whose cluster has a scheduler of its own is told the tree, and keeps the cluster in step.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec

from bough.model.names import QueueName


class LeafQueue(msgspec.Struct, frozen=True):
    """A queue that takes work: what the subpools of a pool leave, or one subpool."""

    name: QueueName
    #: For HIGH and NORMAL; `None`: no limit.
    quota: int | None


class PoolQueue(msgspec.Struct, frozen=True):
    """A pool, with all its leaves: those of subpools that are ACTIVE or DELETING."""

    name: QueueName
    quota: int | None
    #: Everything that may be used at once; `None`: no limit.
    limit: int | None = None
    weight: int = 1
    leaves: tuple[LeafQueue, ...] = ()
    #: The labels of its topology, widest first; empty: it has none.
    levels: tuple[str, ...] = ()


class QueueTree(msgspec.Struct, frozen=True):
    """All queues of one backend, below one that has no limit."""

    root: QueueName
    pools: tuple[PoolQueue, ...] = ()


def topology_name(pool: QueueName) -> str:
    """The name of the topology of a pool in its cluster; its subpools use it, too."""
    return f"{pool.exported}-topology"


def class_name(prefix: str, priority: str) -> str:
    """The name of a priority in a cluster."""
    return f"{prefix}-{priority}".lower()


class Repair(msgspec.Struct, frozen=True):
    """An object that others had changed or deleted, and that is as it should be again."""

    at_ms: int
    #: As `Queue/osmo-pool-default-team`.
    subject: str
    #: What was found, in a sentence.
    message: str


class QueueReport(msgspec.Struct, frozen=True):
    """What a backend found when it compared a cluster with the tree."""

    #: What was put right and is not recorded yet, in order.
    repairs: tuple[Repair, ...] = ()
    #: What it cannot put right now, in sentences that people act upon; sorted.
    troubles: tuple[str, ...] = ()
    #: When the cluster was last as it should be; `None`: it never was.
    in_step_ms: int | None = None


@runtime_checkable
class KeepsQueues(Protocol):
    """A backend whose cluster has queues that follow Bough's."""

    @property
    def name(self) -> str:
        """The name that pools refer to."""
        ...

    def keep_queues(self, tree: QueueTree) -> None:
        """Bring the cluster in step with a tree, and keep it there, in the background."""
        ...

    def queue_report(self) -> QueueReport:
        """What was found so far."""
        ...

    def forget_repairs(self, count: int) -> None:
        """The first repairs of the last report are recorded."""
        ...
