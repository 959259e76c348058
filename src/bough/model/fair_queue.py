"""Queues that share by weight: what each deserves, may have at most, and gets of what is left.

Amounts are exact: GPUs in devices (parts of one are possible), CPU in thousandths of a core,
memory in bytes; `None` means no limit.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction

import msgspec


class FairAmount(msgspec.Struct, frozen=True):
    """What a queue has of one resource."""

    #: What it deserves; `None`: as much as there is.
    quota: Fraction | None = Fraction(0)
    #: What it may use at most.
    limit: Fraction | None = Fraction(0)
    #: Its share of what is left when all have what they deserve.
    over_quota_weight: Fraction = Fraction(0)


class FairQueue(msgspec.Struct, frozen=True):
    """A queue of a tree in which only leaves take gangs."""

    name: str
    #: `None`: at the top.
    parent: str | None = None
    priority: int = 100
    gpus: FairAmount = FairAmount()
    cpu_milli: FairAmount = FairAmount()
    memory_bytes: FairAmount = FairAmount()
    #: How long its gangs are safe from others of the same queue; `None`: not said here.
    preempt_min_runtime_s: int | None = None
    #: How long they are safe from other queues.
    reclaim_min_runtime_s: int | None = None
    display_name: str | None = None
    #: Among queues that are equal otherwise the older goes first.
    created_ms: int = 0


class QueueObstacleKind(StrEnum):
    """Why a queue takes no gangs."""

    UNNAMED = "unnamed"
    MISSING = "missing"
    #: Only leaves take gangs.
    INNER = "inner"
    #: It, or a queue above it, names a parent that does not exist.
    ORPHAN = "orphan"
    #: The queues above it form a cycle.
    CYCLE = "cycle"


class QueueObstacle(msgspec.Struct, frozen=True):
    """Why a gang waits, whatever room there is: the queue it names takes no gangs."""

    kind: QueueObstacleKind
    queue: str
    #: INNER: the queues below it. ORPHAN: the parent that is missing. CYCLE: those on it.
    others: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The reason in one sentence."""
        others = ", ".join(self.others)
        sentences = {
            QueueObstacleKind.UNNAMED: "it names no queue",
            QueueObstacleKind.MISSING: f"queue {self.queue!r} does not exist",
            QueueObstacleKind.INNER: (
                f"queue {self.queue!r} is not a leaf; gangs go to the queues below it: {others}"
            ),
            QueueObstacleKind.ORPHAN: (
                f"queue {self.queue!r} is stopped: the queue {others!r} above it does not exist"
            ),
            QueueObstacleKind.CYCLE: f"queue {self.queue!r} is stopped: a cycle above it, {others}",
        }
        return sentences[self.kind]
