"""Certificates name the shares that stand against a gang, where turns go by shares."""

from __future__ import annotations

from fractions import Fraction

import msgspec

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.explain.certificate import certificate
from bough.core.explain.evictions import eviction_certificate, excess_texts
from bough.core.explain.remedies import remedies
from bough.core.quota.fair_tree import capacity_of, fair_tree
from bough.core.quota.taken_share import write_weight
from bough.model.admission_rules import Preemption, ReclaimWithinCohort
from bough.model.certificate import NodeShare
from bough.model.cluster import Node, Resources
from bough.model.fair_queue import FairAmount, FairQueue
from bough.model.gang import Gang, Pod, PodState
from bough.model.policy import KAI_FAIR, KUEUE_FAIR, OSMO, Policy
from bough.model.quota import NodeKind, TreeNode
from bough.model.remedy import RemedyKind
from bough.model.snapshot import Snapshot
from bough.model.words import OBJECT_WORDS
from tests.cycle_gangs import LOW, cohort, queue
from tests.laws_dominant import BY_DOMINANT_SHARE


def gang(
    name: str, where: str, gpus: int, cpu: int = 0, *, runs: bool = False, at: int = 0
) -> Gang:
    state, node = (PodState.RUNNING, "node") if runs else (PodState.PENDING, None)
    pod = Pod(f"{name}-0", None, Resources(gpus, cpu, pods=1), state, node)
    return Gang(
        name,
        where,
        (pod,),
        minimum=1,
        priority=LOW,
        preemptible=True,
        submitted_ms=at,
        started_ms=at if runs else None,
    )


def world(*gangs: Gang, capacity: Resources, fair: bool = False, weight: int = 1) -> Snapshot:
    """Queues `a` and `b` below a root, of which none has anything of its own."""
    nodes = (Node("node", capacity),)
    cohorts, queues = (cohort("root", None, capacity.gpus),), (queue("a", 0), queue("b", 0))
    if fair:
        nothing = FairAmount(Fraction(0), None, Fraction(1))
        heavy = FairAmount(Fraction(0), None, Fraction(weight))
        tree = fair_tree(
            [FairQueue("a", gpus=nothing), FairQueue("b", gpus=heavy)], capacity_of(nodes)
        )
        cohorts, queues = tree.cohorts, tree.queues
    by_queue = {each.name: tuple(g for g in gangs if g.queue == each.name) for each in queues}
    return Snapshot(now_ms=1000, cohorts=cohorts, queues=queues, nodes=nodes, gangs=by_queue)


def share(name: str, text: str, resource: str = "gpu") -> NodeShare:
    return NodeShare(TreeNode(NodeKind.QUEUE, name), text, "1", resource)


def helpful(snapshot: Snapshot, policy: Policy, name: str) -> set[RemedyKind]:
    return {each.kind for each in remedies(snapshot, policy, name).found}


def test_by_the_largest_share_it_says_which_gang_went_first():
    full = world(
        gang("a1", "a", 6, 1),
        gang("b1", "b", 4, 4),
        capacity=Resources(8, 8, pods=10),
    )
    told = certificate(full, BY_DOMINANT_SHARE, "a1")
    assert told is not None
    assert (share("a", "0.75"), share("b", "0.5", "cpu")) == told.shares
    assert told.sentence.endswith(
        "; b1 went first: with it the share of queue a is 0.75, that of queue b is 0.5"
    )
    assert RemedyKind.RAISE_WEIGHT in helpful(full, BY_DOMINANT_SHARE, "a1")
    by_weight = certificate(full, OSMO, "a1")
    assert by_weight is not None
    assert () == by_weight.shares


def test_it_says_nothing_of_shares_where_its_own_would_be_the_smaller():
    full = world(
        gang("a1", "a", 8, runs=True),
        gang("b1", "b", 1, at=5),
        capacity=Resources(8, 8, pods=10),
    )

    told = certificate(full, BY_DOMINANT_SHARE, "b1")

    assert told is not None
    assert ("limit", ()) == (told.reason, told.shares)


def test_it_says_nothing_of_what_has_nothing_of_what_is_scarce():
    full = world(
        gang("a1", "a", 8, runs=True),
        gang("a2", "a", 8, at=5),
        gang("b1", "b", 0, 6, runs=True),
        capacity=Resources(8, 8, pods=10),
    )

    told = certificate(full, BY_DOMINANT_SHARE, "a2")

    assert told is not None
    assert ("limit", ()) == (told.reason, told.shares)


