"""Everything a decision may depend on, frozen: what is declared, what runs, what waits, the time.

Gangs are kept by queue, so that two snapshots share the tuples of the queues in which nothing
happened, and a memo can see at once what changed.
"""

from __future__ import annotations

import msgspec

from bough.model.cluster import Node, Topology
from bough.model.gang import Gang
from bough.model.quota import Cohort, Queue
from bough.model.workload import Assignment, Flavor, LocalQueue


class Progress(msgspec.Struct, frozen=True, gc=False):
    """What an earlier cycle found out about a workload that still waits."""

    #: Room is being freed for it.
    nominated: bool = False
    #: What its pod sets will get there, where it has any.
    promised: tuple[Assignment, ...] = ()
    #: For which gangs it was evicted, and for which these were: it takes nothing from them.
    gave_way_to: tuple[str, ...] = ()
    #: Where, by pod; nothing, where that is not known or not the question.
    places: dict[str, str] = {}
    #: By pod set and resource: the position of the last flavor that was tried; the next try goes
    #: on behind it. What is missing begins with the first flavor.
    tried: dict[str, dict[str, int]] = {}


class Parked(msgspec.Struct, frozen=True, gc=False):
    """Which gangs of a queue earlier plans set aside until something in its tree changes."""

    #: All gangs of these shapes, as core.cycle.claim writes shapes.
    shapes: tuple[bytes, ...] = ()
    #: And these, by name.
    workloads: tuple[str, ...] = ()


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """The world at one moment."""

    #: Milliseconds since 1970, or since whatever the adapter's clock began with.
    now_ms: int = 0
    #: The adapter's version of this state; a plan is applied only to the version it was made for.
    version: int = 0
    cohorts: tuple[Cohort, ...] = ()
    queues: tuple[Queue, ...] = ()
    flavors: tuple[Flavor, ...] = ()
    nodes: tuple[Node, ...] = ()
    topologies: tuple[Topology, ...] = ()
    #: The local queues of namespaces; one that is stopped keeps its workloads waiting.
    local_queues: tuple[LocalQueue, ...] = ()
    #: Labels by namespace; `None`: namespaces do not matter, and all may use every queue.
    namespaces: dict[str, dict[str, str]] | None = None
    #: By queue that was declared, takes no gangs and is not among the queues: why, as a sentence.
    closed: dict[str, str] = {}
    #: All work by queue, whether it runs, waits, or both.
    gangs: dict[str, tuple[Gang, ...]] = {}
    #: By queue: which of those that wait a plan does not look at.
    parked: dict[str, Parked] = {}
    #: By gang, for those that wait.
    progress: dict[str, Progress] = {}
    #: By cohort or queue: how many GPUs one owner (`Gang.owner`) may hold in all the queues below
    #: it together. What counts is guaranteed: gangs that are not preemptible, up to their minimum.
    #: What waits behind an earlier gang of its owner, held back by the same limit, waits as well.
    owner_gpu_limits: dict[str, int] = {}
