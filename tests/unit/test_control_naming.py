"""Queues by the names that people know."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bough.control.pools.queue_names import PoolNames
from bough.control.site import Site
from bough.model.quota import NodeKind, TreeNode


@pytest.fixture
def names() -> PoolNames:
    return PoolNames(Site(SimpleNamespace(), namespace="ns"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("of queue osmo-pool-ns-team--_shared: T = 0", "of pool team: T = 0"),
        ("cohort osmo-pool-ns-team, too", "pool team, too"),
        ("of queue osmo-pool-ns-team--a-b.c.", "of pool team--a-b.c."),
        ("osmo-pool-ns-x has it", "x has it"),
        ("before cohort osmo-default-ns is full", "before the whole cluster is full"),
        ("queue osmo-pool-other-x", "queue osmo-pool-other-x"),
        ("not-osmo-pool-ns-x", "not-osmo-pool-ns-x"),
        ("cohort research", "cohort research"),
        ("", ""),
    ],
)
def test_a_sentence_names_pools(names, text, expected):
    assert expected == names.in_text(text)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (TreeNode(NodeKind.QUEUE, "osmo-pool-ns-team--_shared"), "pool team"),
        (TreeNode(NodeKind.QUEUE, "osmo-pool-ns-team--a"), "pool team--a"),
        (TreeNode(NodeKind.COHORT, "osmo-pool-ns-team"), "pool team"),
        (TreeNode(NodeKind.COHORT, "osmo-default-ns"), "the whole cluster"),
        (TreeNode(NodeKind.COHORT, "research"), "cohort research"),
    ],
)
def test_a_node_of_the_tree_has_the_name_of_its_pool(names, node, expected):
    assert expected == names.of_node(node)


def test_data_names_pools_wherever_queues_stand(names):
    data = {
        "node": {"kind": "queue", "name": "osmo-pool-ns-team--a"},
        "above": {"kind": "cohort", "name": "research"},
        "queue": "osmo-pool-ns-team--_shared",
        "many": [{"level": "cohort osmo-pool-ns-team"}, 5, None],
    }

    assert {
        "node": {"kind": "pool", "name": "team--a"},
        "above": {"kind": "cohort", "name": "research"},
        "queue": "team",
        "many": [{"level": "pool team"}, 5, None],
    } == names.in_data(data)
