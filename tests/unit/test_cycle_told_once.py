"""No gang is told two things, and what one cycle leaves behind changes nothing for the next."""

from __future__ import annotations

import msgspec
import pytest

from bough.core.cycle import plan as cycle
from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.cycle.waits import Waits
from bough.core.gang.from_workload import gang_of_workload
from bough.model.admission_rules import (
    AdmissionRules,
    Preemption,
    PreemptionWithinQueue,
    ReclaimWithinCohort,
    StopPolicy,
)
from bough.model.cluster import Match, Resources
from bough.model.policy import KAI, KUEUE, OSMO, Policy
from bough.model.reason import WaitReason
from bough.model.snapshot import Progress, Snapshot
from bough.model.workload import CheckState, Flavor, LocalQueue
from tests import cycle_kueue
from tests.cycle_gangs import LOW, cohort, gang, node, queue

replace = msgspec.structs.replace
RECLAIMS = Preemption(PreemptionWithinQueue.LOWER_PRIORITY, ReclaimWithinCohort.ANY)


@pytest.mark.parametrize("policy", [OSMO, KUEUE, KAI])
@pytest.mark.parametrize("preemptible", [True, False])
def test_a_gang_of_which_something_starts_is_not_evicted_for_pod_sets(
    policy: Policy, preemptible: bool
) -> None:
    incomplete = gang("x", "b", 200, pods=2, gpus=4, on=("n",))
    first, second = incomplete.pods
    small = replace(second, requests=Resources(cpu_milli=1000, pods=1))
    incomplete = replace(incomplete, pods=(first, small), preemptible=True, started_ms=0)
    owner = gang_of_workload(cycle_kueue.waiting("p", 4, priority=100, created_ms=1), "a")
    owner = replace(owner, preemptible=preemptible)
    decided = plan(
        Snapshot(
            now_ms=1,
            cohorts=(cohort("root", None),),
            queues=(
                replace(queue("a", 4), rules=AdmissionRules(preemption=RECLAIMS)),
                queue("b", 0),
            ),
            nodes=(node("n", 8),),
            flavors=(Flavor("any"),),
            gangs={"a": (owner,), "b": (incomplete,)},
        ),
        policy,
    )

    started = {bind.workload for bind in decided.binds}
    assert set() == started & {each.workload for each in decided.evictions}


@pytest.mark.parametrize("policy", [OSMO, KAI])
def test_a_memo_changes_nothing_for_gangs_that_lose_their_pods_in_this_cycle(
    policy: Policy,
) -> None:
    drained = gang("e", "a", LOW, pods=4, minimum=2, on=("n", "n"))
    drained = replace(drained, namespace="x", local_queue="d")
    others = gang("f", "a", LOW, at=1), gang("g", "b", LOW, at=2)
    before = Snapshot(
        cohorts=(cohort("root", None),),
        queues=(queue("a", 2), queue("b", 2)),
        nodes=(node("n", 3),),
        gangs={"a": (drained,), "b": ()},
        local_queues=(LocalQueue("d", "x", "a"),),
    )
    after = replace(
        before,
        gangs={"a": (drained, others[0]), "b": (others[1],)},
        local_queues=(LocalQueue("d", "x", "a", StopPolicy.HOLD_AND_DRAIN),),
    )
    memo = Memo()
    plan(before, policy, memo)

    assert plan(after, policy) == plan(after, policy, memo)


def test_a_cycle_that_was_broken_off_leaves_nothing_in_the_memo(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Snapshot(
        queues=(queue("q", 8, None),),
        nodes=(node("n", 8),),
        gangs={"q": (gang("a", "q", gpus=8),)},
    )
    memo = Memo()
    with monkeypatch.context() as broken:
        broken.setattr(cycle, "end_stale", _break_off)
        with pytest.raises(KeyboardInterrupt):
            plan(world, OSMO, memo)

    assert plan(world, OSMO) == plan(world, OSMO, memo)


def _break_off(_: object) -> None:
    raise KeyboardInterrupt


def test_a_gang_that_is_barred_by_itself_is_not_told_what_others_of_its_shape_wait_for() -> None:
    rejected = (CheckState("k", "Rejected"),)
    waiting = (
        replace(gang("a", "q", gpus=8, at=0), namespace="ok"),
        replace(gang("b", "q", gpus=8, at=1), namespace="no"),
        replace(gang("c", "q", gpus=8, at=2), namespace="ok", checks=rejected),
    )
    rules = AdmissionRules(namespaces=(Match("team", "Exists"),))
    world = Snapshot(
        queues=(replace(queue("q", 8, None), rules=rules),),
        nodes=(node("n", 8),),
        namespaces={"ok": {"team": "ours"}, "no": {}},
        gangs={"q": (gang("r", "q", gpus=8, on="n"), *waiting)},
    )
    waits = Waits(world, OSMO, plan(world, OSMO))

    found = [waits.of(each) for each in waiting]
    assert [WaitReason.QUOTA, WaitReason.NAMESPACE, WaitReason.CHECK] == [
        each.reason for each in found if each is not None
    ]


@pytest.mark.parametrize("promised", ["f1", "f2"])
def test_room_that_was_freed_for_a_gang_goes_to_its_queue_whatever_is_before_it(
    promised: str,
) -> None:
    alike = gang("f1", "a", LOW, at=0), gang("f2", "a", LOW, at=5)
    decided = plan(
        Snapshot(
            cohorts=(cohort("root", None),),
            queues=(queue("a", 0), queue("b", 0), queue("z", 4)),
            nodes=(node("n", 1),),
            gangs={"a": alike, "b": (gang("g1", "b", LOW, at=-1),)},
            progress={promised: Progress(nominated=True)},
        ),
        KAI,
    )

    assert {"f1", "f2"} >= {bind.workload for bind in decided.binds} != set()
