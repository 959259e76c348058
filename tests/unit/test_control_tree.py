"""The quota tree that pools make."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from bough.control.pools.pool_setup import PoolSetup, node_sets, unallocated
from bough.control.pools.quota_tree import derive
from bough.core.cycle.ledgers import Ledgers
from bough.core.quota.tree import QuotaTree
from bough.model.pool import GpuQuota, OfferedNode, Pool, PoolCohort
from bough.model.quota import Cohort, FlavorResource, NodeKind, Quota, TreeNode, quotas_of
from bough.model.subpool import Subpool, SubpoolState

GPU = FlavorResource("default", "gpu")
ACTIVE, DELETING, ARCHIVED = SubpoolState.ACTIVE, SubpoolState.DELETING, SubpoolState.ARCHIVED


def pool(name: str, guarantee: int | None = None, **fields: object) -> Pool:
    gpu = GpuQuota(guarantee, fields.pop("maximum", None), fields.pop("weight", 1))
    return Pool(name, gpu=gpu, **fields)  # type: ignore[arg-type]


def quotas(config: PoolSetup) -> dict[str, dict[FlavorResource, Quota]]:
    forest = derive(config, "ns")
    return {
        each.name: quotas_of(each.resource_groups) for each in (*forest.cohorts, *forest.queues)
    }


def test_the_root_has_the_nodes_less_all_quotas_below_and_may_owe():
    nodes = (OfferedNode("n", gpus=8),)
    roots = [
        quotas(PoolSetup(pools=(pool("p", guarantee),), nodes=nodes))["osmo-default-ns"][GPU]
        for guarantee in (3, 8, 10)
    ]

    assert [Quota(5), Quota(0), Quota(-2)] == roots


def test_a_pool_has_no_quota_of_its_own_and_its_leaves_add_up_to_it():
    config = PoolSetup(
        pools=(pool("p", 100),),
        subpools=(
            Subpool("p", "a", ACTIVE, 30),
            Subpool("p", "b", DELETING, 40),
            Subpool("p", "c", ARCHIVED, 20),
        ),
        nodes=(OfferedNode("n", gpus=100),),
    )
    found = quotas(config)

    assert Quota(0) == found["osmo-pool-ns-p"][GPU]
    assert [Quota(70), Quota(30), Quota(0)] == [
        found[f"osmo-pool-ns-p--{leaf}"][GPU] for leaf in ("_shared", "a", "b")
    ]
    assert "osmo-pool-ns-p--c" not in found


def test_a_pool_without_limit_has_what_the_others_leave():
    nodes = (OfferedNode("n", gpus=10),)
    config = PoolSetup(pools=(pool("free"), pool("fixed", 4)), nodes=nodes)

    assert Quota(6) == quotas(config)["osmo-pool-ns-free--_shared"][GPU]
    crowded = PoolSetup(pools=(pool("free"), pool("fixed", 40)), nodes=nodes)
    assert Quota(0) == quotas(crowded)["osmo-pool-ns-free--_shared"][GPU]


def test_two_pools_without_limit_never_have_more_together_than_there_is():
    forest = derive(
        PoolSetup(pools=(pool("x"), pool("y")), nodes=(OfferedNode("n", gpus=10),)), "ns"
    )
    ledgers = Ledgers(forest.cohorts, forest.queues)
    x, y = forest.leaves["x"], forest.leaves["y"]

    ledgers.add(x, {GPU: 7}, guaranteed=True)

    assert ledgers.refusal(y, {GPU: 3}, guaranteed=True) is None
    assert ledgers.refusal(y, {GPU: 4}, guaranteed=True) is not None


def test_a_maximum_is_a_limit_on_borrowing():
    config = PoolSetup(
        pools=(pool("p", 100, maximum=120, borrowing_limit=50, lending_limit=7, weight=3),),
        subpools=(Subpool("p", "a", ACTIVE, 30),),
        nodes=(OfferedNode("n", gpus=200),),
    )
    forest = derive(config, "ns")
    found = quotas(config)

    assert Quota(0, 20, 7) == found["osmo-pool-ns-p"][GPU]
    assert Quota(70, 50) == found["osmo-pool-ns-p--_shared"][GPU]
    assert Quota(30, 90) == found["osmo-pool-ns-p--a"][GPU]
    assert {Fraction(3)} == {queue.weight for queue in forest.queues}


def test_cohorts_stand_between_the_root_and_the_pools():
    config = PoolSetup(
        pools=(pool("p", 4, cohort="org"),),
        cohorts=(PoolCohort("org", quota=2, borrowing_limit=1, lending_limit=0, weight=2),),
        nodes=(OfferedNode("n", gpus=10),),
    )
    forest = derive(config, "ns")
    by_name = {each.name: each for each in forest.cohorts}

    assert "osmo-default-ns" == by_name["org"].parent
    assert "org" == by_name["osmo-pool-ns-p"].parent
    assert Quota(2, 1, 0) == quotas(config)["org"][GPU]
    assert Quota(4) == quotas(config)["osmo-default-ns"][GPU]
    assert Fraction(2) == by_name["org"].weight


def test_pools_that_share_no_nodes_are_counted_apart():
    config = PoolSetup(
        pools=(pool("a", 4), pool("b", 4), pool("c", 2)),
        nodes=(
            OfferedNode("n1", gpus=8, pools=("a",)),
            OfferedNode("n2", gpus=8, pools=("b", "c")),
            OfferedNode("n3", gpus=8, pools=()),
        ),
    )
    forest = derive(config, "ns")

    assert {"a": "a", "b": "b", "c": "b"} == forest.flavor_of_pool
    assert {"n1": "a", "n2": "b"} == {
        node.name: flavor for node, flavor in forest.flavor_of_node.items()
    }
    root = quotas(config)["osmo-default-ns"]
    assert {("a", 4), ("b", 2)} == {(what.flavor, quota.nominal) for what, quota in root.items()}


def test_node_sets_are_joined_through_others():
    config = PoolSetup(
        pools=(pool("a"), pool("b"), pool("c")),
        nodes=(OfferedNode("n1", pools=("c", "b")), OfferedNode("n2", pools=("a", "b"))),
    )

    ((members, nodes),) = node_sets(config)

    assert (["a", "b", "c"], ["n1", "n2"]) == (
        [each.name for each in members],
        [each.name for each in nodes],
    )


def test_a_cohort_that_is_not_declared_stands_alone():
    forest = derive(
        PoolSetup(pools=(pool("p", 4, cohort="gone"),), nodes=(OfferedNode("n", gpus=8),)), "ns"
    )
    tree = QuotaTree.of(forest.cohorts, forest.queues)

    assert 4 == tree.available(TreeNode(NodeKind.QUEUE, forest.leaves["p"]), GPU)
    assert tree.parent(TreeNode(NodeKind.COHORT, "gone")) is None


QUOTAS = st.integers(0, 40)


@given(
    st.lists(QUOTAS, min_size=1, max_size=4),
    st.lists(st.tuples(QUOTAS, st.sampled_from(SubpoolState)), max_size=4),
    st.integers(0, 200),
)
def test_whatever_the_quotas_the_tree_has_just_the_gpus_that_there_are(guarantees, members, gpus):
    counted = sum(quota for quota, state in members if state is ACTIVE)
    pools = [pool(f"p{number}", guarantee) for number, guarantee in enumerate(guarantees)]
    pools.append(pool("divided", counted + 5))
    subpools = [
        Subpool("divided", f"s{number}", state, quota)
        for number, (quota, state) in enumerate(members)
    ]
    config = PoolSetup(tuple(pools), tuple(subpools), nodes=(OfferedNode("n", gpus=gpus),))
    forest = derive(config, "ns")
    tree = QuotaTree.of(forest.cohorts, forest.queues)
    root = TreeNode(NodeKind.COHORT, "osmo-default-ns")

    assert gpus == tree.subtree_quota(root, GPU)
    assert 5 == unallocated(pools[-1], subpools)
    container = TreeNode(NodeKind.COHORT, "osmo-pool-ns-divided")
    assert counted + 5 == tree.subtree_quota(container, GPU)
    assert all(isinstance(each, Cohort) for each in forest.cohorts)
