"""When a workload in the form of Kueue has its turn: cycle after cycle, while nothing ends.

A cycle looks at the first in line of each queue only; who stands behind is looked at when those
before it got their quota, or were set aside. Must not know why anything is decided.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from bough.core.cycle.lines import Lines
from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.model.plan import Plan, Wait
from bough.model.policy import Policy
from bough.model.snapshot import Snapshot
from bough.model.workload import Workload, WorkloadCondition

replace = msgspec.structs.replace

#: Conditions that say no more what they said once a workload gets quota.
_OVERTAKEN = ("QuotaReserved", "Evicted", "Preempted")


class Turn(NamedTuple):
    """The cycle that decided about a workload, or the last one before nothing changed any more."""

    snapshot: Snapshot
    plan: Plan
    #: How many cycles it took.
    plans: int
    #: What was said of the workload, of itself or of one like it.
    wait: Wait | None = None
    #: Whether the cycles came to an end, and not only to their bound.
    settled: bool = True

    def admits(self, key: str) -> bool:
        """Whether it gets quota."""
        return any(admit.workload == key for admit in self.plan.admits)

    def nominates(self, key: str) -> bool:
        """Whether room is being freed for it."""
        return any(each.workload == key for each in self.plan.nominations)


def find_turn(snapshot: Snapshot, policy: Policy, key: str, most: int) -> Turn:
    """Plan until something is decided about a workload that waits, at most so many times."""
    lines = Lines(policy, snapshot.cohorts, snapshot.queues)
    for queue in sorted(snapshot.waiting):
        for workload in snapshot.waiting[queue]:
            lines.add(queue, workload)
    memo = Memo()
    state = replace(snapshot, waiting=lines.waiting, parked={})
    number = 1
    while True:
        decided = plan(state, policy, memo)
        turn = Turn(state, decided, number)
        if turn.admits(key) or turn.nominates(key):
            return turn
        lines.settle(decided)
        following = replace(
            carried_out(state, decided),
            waiting=lines.waiting,
            parked=lines.parked,
            progress=lines.progress,
        )
        wait = lines.wait_of(key)
        if (wait is not None and wait.parked) or _is_same(state, following):
            return turn._replace(wait=wait)
        if number >= most:
            return turn._replace(wait=wait, settled=False)
        state = following
        number += 1


def _is_same(before: Snapshot, after: Snapshot) -> bool:
    return (
        before.waiting == after.waiting
        and before.parked == after.parked
        and before.progress == after.progress
        and before.admitted == after.admitted
    )


def carried_out(snapshot: Snapshot, decided: Plan) -> Snapshot:
    """What was admitted holds quota; who was told to end holds it still."""
    waiting = {each.key: each for line in snapshot.waiting.values() for each in line}
    told = {eviction.workload for eviction in decided.evictions}
    admitted = {
        queue: tuple(_told(each) if each.key in told else each for each in held)
        if any(each.key in told for each in held)
        else held
        for queue, held in snapshot.admitted.items()
    }
    since = WorkloadCondition("QuotaReserved", True, since_ms=snapshot.now_ms)
    for admit in decided.admits:
        queue = admit.admission.queue
        holder = waiting[admit.workload]
        kept = (each for each in holder.conditions if each.type not in _OVERTAKEN)
        held = replace(holder, admission=admit.admission, conditions=(*kept, since))
        admitted[queue] = (*admitted.get(queue, ()), held)
    return replace(snapshot, admitted=admitted)


def _told(workload: Workload) -> Workload:
    return replace(
        workload, conditions=(*workload.conditions, WorkloadCondition("Evicted", True, "Preempted"))
    )
