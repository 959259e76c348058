"""Queues of KAI as nodes of the one quota tree."""

from __future__ import annotations

from fractions import Fraction

from bough.core.quota.fair_tree import CLUSTER, capacity_of, fair_tree
from bough.core.quota.tree import QuotaTree
from bough.model.cluster import Node, Resources
from bough.model.fair_queue import FairAmount, FairQueue
from bough.model.quota import FlavorResource, NodeKind, Quota, TreeNode, quotas_of

GPU = FlavorResource("any", "gpu")
CAPACITY = {"gpu": 10, "cpu": 1000, "memory": 100}


def queue(name: str, quota: int | None, limit: int | None, parent: str | None = None) -> FairQueue:
    def fraction(amount: int | None) -> Fraction | None:
        return None if amount is None else Fraction(amount)

    amount = FairAmount(fraction(quota), fraction(limit), Fraction(3))
    return FairQueue(name, parent, gpus=amount)


def gpus(*queues: FairQueue) -> dict[str, Quota]:
    tree = fair_tree(queues, CAPACITY)
    return {
        each.name: quotas_of(each.resource_groups)[GPU] for each in (*tree.cohorts, *tree.queues)
    }


def test_the_cluster_has_what_the_queues_leave():
    assert {CLUSTER: Quota(3), "a": Quota(4, 2), "b": Quota(3)} == gpus(
        queue("a", 4, 6), queue("b", 3, None)
    )


def test_oversold_queues_leave_less_than_nothing():
    assert Quota(-5) == gpus(queue("a", 8, 8), queue("b", 7, 7))[CLUSTER]


def test_an_inner_queue_has_what_its_children_leave():
    found = gpus(queue("team", 8, 9), queue("a", 3, 9, "team"), queue("b", 6, 9, "team"))

    assert (Quota(2), Quota(-1, 1)) == (found[CLUSTER], found["team"])


def test_who_deserves_as_much_as_there_is_deserves_all():
    assert {CLUSTER: Quota(0), "a": Quota(10)} == gpus(queue("a", None, None))


def test_parts_of_a_gpu_are_not_promised():
    half = FairAmount(Fraction(5, 2), Fraction(7, 2))
    assert Quota(2, 1) == gpus(FairQueue("a", gpus=half))["a"]


def test_a_limit_is_what_may_be_used_at_all():
    found = fair_tree([queue("a", 4, 6)], CAPACITY)
    tree = QuotaTree.of(found.cohorts, found.queues)

    assert 6 == tree.available(TreeNode(NodeKind.QUEUE, "a"), GPU)


def test_the_weight_is_that_of_gpus_where_there_are_any():
    (leaf,) = fair_tree([queue("a", 1, 1)], CAPACITY).queues
    assert Fraction(3) == leaf.weight
    (leaf,) = fair_tree([queue("a", 1, 1)], {**CAPACITY, "gpu": 0}).queues
    assert Fraction(0) == leaf.weight


def test_a_queue_without_a_minimum_runtime_has_that_of_the_nearest_queue_above_it():
    queues = [
        FairQueue("top", reclaim_min_runtime_s=60, preempt_min_runtime_s=5),
        FairQueue("team", "top", reclaim_min_runtime_s=30),
        FairQueue("a", "team"),
        FairQueue("b", "team", reclaim_min_runtime_s=0, preempt_min_runtime_s=7),
        FairQueue("alone"),
    ]

    tree = fair_tree(queues, CAPACITY)

    assert {
        CLUSTER: (None, None),
        "top": (60_000, 5_000),
        "team": (30_000, 5_000),
        "a": (30_000, 5_000),
        "b": (0, 7_000),
        "alone": (None, None),
    } == {
        each.name: (each.reclaim_min_runtime_ms, each.preempt_min_runtime_ms)
        for each in (*tree.cohorts, *tree.queues)
    }


def test_queues_that_stand_in_a_circle_have_no_minimum_runtime_from_it():
    (one, other) = fair_tree([FairQueue("a", "b"), FairQueue("b", "a")], CAPACITY).cohorts[1:]

    assert (None, None) == (one.reclaim_min_runtime_ms, other.preempt_min_runtime_ms)


def test_queues_keep_their_priority_at_every_level():
    queues = [FairQueue("top", priority=7), FairQueue("a", "top", priority=200), FairQueue("b")]

    tree = fair_tree(queues, CAPACITY)

    assert {CLUSTER: 100, "top": 7, "a": 200, "b": 100} == {
        each.name: each.priority for each in (*tree.cohorts, *tree.queues)
    }


def test_capacity_is_counted_over_all_nodes():
    nodes = [Node(name, Resources(2, 3, 4)) for name in ("a", "b")]

    assert {"gpu": 4, "cpu": 6, "memory": 8} == capacity_of(nodes)
