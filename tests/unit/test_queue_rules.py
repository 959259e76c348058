"""What a queue says about admission holds for gangs of pods, whatever the preset."""

from __future__ import annotations

import pytest

from bough.core.cycle.plan import plan
from bough.core.cycle.waits import Waits
from bough.model.admission_rules import (
    AdmissionRules,
    BorrowWithinCohort,
    Preemption,
    PreemptionWithinQueue,
    QueueingStrategy,
    ReclaimWithinCohort,
    StopPolicy,
)
from bough.model.cluster import Match
from bough.model.gang import Gang
from bough.model.plan import Eviction, EvictionRule, Plan
from bough.model.policy import KAI, KUEUE, OSMO, Heads, Policy
from bough.model.quota import NodeKind, Queue, TreeNode
from bough.model.snapshot import Parked, Progress, Snapshot
from tests.cycle_gangs import HIGH, LOW, NORMAL, cluster, evicted, gang, node, nominated, queue
from tests.simulation import replace, started

every_preset = pytest.mark.parametrize("policy", [OSMO, KUEUE, KAI], ids=lambda each: each.name)
NEVER = Preemption()
TAKES = Preemption(PreemptionWithinQueue.LOWER_PRIORITY, ReclaimWithinCohort.ANY)


def ruled(declared: Queue, **rules: object) -> Queue:
    """A queue that says something of its own; every namespace may use it."""
    return replace(declared, rules=AdmissionRules(**{"namespaces": (), **rules}))  # type: ignore[arg-type]


def reasons(snapshot: Snapshot, policy: Policy, decided: Plan) -> dict[str, str]:
    """Why each gang waits, of its own or like another."""
    return {each.workload: each.reason for each in Waits(snapshot, policy, decided).every()}


def grown(decided: Plan) -> list[str]:
    return [bind.pod for bind in decided.binds if bind.growth]


# A queue that is stopped

HELD = ruled(queue("q", 8), stop=StopPolicy.HOLD)
DRAINED = ruled(queue("q", 8), stop=StopPolicy.HOLD_AND_DRAIN)
ELASTIC = gang("elastic", "q", pods=3, minimum=1, on=("n",))
INCOMPLETE = gang("incomplete", "q", pods=2, on=("n",))


@every_preset
@pytest.mark.parametrize("priority", [LOW, HIGH])
def test_nothing_starts_in_a_queue_that_is_held(policy: Policy, priority: int) -> None:
    world = cluster([node("n")], [HELD], [gang("waits", "q", priority)])
    decided = plan(world, policy)

    assert [] == started(decided)
    assert {"waits": "stopped"} == reasons(world, policy, decided)


@every_preset
@pytest.mark.parametrize("running", [ELASTIC, INCOMPLETE], ids=lambda each: each.name)
def test_what_runs_in_a_queue_that_is_held_goes_on_and_does_not_grow(
    policy: Policy, running: Gang
) -> None:
    decided = plan(cluster([node("n")], [HELD], [running]), policy)

    assert ((), ()) == (decided.binds, decided.evictions)


@every_preset
def test_what_runs_in_a_queue_that_is_not_held_grows(policy: Policy) -> None:
    decided = plan(cluster([node("n")], [queue("q", 8)], [ELASTIC]), policy)

    assert ["elastic-1", "elastic-2"] == grown(decided)


@every_preset
def test_nothing_is_taken_for_growth_in_a_queue_that_is_held(policy: Policy) -> None:
    growing = gang("growing", "q", HIGH, pods=2, minimum=1, on=("n",))
    borrower = gang("borrower", "other", LOW, on="n")
    world = cluster([node("n", 2)], [HELD, queue("other", 0)], [growing, borrower])

    assert [] == evicted(plan(world, policy))


@every_preset
def test_what_runs_in_a_queue_that_is_drained_ends(policy: Policy) -> None:
    high, low = gang("high", "q", HIGH, on="n"), gang("low", "q", LOW, on="n")
    waits = gang("waits", "q", HIGH)
    world = cluster([node("n")], [DRAINED], [high, low, waits])
    decided = plan(world, policy)

    level = TreeNode(NodeKind.QUEUE, "q")
    ends = [Eviction(name, EvictionRule.DRAIN, level=level) for name in ("high", "low")]
    assert ends == list(decided.evictions)
    assert [] == started(decided)
    assert "stopped" == reasons(world, policy, decided)["waits"]


@every_preset
def test_what_is_drained_ends_for_none_other_and_only_once(policy: Policy) -> None:
    """Another queue could reclaim what is drained: it gets that room, and nothing more ends."""
    drained = gang("drained", "q", LOW, on="n", gpus=4)
    borrower = gang("borrower", "third", LOW, on="n", gpus=4, at=9)
    empty = [ruled(queue("q", 0), stop=StopPolicy.HOLD_AND_DRAIN), queue("third", 0)]
    wants = gang("wants", "owner", HIGH, gpus=4)
    owner = ruled(queue("owner", 8), preemption=TAKES)
    decided = plan(cluster([node("n")], [*empty, owner], [drained, borrower, wants]), policy)

    assert ["drained"] == evicted(decided)
    assert [EvictionRule.DRAIN] == [each.rule for each in decided.evictions]


