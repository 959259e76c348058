"""Everything a decision may depend on, frozen: what is declared, what runs, what waits, the time.

Waiting and running work is kept by queue, so that two snapshots share the tuples of the queues in
which nothing happened, and a memo can see at once what changed. Must not know what is decided.
"""

from __future__ import annotations

import msgspec

from bough.model.cluster import Node, Topology
from bough.model.gang import Gang
from bough.model.quota import Cohort, Queue
from bough.model.workload import Flavor, Workload


class Snapshot(msgspec.Struct, frozen=True):
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
    #: Work in the form of Kueue, by queue: what holds quota, and what waits for it.
    admitted: dict[str, tuple[Workload, ...]] = {}
    waiting: dict[str, tuple[Workload, ...]] = {}
    #: Work in the form of gangs, by queue, whether it runs or waits.
    gangs: dict[str, tuple[Gang, ...]] = {}