def test_by_fair_shares_it_says_why_nothing_more_may_be_taken():
    """Each may have 4 of 8; `b` would have 6 with it."""
    full = world(
        gang("a1", "a", 5, runs=True),
        gang("b1", "b", 3, runs=True),
        gang("b2", "b", 3, at=5),
        capacity=Resources(8, pods=10),
        fair=True,
    )

    told = certificate(full, KAI_FAIR, "b2")

    assert told is not None
    assert (share("b", "1.5"), share("a", "1.25")) == told.shares
    assert told.sentence.endswith(
        "it may take no more from queue a: with it the share of queue b is 1.5, that of queue a "
        "is 1.25"
    )
    # With a larger part of what is left, it may.
    assert RemedyKind.RAISE_WEIGHT in helpful(full, KAI_FAIR, "b2")


def test_an_eviction_by_fair_shares_says_both():
    full = world(
        gang("a1", "a", 5, runs=True),
        gang("a2", "a", 2, runs=True),
        gang("b1", "b", 4, at=5),
        capacity=Resources(8, pods=10),
        fair=True,
    )

    told = eviction_certificate(full, KAI_FAIR, "a1")

    assert told is not None
    assert (share("a", "1.75"), share("b", "0", "")) == told.shares
    said = "the share of queue a is 1.75, that of queue b is 0"
    assert f"it ends for b1 of queue b, which has less: {said}" == told.sentence
    memo = Memo()
    decided = plan(full, KAI_FAIR, memo)
    assert {"a1": said} == excess_texts(memo, decided, OBJECT_WORDS)


def test_it_says_so_where_it_would_have_more_than_its_fair_share_though_others_have_more_still():
    """Of 8, `a` has 5 of 3 and `b` 3 of 5: it would have 6, and takes nothing for that."""
    full = world(
        gang("a1", "a", 5, runs=True),
        gang("b1", "b", 3, runs=True),
        gang("b2", "b", 3, at=5),
        capacity=Resources(8, pods=10),
        fair=True,
        weight=2,
    )

    told = certificate(full, KAI_FAIR, "b2")

    assert told is not None
    assert (share("b", "1.2"),) == told.shares
    assert told.sentence.endswith(
        "; it may take nothing from others: with it the share of queue b is 1.2, more than is fair"
    )
    assert RemedyKind.RAISE_WEIGHT in helpful(full, KAI_FAIR, "b2")


def test_where_low_work_takes_nothing_it_says_only_what_others_have():
    full = world(
        gang("a1", "a", 3, runs=True),
        gang("b1", "b", 4, runs=True),
        gang("b2", "b", 4, at=5),
        capacity=Resources(8, 8, pods=10),
    )

    told = certificate(full, BY_DOMINANT_SHARE, "b2")

    assert told is not None
    assert told.sentence.endswith(
        "; queue a has less: with it the share of queue b is 1, that of queue a is 0.375"
    )


def test_what_is_used_where_nothing_is_due_has_no_number():
    """Without weight `b` is due nothing beyond the nothing that it deserves."""
    full = world(
        gang("a1", "a", 8, runs=True),
        gang("b1", "b", 1, at=5),
        capacity=Resources(8, pods=10),
        fair=True,
        weight=0,
    )

    told = certificate(full, KAI_FAIR, "b1")

    assert told is not None
    assert (share("b", "infinite"), share("a", "1")) == told.shares


def test_gangs_of_pods_that_are_judged_together_are_told_their_shares_too():
    """By Kueue's fair sharing: with it 5 of 8, and without its victim the other has 2."""
    policy = msgspec.structs.replace(
        KUEUE_FAIR, preemption=Preemption(reclaim_within_cohort=ReclaimWithinCohort.ANY)
    )
    full = world(
        gang("a1", "a", 2, runs=True),
        gang("a2", "a", 2, runs=True, at=1),
        gang("b1", "b", 4, runs=True),
        gang("b2", "b", 1, at=5),
        capacity=Resources(8, pods=10),
    )

    told = certificate(full, policy, "b2")

    assert told is not None
    assert told.sentence.endswith(
        "it may take no more from queue a: with it the share of queue b is 0.625, that of queue a "
        "is 0.25"
    )


def test_a_weight_is_told_as_a_file_has_it():
    weights = [Fraction(3), Fraction(1, 2), Fraction(333, 1000), Fraction(1, 10**8)]
    assert ["3", "0.5", "0.333", "0.00000001"] == [write_weight(each) for each in weights]