# What a queue's gangs may take


@every_preset
@pytest.mark.parametrize(
    ("preemption", "victims"), [(NEVER, []), (TAKES, ["low"])], ids=["never", "lower"]
)
def test_a_queue_says_whether_its_own_lower_priorities_are_safe(
    policy: Policy, preemption: Preemption, victims: list[str]
) -> None:
    declared = ruled(queue("q", 1), preemption=preemption)
    low, high = gang("low", "q", LOW, on="n"), gang("high", "q", HIGH)
    decided = plan(cluster([node("n", 1)], [declared], [low, high]), policy)

    assert victims == evicted(decided)


@every_preset
@pytest.mark.parametrize("within", list(PreemptionWithinQueue))
def test_surplus_of_the_same_queue_is_safe_where_the_queue_says_never(
    policy: Policy, within: PreemptionWithinQueue
) -> None:
    declared = ruled(queue("q", 2), preemption=Preemption(within))
    elastic = gang("elastic", "q", LOW, pods=2, minimum=1, on="n")
    decided = plan(cluster([node("n", 2)], [declared], [elastic, gang("high", "q", HIGH)]), policy)

    safe = within is PreemptionWithinQueue.NEVER
    assert ([] if safe else ["elastic"]) == evicted(decided)


@every_preset
@pytest.mark.parametrize(
    ("rule", "victims"),
    [
        (ReclaimWithinCohort.NEVER, []),
        (ReclaimWithinCohort.LOWER_PRIORITY, ["low"]),
        (ReclaimWithinCohort.ANY, ["equal"]),
    ],
)
def test_a_queue_says_what_its_gangs_take_back_from_others(
    policy: Policy, rule: ReclaimWithinCohort, victims: list[str]
) -> None:
    """The one of equal priority is newer, and would be enough alone."""
    owner = ruled(queue("owner", 2), preemption=Preemption(reclaim_within_cohort=rule))
    equal = replace(gang("equal", "lender", NORMAL, gpus=2, on="n", at=9), preemptible=True)
    low = gang("low", "lender", LOW, gpus=2, on="m")
    wants = gang("wants", "owner", NORMAL, gpus=2)
    nodes, queues = [node("n", 2), node("m", 2)], [owner, queue("lender", 0)]
    if rule is ReclaimWithinCohort.ANY:
        low = replace(low, priority=HIGH)
    decided = plan(cluster(nodes, queues, [equal, low, wants]), policy)

    assert victims == evicted(decided)


@pytest.mark.parametrize(
    ("borrow", "threshold", "victims"),
    [
        (BorrowWithinCohort.NEVER, None, []),
        (BorrowWithinCohort.LOWER_PRIORITY, None, ["low"]),
        (BorrowWithinCohort.LOWER_PRIORITY, LOW, ["low"]),
        (BorrowWithinCohort.LOWER_PRIORITY, LOW - 1, []),
    ],
)
def test_a_queue_says_whether_its_gangs_take_from_others_while_they_borrow(
    borrow: BorrowWithinCohort, threshold: int | None, victims: list[str]
) -> None:
    """Under osmo nothing does: what may borrow takes no victims."""
    rules = Preemption(
        reclaim_within_cohort=ReclaimWithinCohort.ANY,
        borrow_within_cohort=borrow,
        borrow_priority_threshold=threshold,
    )
    borrower = ruled(queue("borrower", 0), preemption=rules)
    low = gang("low", "lender", LOW, on="n")
    wants = replace(gang("wants", "borrower", NORMAL), preemptible=True)
    world = cluster([node("n", 1)], [borrower, queue("lender", 0)], [low, wants])

    assert victims == evicted(plan(world, KUEUE))
    assert [] == evicted(plan(world, OSMO))


# A queue in which everything waits for the first


def strict(gpus: int, **more: object) -> Queue:
    return ruled(queue("q", gpus), queueing=QueueingStrategy.STRICT_FIFO, **more)


FIRST_ASKS = {
    "no quota": gang("first", "q", HIGH, gpus=3),
    "no room": gang("first", "q", HIGH, gpus=2, pods=1),
    "never": gang("first", "q", HIGH, gpus=64),
}


@every_preset
@pytest.mark.parametrize("first", FIRST_ASKS.values(), ids=FIRST_ASKS)
@pytest.mark.parametrize("gpus", [0, 1])
@pytest.mark.parametrize("priority", [LOW, NORMAL, HIGH])
def test_nothing_passes_the_first_of_a_strict_queue_whatever_it_asks_for(
    policy: Policy, first: Gang, gpus: int, priority: int
) -> None:
    behind = gang("behind", "q", priority, gpus=gpus, at=1)
    other = gang("other", "free", NORMAL, at=2)
    nodes = [node("n", 1), node("m", 1)]
    world = cluster(nodes, [strict(2), queue("free", 1)], [first, behind, other], root=0)
    decided = plan(world, policy)

    assert ["other"] == started(decided)
    waits = reasons(world, policy, decided)
    assert "behind" == waits["behind"]
    assert waits["first"] in {"quota", "limit", "place"}
    assert "first" == Waits(world, policy, decided).first_in_line(behind)


