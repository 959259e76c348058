"""Gangs of pods and gangs of pod sets that take from each other in one queue."""

from __future__ import annotations

import pytest

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.gang.from_workload import gang_of_workload
from bough.model.gang import Gang, PodState
from bough.model.policy import KAI, KUEUE, OSMO, Policy
from bough.model.snapshot import Snapshot
from bough.model.workload import Flavor
from tests.cycle_gangs import HIGH, LOW, cluster, evicted, gang, node, nominated, queue
from tests.cycle_kueue import running, waiting
from tests.simulation import replace, started

in_turn = pytest.mark.parametrize("policy", [OSMO, KAI], ids=lambda each: each.name)


def sets(name: str, gpus: int, *, told: bool = False) -> Gang:
    """Pod sets that run; `told`: to end."""
    held = running(name, "q", gpus, flavor="any", evicted=told, priority=LOW, created_ms=9)
    return gang_of_workload(held, "q")


def world(gpus: int, *gangs: Gang) -> Snapshot:
    """One queue that has all the GPUs of one node."""
    found = cluster([node("n", gpus)], [queue("q", gpus)], list(gangs))
    return replace(found, flavors=(Flavor("any"),))


@in_turn
def test_what_a_search_took_and_put_back_counts_as_before(policy: Policy) -> None:
    """Pods and pod sets are tried in turn; an undo log that saw only the pods would lose some."""
    pods, wants = gang("pods", "q", LOW, on="n"), gang("wants", "q", HIGH, gpus=2)
    before = world(2, sets("sets", 1), pods, wants)
    memo = Memo()
    assert ["ns/sets", "pods"] == sorted(evicted(plan(before, policy, memo)))

    after = replace(before, gangs={"q": (*before.gangs["q"], gang("later", "q", LOW, at=1))})
    assert plan(after, policy).digest == plan(after, policy, memo).digest


@in_turn
def test_what_was_told_to_end_is_not_taken_once_more(policy: Policy) -> None:
    """Its quota is given away already: the one GPU that is lacking must come from another."""
    low, wants = gang("low", "q", LOW, gpus=2, on="n"), gang("wants", "q", HIGH, gpus=3)
    decided = plan(world(4, sets("told", 2, told=True), low, wants), policy)

    assert (["low"], ["wants"]) == (evicted(decided), nominated(decided))


@pytest.mark.parametrize("policy", [OSMO, KUEUE, KAI], ids=lambda each: each.name)
def test_quota_that_pods_hold_until_they_have_ended_is_not_given_to_pod_sets(
    policy: Policy,
) -> None:
    wants = gang_of_workload(waiting("wants", 2), "q")
    ends = gang("ends", "q", LOW, gpus=2, on="n")
    pods = tuple(replace(pod, state=PodState.RELEASING) for pod in ends.pods)
    decided = plan(world(2, replace(ends, pods=pods), wants), policy)

    assert ((), [], ["ns/wants"]) == (decided.admits, started(decided), nominated(decided))
