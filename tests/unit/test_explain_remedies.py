"""What would help: each remedy by itself, its least amount, and the bound on plans."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from bough.core.explain.declared_snapshot import Source
from bough.core.explain.judge import Judge
from bough.core.explain.remedies import remedies
from bough.core.explain.sentences import say_steps
from bough.core.quota.fair_tree import capacity_of, fair_tree
from bough.model.admission_rules import AdmissionRules, StopPolicy
from bough.model.cluster import Resources, Taint
from bough.model.fair_queue import FairAmount, FairQueue
from bough.model.gang import SubGroup
from bough.model.policy import KUEUE, OSMO, Policy
from bough.model.quota import Cohort
from bough.model.remedy import (
    AddNodes,
    AnyNodes,
    Change,
    End,
    HeldPart,
    Knob,
    LowerMinimum,
    Move,
    Raise,
    Remedies,
    Remedy,
    RemedyKind,
    Resume,
    Tolerate,
    Uncordon,
    Untangle,
)
from bough.model.snapshot import Snapshot
from bough.model.workload import Flavor, LocalQueue
from bough.tools.kai_remedy_source import FairSource
from tests.worlds_explain import GPU, RED, ROOT, gang, held, kueue_world, quota, workload, world


def found(snapshot: Snapshot, name: str = "new", policy: Policy = OSMO) -> dict[RemedyKind, Remedy]:
    """The first remedy of each kind; each of them works."""
    result = remedies(snapshot, policy, name)
    judge = Judge(snapshot, policy, name)
    assert not judge.starts(snapshot)
    source = Source(snapshot)
    for remedy in result.found:
        assert judge.starts(source.apply(name, remedy.steps)), remedy.sentence
    assert not result.given_up
    return {remedy.kind: remedy for remedy in reversed(result.found)}


def test_who_does_not_wait_needs_no_remedy():
    assert Remedies(plans=1) == remedies(world(gang("new", 1)), OSMO, "new")
    assert Remedies() == remedies(world(gang("old", 1)), OSMO, "new")


def test_the_cheapest_remedy_comes_first():
    old = gang("old", 3, on="n0 n0 n0")

    kinds = [each.kind for each in remedies(world(old, gang("new", 2)), OSMO, "new").found]

    assert [
        RemedyKind.WAIT,
        RemedyKind.RUN_AS_LOW,
        RemedyKind.SMALLER_MINIMUM,
        RemedyKind.MOVE,
        RemedyKind.RAISE_QUOTA,
    ] == kinds


def test_waiting_names_one_workload_whose_end_is_enough():
    older = gang("older", 1, on="n0", started_ms=1)
    large = gang("large", 3, on="n0 n0 n0", started_ms=2)

    assert (End("large"),) == found(world(older, large, gang("new", 3)))[RemedyKind.WAIT].steps


def test_waiting_names_several_of_which_none_is_superfluous_in_the_order_they_have_run():
    ones = [gang(f"one-{at}", 1, on="n0", started_ms=9 - at) for at in range(4)]
    other = gang("other", 2, on="n1 n1", queue="blue", started_ms=0)

    remedy = found(world(*ones, other, gang("new", 2)))[RemedyKind.WAIT]

    assert (End("one-3"), End("one-2")) == remedy.steps
    assert "wait until one-3 and one-2 have ended" == remedy.sentence


def test_who_would_not_start_even_if_all_ended_is_not_told_to_wait():
    assert RemedyKind.WAIT not in found(world(gang("old", 1, on="n0"), gang("new", 5)))


def test_the_largest_minimum_that_works_is_told():
    old = gang("old", 1, on="n0")

    remedy = found(world(old, gang("new", 4)))[RemedyKind.SMALLER_MINIMUM]

    assert (LowerMinimum(None, 4, 3),) == remedy.steps
    assert "lower the minimum from 4 to 3" == remedy.sentence


def test_the_minimum_of_one_subgroup_may_be_what_is_lowered():
    subgroups = (SubGroup("x", minimum=3), SubGroup("y", minimum=1))
    new = gang("new", 4, minimum=2)
    pods = tuple(
        msgspec.structs.replace(pod, subgroup="x" if at < 3 else "y")
        for at, pod in enumerate(new.pods)
    )
    new = msgspec.structs.replace(new, pods=pods, subgroups=subgroups)

    result = remedies(world(gang("old", 1, on="n0"), new), OSMO, "new")

    lowered = [each.steps for each in result.found if each.kind is RemedyKind.SMALLER_MINIMUM]
    assert [(LowerMinimum(None, 2, 1),), (LowerMinimum("x", 3, 2),)] == lowered


def test_pods_that_choose_their_nodes_may_be_told_to_take_any():
    old = gang("old", 4, on="n0 n0 n0 n0", queue="blue")

    remedies_of = found(world(old, gang("new", 2, selector={"rack": "r0"})))

    assert RemedyKind.OTHER_FLAVOR in remedies_of
    assert RemedyKind.OTHER_FLAVOR not in found(world(old, gang("new", 5)))


def test_quota_is_raised_by_what_is_lacking():
    snapshot = world(gang("old", 3, on="n0 n0 n0"), gang("new", 3), red=4, blue=1)

    remedy = found(snapshot)[RemedyKind.RAISE_QUOTA]

    assert (Raise(RED, GPU, 2),) == remedy.steps
    assert "raise the quota of queue red from 4 to 6 any/gpu" == remedy.sentence


def test_of_queues_with_quota_and_limit_all_on_the_way_are_raised_as_they_were_written():
    queues = (
        FairQueue("team", gpus=FairAmount(Fraction(2), Fraction(2))),
        FairQueue("red", "team", gpus=FairAmount(Fraction(1), None)),
    )
    nodes = world().nodes
    tree = fair_tree(queues, capacity_of(nodes))
    gangs = {"red": (gang("new", 3),)}
    snapshot = Snapshot(cohorts=tree.cohorts, queues=tree.queues, nodes=nodes, gangs=gangs)

    source = FairSource(snapshot, queues)
    result = remedies(snapshot, OSMO, "new", source=source)

    told = {each.kind: each.sentence for each in result.found}
    assert (
        "raise the quota of queue red from 1 to 3 gpu, the quota of queue team from 2 to 3 gpu "
        "and its limit from 2 to 3 gpu"
    ) == told[RemedyKind.RAISE_QUOTA]
    judge = Judge(snapshot, OSMO, "new")
    assert all(judge.starts(source.apply("new", each.steps)) for each in result.found)


def test_who_is_behind_another_needs_quota_for_both():
    old = gang("old", 4, on="n0 n0 n0 n0")
    snapshot = world(old, gang("first", 2), gang("new", 1, submitted_ms=1), blue=0)

    assert (Raise(RED, GPU, 3),) == found(snapshot)[RemedyKind.RAISE_QUOTA].steps


def test_a_limit_is_raised_by_what_is_lacking():
    old = gang("old", 5, on="n0 n0 n0 n0 n1", preemptible=True)
    snapshot = world(old, gang("new", 3, preemptible=True), red_limit=2)

    remedy = found(snapshot)[RemedyKind.RAISE_LIMIT]

    assert (Raise(RED, GPU, 2, Knob.LIMIT),) == remedy.steps
    assert "raise the borrowing limit of queue red from 2 to 4 any/gpu" == remedy.sentence


def test_capacity_that_is_not_there_is_not_raised_without_nodes():
    low = gang("low", 4, on="n0 n0 n0 n0", preemptible=True)
    more = gang("more", 4, on="n1 n1 n1 n1", preemptible=True)

    remedies_of = found(world(low, more, gang("new", 1, preemptible=True)))

    assert {RemedyKind.WAIT, RemedyKind.TOGETHER} == set(remedies_of)
    assert (Raise(ROOT, GPU, 1), AddNodes("n0", 1)) == remedies_of[RemedyKind.TOGETHER].steps


def test_as_few_nodes_as_do_it_are_added():
    old = gang("old", 2, on="n0 n1", gpus=4, queue="blue", preemptible=False)
    plenty = (Cohort("root", None, quota(99)),)
    snapshot = world(old, gang("new", 3, gpus=2), red=9, blue=9, cohorts=plenty)

    remedy = found(snapshot)[RemedyKind.ADD_NODES]

    assert (AddNodes("n0", 2),) == remedy.steps
    assert "add 2 nodes like n0" == remedy.sentence
    assert [("n0-new-1", "n0"), ("n0-new-2", "n0")] == [
        (each.name, each.after) for each in remedy.changes
    ]


def test_where_no_node_is_large_enough_larger_ones_are_added():
    remedy = found(world(gang("new", 1, gpus=6), red=6, blue=0))[RemedyKind.ADD_NODES]

    assert (AddNodes("n0", 1, Resources(gpus=6, pods=1)),) == remedy.steps
    assert "add 1 node like n0, but with 6 gpu" == remedy.sentence


def test_a_cordoned_node_that_would_do_is_named():
    snapshot = world(gang("old", 4, on="n0 n0 n0 n0", queue="blue"), gang("new", 1))
    nodes = (snapshot.nodes[0], msgspec.structs.replace(snapshot.nodes[1], cordoned=True))

    remedy = found(msgspec.structs.replace(snapshot, nodes=nodes))[RemedyKind.UNCORDON]

    assert (Uncordon("n1"),) == remedy.steps
    assert "uncordon node n1" == remedy.sentence


def test_a_taint_that_keeps_it_away_is_named():
    snapshot = world(gang("old", 4, on="n0 n0 n0 n0", queue="blue"), gang("new", 1))
    tainted = msgspec.structs.replace(snapshot.nodes[1], taints=(Taint("kept", "yes"),))

    remedy = found(msgspec.structs.replace(snapshot, nodes=(snapshot.nodes[0], tainted)))[
        RemedyKind.TOLERATE
    ]

    assert (Tolerate("kept"),) == remedy.steps
    assert "let its pods tolerate the taint kept" == remedy.sentence


def test_pods_that_choose_other_nodes_and_do_not_tolerate_a_taint_are_told_to_do_both():
    old = gang("old", 4, on="n0 n0 n0 n0", queue="blue")
    snapshot = world(old, gang("new", 1, selector={"disk": "fast"}))
    first, second = (
        msgspec.structs.replace(node, taints=(Taint(key),))
        for node, key in zip(snapshot.nodes, ("other", "kept"), strict=True)
    )

    remedy = found(msgspec.structs.replace(snapshot, nodes=(first, second)))[RemedyKind.TOGETHER]

    assert (AnyNodes(), Tolerate("kept")) == remedy.steps


def test_a_queue_that_would_take_it_now_is_named():
    old = gang("old", 4, on="n0 n0 n0 n0")

    remedy = found(world(old, gang("new", 1)))[RemedyKind.MOVE]

    assert (Move("blue"),) == remedy.steps
    assert "move it to queue blue" == remedy.sentence


def test_two_small_things_are_told_where_neither_is_enough():
    old = gang("old", 1, on="n0", gpus=4, queue="blue")
    plenty = (Cohort("root", None, quota(8)),)
    snapshot = world(old, gang("new", 1, gpus=4), gpus=(4,), red=0, blue=4, cohorts=plenty)

    remedies_of = found(snapshot)

    assert (Raise(RED, GPU, 4), AddNodes("n0", 1)) == remedies_of[RemedyKind.TOGETHER].steps
    told = "raise the quota of queue red from 0 to 4 any/gpu; and add 1 node like n0"
    assert told == remedies_of[RemedyKind.TOGETHER].sentence
    assert [RemedyKind.TOGETHER] == list(remedies_of)


def test_a_cycle_is_broken_at_one_cohort():
    tangled = (Cohort("root", "above"), Cohort("above", "root"))

    remedy = found(world(gang("new", 1), cohorts=tangled))[RemedyKind.UNTANGLE]

    assert (Untangle("above"),) == remedy.steps
    assert "take cohort above out of the cycle: it must have no parent" == remedy.sentence


def test_a_search_that_was_cut_short_says_so_and_still_works():
    ones = [gang(f"one-{at}", 1, on="n0", started_ms=at) for at in range(4)]
    snapshot = world(*ones, gang("new", 4))

    result = remedies(snapshot, OSMO, "new", most_plans=2)

    assert RemedyKind.WAIT in result.given_up
    wait = result.found[0]
    assert (RemedyKind.WAIT, False) == (wait.kind, wait.exact)
    assert Judge(snapshot, OSMO, "new").starts(Source(snapshot).apply("new", wait.steps))


# In the form of Kueue


def test_a_workload_may_wait_be_smaller_or_get_more_quota():
    old = held(workload("old", 4), "red")
    snapshot = kueue_world({"red": (workload("new", 1, pods=3),)}, {"red": (old,)})

    remedies_of = found(snapshot, "ns/new", KUEUE)

    assert (End("ns/old"),) == remedies_of[RemedyKind.WAIT].steps
    assert (LowerMinimum("main", 3, 2),) == remedies_of[RemedyKind.SMALLER_MINIMUM].steps
    assert (Raise(RED, GPU, 1),) == remedies_of[RemedyKind.RAISE_QUOTA].steps
    assert (Raise(RED, GPU, 1, Knob.LIMIT),) == remedies_of[RemedyKind.RAISE_LIMIT].steps
    assert RemedyKind.RUN_AS_LOW not in remedies_of


def test_a_workload_of_a_stopped_queue_is_helped_by_opening_it():
    rules = AdmissionRules(stop=StopPolicy.HOLD)

    remedies_of = found(kueue_world({"red": (workload("new", 1),)}, rules=rules), "ns/new", KUEUE)

    assert [RemedyKind.RESUME] == list(remedies_of)
    assert (Resume(HeldPart.QUEUE, "red"),) == remedies_of[RemedyKind.RESUME].steps


def test_a_workload_behind_a_stopped_local_queue_is_helped_by_opening_it():
    new = workload("new", 1, local_queue="door")
    doors = (LocalQueue("door", "ns", "red", StopPolicy.HOLD), LocalQueue("side", "ns", "blue"))

    remedies_of = found(kueue_world({"red": (new,)}, local_queues=doors), "ns/new", KUEUE)

    assert (Resume(HeldPart.LOCAL_QUEUE, "ns/door"),) == remedies_of[RemedyKind.RESUME].steps
    assert (Move("blue"),) == remedies_of[RemedyKind.MOVE].steps


def test_a_workload_that_is_not_active_is_helped_by_making_it_so():
    new = workload("new", 1, active=False)

    remedies_of = found(kueue_world({"red": (new,)}), "ns/new", KUEUE)

    assert "make it active again" == remedies_of[RemedyKind.RESUME].sentence


def test_a_workload_that_asks_for_another_flavor_is_told_which_it_would_get():
    flavor = Flavor("any", {"type": "a100"})
    new = workload("new", 1, selector={"type": "h100"})

    remedies_of = found(kueue_world({"red": (new,)}, flavors=(flavor,)), "ns/new", KUEUE)

    assert [RemedyKind.OTHER_FLAVOR] == list(remedies_of)
    told = "let its pods run on any nodes, whatever their labels: it would get any"
    assert told == remedies_of[RemedyKind.OTHER_FLAVOR].sentence


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_a_sentence_names_a_few_and_counts_the_rest(count: int):
    ends = [End(name) for name in "abcdefgh"[:count]]

    sentence = say_steps([(end, (Change("gang", end.workload),)) for end in ends], ())

    assert all(end.workload in sentence for end in ends[:3])
    assert ("others" in sentence) == (count > 4)
