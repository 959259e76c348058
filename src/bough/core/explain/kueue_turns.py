"""When a gang has its turn: cycle after cycle, while nothing ends.

Where a cycle judges the heads of queues together, those behind are looked at when the ones before
them got their quota, or were set aside.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.cycle.waiting_lines import Lines
from bough.core.cycle.waits import is_waiting
from bough.model.gang import Gang, Pod, PodState
from bough.model.plan import Plan, Wait
from bough.model.policy import Policy
from bough.model.snapshot import Snapshot
from bough.model.workload import WorkloadCondition

replace = msgspec.structs.replace

#: Conditions that no longer hold once a gang gets quota.
_OVERTAKEN = ("QuotaReserved", "Evicted", "Preempted")


class HeadTurn(NamedTuple):
    """The cycle that decided about a gang, or the last one before nothing changed any more."""

    snapshot: Snapshot
    plan: Plan
    #: How many cycles it took.
    plans: int
    #: What was said of the gang, of itself or of one like it.
    wait: Wait | None = None


def find_turn(snapshot: Snapshot, policy: Policy, name: str, most: int) -> HeadTurn:
    """Plan until something is decided about a gang that waits, at most so many times."""
    lines = Lines(policy, snapshot.cohorts, snapshot.queues)
    for queue in sorted(snapshot.gangs):
        for gang in snapshot.gangs[queue]:
            if is_waiting(gang):
                lines.add(queue, gang)
    memo = Memo()
    state = replace(snapshot, parked={})
    number = 1
    while True:
        decided = plan(state, policy, memo)
        turn = HeadTurn(state, decided, number)
        if starts(decided, name) or any(each.workload == name for each in decided.nominations):
            return turn
        lines.settle(decided)
        following = replace(
            carried_out(state, decided), parked=lines.parked, progress=lines.progress
        )
        wait = lines.wait_of(name)
        at_rest = _is_same(state, following)
        if (wait is not None and wait.parked) or at_rest or number >= most:
            return turn._replace(wait=wait)
        state = following
        number += 1


def starts(decided: Plan, name: str) -> bool:
    """Whether a gang gets what it needs at once."""
    return any(admit.workload == name for admit in decided.admits) or any(
        bind.workload == name and not bind.growth for bind in decided.binds
    )


def carried_out(snapshot: Snapshot, decided: Plan) -> Snapshot:
    """What was started holds its quota and its places; what was told to end holds them still."""
    places: dict[str, dict[str, str]] = {}
    for bind in decided.binds:
        places.setdefault(bind.workload, {})[bind.pod] = bind.node
    admits = {admit.workload: admit.admission for admit in decided.admits}
    told = {each.workload: each.pods for each in decided.evictions}
    changed = {*places, *admits, *told}

    def after(gang: Gang) -> Gang:
        if gang.name in admits:
            kept = (each for each in gang.conditions if each.type not in _OVERTAKEN)
            since = WorkloadCondition("QuotaReserved", True, since_ms=snapshot.now_ms)
            gang = replace(gang, admission=admits[gang.name], conditions=(*kept, since))
        elif gang.admission is not None and gang.name in told:
            evicted = WorkloadCondition("Evicted", True, "Preempted")
            gang = replace(gang, conditions=(*gang.conditions, evicted))
        if gang.pods:
            pods = (
                _moved(pod, places.get(gang.name, {}), told.get(gang.name)) for pod in gang.pods
            )
            gang = replace(gang, pods=tuple(pods))
        return gang

    gangs = {
        queue: tuple(after(gang) if gang.name in changed else gang for gang in row)
        if any(gang.name in changed for gang in row)
        else row
        for queue, row in snapshot.gangs.items()
    }
    return replace(snapshot, gangs=gangs)


def _moved(pod: Pod, places: dict[str, str], told: tuple[str, ...] | None) -> Pod:
    if pod.name in places:
        return replace(pod, state=PodState.RUNNING, node=places[pod.name])
    ends = told is not None and pod.state is PodState.RUNNING and (not told or pod.name in told)
    return replace(pod, state=PodState.RELEASING) if ends else pod


def _is_same(before: Snapshot, after: Snapshot) -> bool:
    return (
        before.gangs == after.gangs
        and before.parked == after.parked
        and before.progress == after.progress
    )
