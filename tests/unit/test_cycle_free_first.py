"""Free room is given to all in line before anything ends for one of them."""

from __future__ import annotations

import pytest

from bough.core.cycle.plan import plan
from bough.core.gang.from_workload import gang_of_workload
from bough.model.gang import Gang
from bough.model.plan import Plan
from bough.model.policy import KAI_FAIR
from bough.model.snapshot import Snapshot
from bough.model.workload import Flavor, PodSet, PodTemplate, Workload
from tests.cycle_gangs import LOW, cluster, evicted, gang, node, queue
from tests.simulation import replace


def of_pod_sets(name: str, queue_name: str, *, gpus: int, at: int) -> Gang:
    pods = (PodSet("main", 1, PodTemplate({"gpu": gpus})),)
    made = Workload(name, "", pods, priority=LOW, uid=name, created_ms=at)
    return replace(gang_of_workload(made, queue_name), name=name)


def owed(first: Gang) -> Snapshot:
    """One for which all others must end stands before one that fits as things are."""
    gangs = [gang("has", "b", LOW, gpus=2, on="n"), first, gang("small", "a", LOW, at=2)]
    world = cluster([node("n", 3)], [queue("a", 3), queue("b", 0)], gangs)
    return replace(world, flavors=(Flavor("any"),))


def decide(snapshot: Snapshot, *, free_first: bool) -> Plan:
    return plan(snapshot, replace(KAI_FAIR, gangs=replace(KAI_FAIR.gangs, free_first=free_first)))


both_forms = pytest.mark.parametrize(
    "first",
    [gang("large", "a", LOW, gpus=3, at=1), of_pod_sets("large", "a", gpus=3, at=1)],
    ids=["pods", "pod sets"],
)


@both_forms
def test_what_fits_starts_before_others_end_for_one_that_came_earlier(first: Gang) -> None:
    decided = decide(owed(first), free_first=True)

    assert (["small-0"], []) == ([each.pod for each in decided.binds], evicted(decided))


@both_forms
def test_otherwise_each_has_both_in_its_turn(first: Gang) -> None:
    decided = decide(owed(first), free_first=False)

    assert ([], ["has"]) == ([each.pod for each in decided.binds], evicted(decided))
