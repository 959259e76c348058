"""Scenarios 109 to 124: the numbers of the list of pools."""

from __future__ import annotations

from bough.model.pool import PoolStatus
from bough.model.workflow import Priority, TaskStatus
from tests.store.usecases import (
    TaskFilter,
    node_list,
    pools,
    quotas,
    show_pool,
    subpools,
    task_list,
)
from tests.store.world import big_node, refusal


def test_scenario_110_the_numbers_of_the_designs_own_table(team):
    team.run(50)
    team.split(a=30, b=40, c=20)
    team.run(5, "team--a")
    team.run(10, "team--b")

    rows = team.rows()
    assert [
        ("team", "ONLINE", None, 10, 100, 50, -40),
        ("team--a", "ONLINE", "ACTIVE", 30, None, 5, 25),
        ("team--b", "ONLINE", "ACTIVE", 40, None, 10, 30),
        ("team--c", "ONLINE", "ACTIVE", 20, None, 0, 20),
    ] == [
        (
            row.name,
            row.status,
            row.subpool.state if row.subpool else None,
            row.usage.quota_limit,
            row.quota_total,
            row.usage.quota_used,
            row.usage.quota_free,
        )
        for row in rows.values()
    ]


def test_scenario_111_a_pool_that_is_not_divided_has_no_total(team):
    team.run(50)

    assert (100, 50, 50) == team.numbers()
    assert team.rows()["team"].quota_total is None


def test_scenario_112_archived_subpools_are_not_listed_and_deleting_ones_have_quota_0(divided):
    divided.run(5, "team--a")
    divided.delete("a")
    divided.delete("c")

    assert ["team", "team--a", "team--b"] == list(divided.rows())
    assert (0, 5, -5) == divided.numbers("team--a")


def test_scenario_113_low_is_not_counted_against_the_quota(divided):
    divided.run(15, priority=Priority.LOW)

    usage = divided.rows()["team"].usage
    assert (0, 10, 15) == (usage.quota_used, usage.quota_free, usage.total_usage)


def test_scenario_114_a_pools_use_is_its_own_alone(divided):
    divided.run(15, "team--a")

    assert 0 == divided.rows()["team"].usage.quota_used


def test_scenario_115_a_pool_that_is_wholly_divided_and_one_that_was_divided_once(team):
    team.create("a", 100)
    row = team.rows()["team"]
    assert (0, 100) == (row.usage.quota_limit, row.quota_total)

    team.delete("a")

    row = team.rows()["team"]
    assert (100, None) == (row.usage.quota_limit, row.quota_total)


def test_scenario_116_pools_and_their_subpools_are_listed_by_name(world):
    for name in ("zeta", "alpha"):
        world.pool(name, 50)
    for parent, name in (("zeta", "b"), ("zeta", "a"), ("alpha", "z")):
        world.create(name, 10, parent)
    world.settle()

    expected = ["alpha", "alpha--z", "zeta", "zeta--a", "zeta--b"]
    assert expected == list(world.rows())


def test_scenario_117_a_pool_brings_its_subpools_and_a_subpool_only_itself(divided):
    assert ["team", "team--a", "team--b", "team--c"] == list(divided.rows("team"))
    assert ["team--a"] == list(divided.rows("team--a"))
    assert (404, "Pools x, y not found") == refusal(divided.rows, "team", "x", "y")


def test_scenario_119_the_sum_counts_every_quota_and_every_node_once(divided):
    divided.run(15, priority=Priority.LOW)

    total = quotas.pool_quotas(divided.site, divided.admin).total

    assert (100, 0, 15) == (total.quota_limit, total.quota_used, total.total_usage)
    assert (100, 85) == (total.total_capacity, total.total_free)


