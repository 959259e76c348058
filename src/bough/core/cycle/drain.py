"""Queues that are to be emptied: whatever holds quota in them is told to end.

Must not know who waits.
"""

from __future__ import annotations

from bough.core.cycle.work import Work
from bough.model.admission import StopPolicy
from bough.model.plan import Eviction, EvictionRule
from bough.model.workload import Workload


def drain(work: Work) -> None:
    """Evict everything from queues, and through doors, that are held and drained.

    What is told to end holds its quota until it has ended.
    """
    doors = [each for each in work.snapshot.local_queues if each.stop is StopPolicy.HOLD_AND_DRAIN]
    names = {(each.namespace, each.name) for each in doors}
    for queue in sorted(work.snapshot.admitted):
        leaf = work.forest.leaves.get(queue)
        whole = leaf is not None and leaf.queue.rules.stop is StopPolicy.HOLD_AND_DRAIN
        if not whole and not names:
            continue
        node = None if leaf is None else leaf.node
        for workload in sorted(work.snapshot.admitted[queue], key=_key):
            drained = whole or (workload.namespace, workload.local_queue) in names
            if drained and workload.holds_quota and not workload.has("Evicted"):
                work.evict(Eviction(workload.key, EvictionRule.DRAIN, level=node))


def _key(workload: Workload) -> str:
    return workload.key
