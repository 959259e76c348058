"""Evictions for no other gang: of queues that are drained, and of gangs incomplete for too long."""

from __future__ import annotations

from bough.core.cycle.cycle import Cycle
from bough.core.gang.sufficiency import is_sufficient
from bough.core.gang.tree import counts_of
from bough.model.admission_rules import StopPolicy
from bough.model.plan import EvictionRule


def drain(cycle: Cycle) -> None:
    """Evict everything from queues and local queues that are held and drained.

    Gangs that need the room may be nominated for it. Where gangs that were told to end still count
    in full, pod sets hold their quota until they have ended.
    """
    copy = cycle.copy
    doors = {
        key for key, door in copy.local_queues.items() if door.stop is StopPolicy.HOLD_AND_DRAIN
    }
    for queue, leaf in copy.forest.leaves.items():
        whole = leaf.queue.rules.stop is StopPolicy.HOLD_AND_DRAIN
        if not whole and not doors:
            continue
        claims = copy.running.get(queue, {})
        for name in sorted(claims):
            claim = claims[name]
            drained = whole or (claim.gang.namespace, claim.gang.local_queue) in doors
            if drained and not claim.evicted:
                cycle.outcome.end(claim, EvictionRule.DRAIN, leaf.node)
                if not claim.counted:
                    copy.end(claim, claim.running)
                elif not copy.policy.ending_counts:
                    copy.evict_counted(claim)
    copy.forest.changed()


def end_stale(cycle: Cycle) -> None:
    """Evict gangs that have run with less than they need for too long."""
    copy, outcome = cycle.copy, cycle.outcome
    grace = copy.rules.staleness_grace_ms
    if grace is None:
        return
    for claim in sorted(copy.stale.values(), key=lambda claim: claim.standing):
        since = claim.gang.stale_since_ms
        due = grace == 0 or (since is not None and since + grace <= copy.now_ms)
        if claim.name in outcome.evicted or not due:
            continue
        if not is_sufficient(claim.tree, counts_of(copy.held(claim))):
            outcome.end(claim, EvictionRule.STALE)
