"""Scenarios 1 to 22: the quota tree that pools make, and the way into it."""

from __future__ import annotations

from bough.model.gang import TopologyConstraint
from bough.model.subpool import SubpoolState
from bough.model.workflow import Priority, WorkflowSpec, WorkflowStatus
from tests.store.usecases import Filter, pool_store, pools, query, quotas, show_pool, subpools
from tests.store.world import one_group, refusal


def test_scenario_001_a_pool_has_a_container_and_a_shared_leaf_with_all_its_quota(team):
    assert {
        "osmo-default-ns": (None, False, None),
        "osmo-pool-ns-team": ("osmo-default-ns", False, 100),
        "osmo-pool-ns-team--_shared": ("osmo-pool-ns-team", True, 100),
    } == team.queues()


def test_scenario_002_a_new_subpool_takes_its_quota_from_the_shared_leaf(team):
    team.create("a", 30)

    queues = team.queues()
    assert ("osmo-pool-ns-team", True, 70) == queues["osmo-pool-ns-team--_shared"]
    assert ("osmo-pool-ns-team", True, 30) == queues["osmo-pool-ns-team--a"]
    assert ("osmo-default-ns", False, 100) == queues["osmo-pool-ns-team"]


def test_scenario_003_several_subpools_and_what_they_leave(divided):
    assert {"_shared": 10, "a": 30, "b": 40, "c": 20} == divided.leaf_quotas()
    assert ("osmo-default-ns", False, 100) == divided.queues()["osmo-pool-ns-team"]


def test_scenario_004_an_update_moves_quota_between_the_subpool_and_the_shared_leaf(team):
    team.split(a=30, b=40)

    team.update("b", 50)

    assert {"_shared": 20, "a": 30, "b": 50} == team.leaf_quotas()
    assert ("osmo-default-ns", False, 100) == team.queues()["osmo-pool-ns-team"]


def test_scenario_005_an_empty_subpool_is_archived_at_once_and_its_quota_returns(team):
    team.split(a=30, b=40)

    assert SubpoolState.ARCHIVED is team.delete("a").state
    assert {"_shared": 60, "b": 40} == team.leaf_quotas()


def test_scenario_006_every_pool_has_a_shared_leaf(world):
    world.pool("x", 8)
    world.pool("y", 0)
    world.pool("default", -1)

    quotas_of_leaves = [world.leaf_quotas(name)["_shared"] for name in ("x", "y", "default")]
    assert [8, 0, None] == quotas_of_leaves


def test_scenario_007_the_shared_leaf_is_shown_nowhere_but_among_the_queues(divided):
    workflow = divided.run(5)
    site, admin = divided.site, divided.admin
    shown = [
        pools.list_pools(site, admin, subpools=True),
        [show_pool(each) for each in pools.list_pools(site, admin, subpools=True)],
        subpools.list_subpools(site, admin, "team", include_archived=True),
        quotas.pool_quotas(site, admin),
        query.list_workflows(site, admin, Filter()),
    ]

    assert "_shared" not in repr(shown)
    assert "team" == divided.get(workflow).pool


def test_scenario_008_a_deleting_subpool_keeps_its_leaf_and_an_archived_one_has_none(divided):
    workflow = divided.run(5, "team--a")
    divided.delete("a")
    assert "a" in divided.leaf_quotas()

    divided.finish(workflow)

    assert "a" not in divided.leaf_quotas()


def test_scenario_009_a_deleting_subpool_has_quota_0_and_the_shared_leaf_has_it_back(divided):
    divided.run(5, "team--a")
    divided.delete("a")

    assert {"_shared": 40, "a": 0, "b": 40, "c": 20} == divided.leaf_quotas()


def test_scenario_010_leaves_have_the_limit_and_the_weight_of_their_pool(world):
    world.pool("team", 100, maximum=120, weight=3)
    world.create("a", 30)

    rows = [each.row for each in quotas.list_queues(world.site, world.admin)]
    assert [("team", 100, 120, 3), ("team", 70, 120, 3), ("team--a", 30, 120, 3)] == [
        (row.pool, row.quota, row.limit, row.weight) for row in rows if row.pool
    ]


