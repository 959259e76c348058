"""Everything that is declared together: the quota tree, its local queues, its workloads."""

from __future__ import annotations

import msgspec

from bough.model.quota import Cohort, Queue
from bough.model.workload import Flavor, LocalQueue, Workload


class Organisation(msgspec.Struct, frozen=True):
    """All objects, in the order of their declaration; names are unique within each kind."""

    cohorts: tuple[Cohort, ...] = ()
    queues: tuple[Queue, ...] = ()
    flavors: tuple[Flavor, ...] = ()
    local_queues: tuple[LocalQueue, ...] = ()
    workloads: tuple[Workload, ...] = ()