def test_scenario_121_subpools_have_the_status_of_their_pool(divided):
    def statuses() -> set[PoolStatus]:
        return {row.status for row in divided.rows().values()}

    divided.settle()
    divided.time.pass_minutes(2)
    assert {PoolStatus.ONLINE} == statuses()
    divided.time.pass_minutes(0.02)  # answers are kept for a second
    assert {PoolStatus.OFFLINE} == statuses()
    pools.patch_pool(divided.site, divided.admin, "team", {"enable_maintenance": True})
    assert {PoolStatus.MAINTENANCE} == statuses()


def test_scenario_122_both_ways_to_read_a_subpool_give_the_same(divided):
    site, admin = divided.site, divided.admin
    listed = subpools.list_subpools(site, admin, "team")

    assert ["team--a", "team--b", "team--c"] == [each.name for each in listed]
    assert show_pool(subpools.get_subpool(site, admin, "team", "a")) == show_pool(
        pools.get_pool(site, admin, "team--a")
    )


def test_scenario_123_archived_subpools_are_listed_when_asked_for(divided):
    divided.delete("a")
    site, admin = divided.site, divided.admin

    hidden = subpools.list_subpools(site, admin, "team")
    shown = subpools.list_subpools(site, admin, "team", include_archived=True)

    assert (["team--b", "team--c"], 3) == ([each.name for each in hidden], len(shown))
    archived = subpools.get_subpool(site, admin, "team", "a").subpool
    assert archived is not None
    assert "ARCHIVED" == archived.state


def test_scenario_124_dividing_a_pool_shares_no_nodes(world):
    world.backend.offer(
        (
            big_node(8, "n1", pools=("team",)),
            big_node(8, "n2", pools=("team", "other")),
            big_node(8, "n3", pools=("alone",)),
        )
    )
    for name in ("team", "other", "alone"):
        world.pool(name, 8)
    world.create("a", 4)
    world.settle()

    report = quotas.pool_quotas(world.site, world.admin)

    assert [["alone"], ["other", "team", "team--a"]] == [
        [row.name for row in each.rows] for each in report.node_sets
    ]
    assert [8, 16] == [each.rows[0].usage.total_capacity for each in report.node_sets]
    assert (24, 24) == (report.total.quota_limit, report.total.total_capacity)


def test_scenario_124_a_subpool_has_the_nodes_of_its_pool(divided):
    divided.run(5, "team--a")
    listed = node_list.list_nodes(divided.site, divided.admin, ("team--a",))

    assert [("node-0", {"team--a": ("default",)}, 1, 5)] == [
        (each.node.name, each.pools, each.sharing, each.used.gpus) for each in listed
    ]
    assert 404 == refusal(node_list.list_nodes, divided.site, divided.admin, ("x",))[0]


def test_tasks_are_listed_by_pool_user_status_and_node(divided):
    first, second = divided.run(5, "team--a"), divided.run(3, priority=Priority.LOW)

    def listed(**fields) -> list[str]:
        rows = task_list.list_tasks(divided.site, divided.admin, TaskFilter(**fields))
        return sorted(row.workflow_id for row in rows)

    both = sorted(each.workflow_id for each in (first, second))
    assert both == listed()
    assert [first.workflow_id] == listed(pools=("team--a",))
    assert [second.workflow_id] == listed(priorities=(Priority.LOW,))
    assert both == listed(nodes=("node-0",), statuses=(TaskStatus.RUNNING,), users=("root",))
    assert [] == listed(users=("ann",))
    assert 1 == len(listed(limit=1))
    assert [5] == [
        row.spec.requests.gpus
        for row in task_list.list_tasks(
            divided.site, divided.admin, TaskFilter(workflow=first.workflow_id)
        )
    ]


def test_a_pool_uses_only_the_nodes_that_are_its_own(world):
    world.backend.offer((big_node(8, "n1", pools=("team",)), big_node(8, "n2")))
    world.pool("team", 8)
    world.pool("other", 8)

    workflow = world.submit(8, "other")
    world.settle()
    second = world.submit(8, "team")
    world.settle()

    assert [["n2"], ["n1"]] == [
        [task.node for task in world.tasks(each)] for each in (workflow, second)
    ]