@every_preset
def test_a_queue_that_is_not_strict_is_passed(policy: Policy) -> None:
    first, behind = FIRST_ASKS["no room"], gang("behind", "q", gpus=0, at=1)
    nodes = [node("n", 1), node("m", 1)]
    first_too = replace(policy, heads=Heads.ALL)
    decided = plan(cluster(nodes, [queue("q", 2)], [first, behind], root=0), first_too)

    assert ["behind"] == started(decided)


@every_preset
def test_a_strict_queue_is_strict_however_many_a_cycle_looks_at(policy: Policy) -> None:
    first, behind = FIRST_ASKS["no room"], gang("behind", "q", gpus=0, at=1)
    nodes = [node("n", 1), node("m", 1)]
    everyone = replace(policy, heads=Heads.ALL)
    decided = plan(cluster(nodes, [strict(2)], [first, behind], root=0), everyone)

    assert [] == started(decided)


@every_preset
def test_what_is_before_the_first_that_waits_starts(policy: Policy) -> None:
    before, first = gang("before", "q", HIGH), replace(FIRST_ASKS["never"], submitted_ms=1)
    decided = plan(cluster([node("n", 1)], [strict(1)], [first, before]), policy)

    assert ["before"] == started(decided)


@every_preset
def test_nothing_grows_in_a_strict_queue_in_which_one_waits(policy: Policy) -> None:
    first = gang("first", "q", HIGH, gpus=8)
    decided = plan(cluster([node("n", 8)], [strict(8)], [ELASTIC, first]), policy)

    assert () == decided.binds


@every_preset
def test_what_is_not_active_holds_up_nothing(policy: Policy) -> None:
    first = replace(gang("first", "q", HIGH), active=False)
    decided = plan(cluster([node("n")], [strict(8)], [first, gang("behind", "q", at=1)]), policy)

    assert ["behind"] == started(decided)


@every_preset
def test_what_lacks_pods_holds_up_nothing(policy: Policy) -> None:
    """Where only the first is looked at, it is set aside by the first plan."""
    first, behind = gang("first", "q", HIGH, minimum=2), gang("behind", "q", at=1)
    world = cluster([node("n")], [strict(8)], [first, behind])
    aside = {each.workload for each in plan(world, policy).waits if each.parked}
    parked = {"q": Parked(workloads=tuple(sorted(aside)))}

    assert ["behind"] == started(plan(replace(world, parked=parked), policy))


@every_preset
def test_a_victim_in_a_strict_queue_does_not_pass_the_one_before_it(policy: Policy) -> None:
    """The head takes its victims, and what is behind waits for it."""
    low = gang("low", "q", LOW, gpus=2, on="n")
    first, behind = gang("first", "q", HIGH, gpus=2), gang("behind", "q", NORMAL, gpus=1, at=1)
    decided = plan(
        cluster([node("n", 2)], [strict(2, preemption=TAKES)], [low, first, behind]), policy
    )

    assert (["low"], ["first"]) == (evicted(decided), nominated(decided))


def test_what_is_guaranteed_stands_first_in_a_strict_line_where_it_is_served_first() -> None:
    first = gang("first", "q", NORMAL, gpus=3, at=1)
    low = replace(gang("low", "q", NORMAL), preemptible=True)
    world = cluster([node("n", 2)], [strict(2)], [first, low])

    assert ([], ["low"]) == (started(plan(world, OSMO)), started(plan(world, KAI)))


def test_in_a_strict_queue_what_others_ended_for_does_not_pass_the_first() -> None:
    first, promised = gang("first", "q", HIGH), gang("promised", "q", HIGH, at=1)
    world = cluster([node("n", 1)], [strict(1)], [first, promised])
    nominated_before = replace(world, progress={"promised": Progress(nominated=True)})

    assert ["first"] == started(plan(nominated_before, OSMO))


# Which namespaces a queue lets in

RESEARCH = ruled(queue("q", 8), namespaces=(Match("team", "In", ("research",)),))
LABELS = {"good": {"team": "research"}, "bad": {"team": "sales"}}


@every_preset
@pytest.mark.parametrize("namespace", ["good", "bad", "unknown"])
def test_a_queue_takes_gangs_of_the_namespaces_that_it_selects(
    policy: Policy, namespace: str
) -> None:
    wants = replace(gang("wants", "q"), namespace=namespace)
    world = replace(cluster([node("n")], [RESEARCH], [wants]), namespaces=LABELS)
    decided = plan(world, policy)

    good = namespace == "good"
    assert (["wants"] if good else []) == started(decided)
    assert ({} if good else {"wants": "namespace"}) == reasons(world, policy, decided)


@every_preset
def test_a_gang_of_a_namespace_that_is_not_let_in_any_more_does_not_grow(policy: Policy) -> None:
    world = cluster([node("n")], [RESEARCH], [replace(ELASTIC, namespace="bad")])
    decided = plan(replace(world, namespaces=LABELS), policy)

    assert ((), ()) == (decided.binds, decided.evictions)
