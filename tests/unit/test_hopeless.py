"""What would not fit even if nothing ran costs its queue no turn, unless all wait for the first."""

from __future__ import annotations

import pytest

from bough.core.cycle.plan import plan
from bough.core.gang.from_workload import gang_of_workload
from bough.model.admission_rules import AdmissionRules, QueueingStrategy
from bough.model.gang import Gang
from bough.model.gang_rules import LineOrder
from bough.model.policy import KAI, KUEUE, OSMO, Policy
from bough.model.snapshot import Parked, Snapshot
from bough.model.workload import Flavor
from tests.cycle_gangs import HIGH, LOW, NORMAL, cluster, gang, node, queue
from tests.cycle_kueue import pods, waiting
from tests.simulation import replace, started

BY_WEIGHT = replace(OSMO, gangs=replace(OSMO.gangs, line=LineOrder.BY_WEIGHT))
GROWS_IN_LINE = replace(KAI, gangs=replace(KAI.gangs, hopeless_aside=True))
policies = pytest.mark.parametrize(
    "policy", [BY_WEIGHT, GROWS_IN_LINE], ids=["by weight", "grows in line"]
)
SETS = gang_of_workload(waiting("first", gpu=5, priority=HIGH), "q")
#: At most 4 GPUs could be had by the queue, and two nodes have 2 each.
HOPELESS = {
    "more than the quota": gang("first", "q", HIGH, pods=2, gpus=2),
    "more than there is": gang("first", "q", LOW, gpus=1, pods=5),
    "a pod larger than any node": gang("first", "q", HIGH, gpus=3),
    "more pods than the nodes can hold": gang("first", "q", LOW, gpus=2, pods=3),
    "pod sets": SETS,
    "the smallest of pod sets": replace(SETS, pod_sets=(pods(9, 5, gpu=1),)),
    "pods of more than 64 bits can count": gang("first", "q", HIGH, gpus=2**70),
    "pod sets of more than 64 bits can count": replace(SETS, pod_sets=(pods(1, gpu=2**70),)),
    "what the queue does not have": replace(SETS, pod_sets=(pods(1, tpu=1),)),
}


def contested(first: Gang, **rules: object) -> Snapshot:
    """One GPU is left: of q, which uses none of its quota of 3, or of one that borrows."""
    runs = gang("runs", "other", LOW, gpus=1, pods=3, on=("n", "n", "m"))
    behind, wants = gang("behind", "q", LOW, at=5), gang("wants", "other", LOW, at=1)
    first = replace(first, priority=HIGH, preemptible=first.preemptible)
    declared = replace(queue("q", 3), rules=AdmissionRules(namespaces=(), **rules))  # type: ignore[arg-type]
    nodes = [node("n", 2), node("m", 2)]
    world = cluster(nodes, [declared, queue("other", 1, weight=100)], [first, behind, runs, wants])
    return replace(world, flavors=(Flavor("any"),))


@policies
@pytest.mark.parametrize("first", HOPELESS.values(), ids=HOPELESS)
def test_the_next_of_its_queue_is_served(policy: Policy, first: Gang) -> None:
    decided = plan(contested(first), policy)

    assert ["behind"] == started(decided)
    assert first.name in {wait.workload for wait in decided.waits}


@policies
@pytest.mark.parametrize("first", HOPELESS.values(), ids=HOPELESS)
def test_in_a_queue_in_which_all_wait_for_the_first_nothing_is(policy: Policy, first: Gang) -> None:
    decided = plan(contested(first, queueing=QueueingStrategy.STRICT_FIFO), policy)

    assert ["wants"] == started(decided)


def test_as_in_kai_a_queue_is_weighed_by_what_its_first_asks_for() -> None:
    decided = plan(contested(HOPELESS["more than the quota"]), KAI)

    assert ["wants"] == started(decided)


def test_what_may_fit_one_day_has_its_turn() -> None:
    decided = plan(contested(gang("first", "q", NORMAL, gpus=2)), BY_WEIGHT)

    assert "first" in {each.workload for each in decided.nominations}


@pytest.mark.parametrize("first", HOPELESS.values(), ids=HOPELESS)
def test_as_in_kueue_the_first_costs_the_turn_of_one_cycle_and_is_then_set_aside(
    first: Gang,
) -> None:
    world = contested(first)
    decided = plan(world, KUEUE)
    assert ["wants"] == started(decided)

    (wait,) = (each for each in decided.waits if each.workload == first.name)
    assert wait.parked
    parked = {"q": Parked(workloads=(first.name,))}
    assert ["behind"] == started(plan(replace(world, parked=parked), KUEUE))
