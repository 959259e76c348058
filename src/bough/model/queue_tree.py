"""The queues that a cluster should have, and how the cluster differed from them.

A backend whose cluster has a scheduler of its own gets this tree, and keeps the cluster in step.
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
    #: The limit on all use together; `None`: no limit.
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
    """An object that others had changed or deleted, and that was repaired."""

    at_ms: int
    #: As `Queue/osmo-pool-default-team`.
    subject: str
    #: What was found, in a sentence.
    message: str


class QueueReport(msgspec.Struct, frozen=True):
    """What a backend found when it compared a cluster with the tree."""

    #: Repairs that are not recorded yet, in order.
    repairs: tuple[Repair, ...] = ()
    #: What it cannot repair now, in sentences that tell people what to do; sorted.
    troubles: tuple[str, ...] = ()
    #: When the cluster last agreed with the tree; `None`: never.
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
        """The latest comparison."""
        ...

    def forget_repairs(self, count: int) -> None:
        """Drop the first repairs of the last report, which are recorded now."""
        ...