def test_scenario_012_the_same_subpool_name_under_two_pools(world):
    world.pool("team", 60)
    world.pool("teamx", 40)
    world.create("a", 30, "team")
    world.create("a", 10, "teamx")

    queues = world.queues()
    assert 30 == queues["osmo-pool-ns-team--a"][2]
    assert 10 == queues["osmo-pool-ns-teamx--a"][2]


def test_scenario_014_a_gang_of_a_subpool_refers_to_the_topology_of_its_pool(world):
    keys = [{"key": "zone", "label": "topology/zone"}, {"key": "rack", "label": "topology/rack"}]
    world.pool("team", 100, topology_keys=keys)
    world.create("a", 30)
    group = one_group(4, 2, constraint=TopologyConstraint(required="rack"))
    world.submit(4, "team--a", spec=WorkflowSpec("racked", (group,)))

    snapshot = world.scheduler.live.builder.take().snapshot

    (topology,) = snapshot.topologies
    assert "osmo-pool-ns-team-topology" == topology.name
    assert ["topology/zone", "topology/rack"] == [level.label for level in topology.levels]
    (gang,) = snapshot.gangs["osmo-pool-ns-team--a"]
    assert topology.name == gang.constraint.topology


def test_scenario_015_a_submission_to_a_subpool_goes_to_its_own_leaf(team):
    team.create("a", 30)
    workflow = team.run(20, "team--a")

    assert "osmo-pool-ns-team--a" == team.queue_of(workflow)
    assert (30, 20, 10) == team.numbers("team--a")
    assert (70, 0, 70) == team.numbers("team")


def test_scenario_016_a_pool_without_subpools_is_as_before(team):
    workflow = team.run(50)

    assert "osmo-pool-ns-team--_shared" == team.queue_of(workflow)
    assert (100, 50, 50) == team.numbers()


def test_scenario_017_every_priority_goes_to_the_shared_leaf_of_the_pool(divided):
    queues = {divided.queue_of(divided.submit(5, priority=priority)) for priority in Priority}

    assert {"osmo-pool-ns-team--_shared"} == queues


def test_scenario_018_the_shared_leaf_is_no_pool(team):
    assert (404, "Pool team--_shared not found.") == refusal(team.submit, 1, "team--_shared")


def test_scenario_019_an_unknown_subpool_never_falls_back_to_its_pool(team):
    assert (404, "Pool team--zzz not found.") == refusal(team.submit, 1, "team--zzz")


def test_scenario_020_workflows_are_listed_under_the_name_they_were_submitted_to(divided):
    direct = divided.submit(5)
    inside = divided.submit(5, "team--a")

    def listed(pool: str) -> list[str]:
        page = query.list_workflows(divided.site, divided.admin, Filter(pools=(pool,)))
        return [each.workflow_id for each in page.workflows]

    assert [direct.workflow_id] == listed("team")
    assert [inside.workflow_id] == listed("team--a")
    assert ("team--a", "default") == (inside.pool, inside.backend)


def test_scenario_021_a_retry_goes_to_the_same_leaf(divided):
    low = divided.run(90, "team--a", Priority.LOW)
    divided.run(40, "team--b")

    assert WorkflowStatus.PENDING is divided.status(low)
    assert ["osmo-pool-ns-team--a", 1] == [divided.queue_of(low), divided.tasks(low)[0].retry_id]


def test_scenario_022_routing_goes_by_the_stored_edge_not_by_the_name(team):
    with team.site.store.write() as connection:
        found = pool_store.find_pool(connection, "team")
        pool_store.insert_pool(connection, type(found)("x--y", gpu=found.gpu), 0)

    workflow = team.submit(5, "x--y")

    assert "osmo-pool-ns-x--y--_shared" == team.queue_of(workflow)


def test_queues_say_their_share_and_what_is_fair_now(world):
    """Each owns 20 of 100; heavy could have three times as much of the rest as light."""
    world.pool("heavy", 20, weight=3)
    world.pool("light", 20)
    world.run(90, "light", Priority.LOW)
    world.submit(60, "heavy", Priority.LOW)
    world.settle()

    assert {"heavy": (3, 0, "0", 20, 60), "light": (1, 90, "0.7", 20, 40)} == {
        each.row.pool: (each.row.weight, each.used, each.share, each.deserved, each.fair)
        for each in quotas.list_queues(world.site, world.admin)
        if each.row.pool and not each.row.leaf
    }
