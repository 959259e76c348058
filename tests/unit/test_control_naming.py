"""Reasons in the words that people know: pools in the place of queues."""

from __future__ import annotations

from typing import cast

import pytest

from bough.control.pools.pool_words import PoolWords
from bough.control.site import Site
from bough.model.plan import Wait
from bough.model.quota import FlavorResource, NodeKind, TreeNode
from bough.model.reason import Refusal, RefusalKind, WaitReason
from bough.store.database import Store

GPU = FlavorResource("default", "gpu")
LEAF = TreeNode(NodeKind.QUEUE, "osmo-pool-ns-team--a")


@pytest.fixture
def words() -> PoolWords:
    return PoolWords(Site(cast("Store", None), namespace="ns"))


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (TreeNode(NodeKind.QUEUE, "osmo-pool-ns-team--_shared"), "pool team"),
        (LEAF, "pool team--a"),
        (TreeNode(NodeKind.QUEUE, "osmo-pool-ns-team--a-b.c"), "pool team--a-b.c"),
        (TreeNode(NodeKind.COHORT, "osmo-pool-ns-team"), "pool team"),
        (TreeNode(NodeKind.COHORT, "osmo-default-ns"), "the whole cluster"),
        (TreeNode(NodeKind.COHORT, "research"), "cohort research"),
        (TreeNode(NodeKind.QUEUE, "osmo-pool-other-x"), "queue osmo-pool-other-x"),
    ],
)
def test_a_node_of_the_tree_has_the_name_of_its_pool(words, node, expected):
    assert expected == words.node(node)


@pytest.mark.parametrize(
    ("what", "written", "expected"),
    [
        (GPU, "1", "1 GPU"),
        (GPU, "8", "8 GPUs"),
        (FlavorResource("default", "cpu"), "500m", "500m default/cpu"),
    ],
)
def test_gpus_are_counted_without_a_flavor(words, what, written, expected):
    assert expected == words.amount(what, written)


def test_the_same_reason_names_a_queue_or_its_pool(words):
    wait = Wait("w/g", WaitReason.BEHIND, "behind, in the line of {}", about=LEAF)

    assert wait.message == "behind, in the line of queue osmo-pool-ns-team--a"
    assert wait.say(words) == "behind, in the line of pool team--a"


def test_a_refusal_says_gpus_of_a_pool(words):
    refusal = Refusal(
        RefusalKind.OVER_QUOTA,
        LEAF.name,
        GPU,
        requested=3,
        available=1,
        node=LEAF,
        balance=1,
        passed=3,
        borrowing_limit=0,
    )

    assert refusal.say(words) == "pool team--a is short of 2 GPUs: 1 is left, 3 are asked for"


def test_a_name_that_looks_like_the_mark_of_a_node_stays_as_it_is(words):
    wait = Wait("w/g", WaitReason.NAMESPACE, "{} does not let the namespace {} in", about=LEAF)

    assert wait.say(words) == "pool team--a does not let the namespace {} in"
