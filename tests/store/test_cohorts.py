"""Cohorts above the pools: both stories of their design on a running site, cycles, deletion."""

from __future__ import annotations

from bough.model.change_record import ConfigType
from bough.model.workflow import Priority
from bough.model.workflow import WorkflowStatus as Status
from tests.store.usecases import change_history, cohorts, pools, query
from tests.store.world import big_node, refusal

LOW, NORMAL = Priority.LOW, Priority.NORMAL


def organisation(world, gpus: int, **members: tuple[str, int]) -> None:
    """Pools by name, each with its cohort and its quota."""
    world.backend.offer((big_node(gpus),))
    for name, (cohort, quota) in members.items():
        world.pool(name, quota, cohort=cohort)
    world.settle()


def lows(world, pool: str, count: int) -> int:
    """How many of so many LOW workflows of one GPU run."""
    submitted = [world.submit(1, pool, LOW) for _ in range(count)]
    world.settle()
    return sum(world.status(each) is Status.RUNNING for each in submitted)


def test_story_1_production_borrows_from_research_and_not_the_other_way_round(world):
    world.cohort("production")
    world.cohort("research", borrowing_limit=0)
    organisation(world, 8, serving=("production", 4), vision=("research", 2), text=("research", 2))

    assert 4 == lows(world, "vision", 6)
    for each in query.list_workflows(world.site, world.admin, query.Filter()).workflows:
        world.cancel(each)
    assert 8 == lows(world, "serving", 9)


def test_story_2_organisations_keep_to_themselves_and_a_special_pool_takes_what_is_idle(world):
    for name in ("red", "blue"):
        world.cohort(name, borrowing_limit=0)
    organisation(world, 8, red1=("red", 2), red2=("red", 2), blue1=("blue", 4))
    world.pool("special", 0)
    world.settle()

    assert 4 == lows(world, "red1", 6)
    assert 4 == lows(world, "special", 6)
    owner = world.submit(4, "blue1", NORMAL)
    world.settle()

    assert Status.RUNNING is world.status(owner)
    assert 0 == world.rows()["special"].usage.total_usage


def test_cohorts_may_be_nested_as_deep_as_the_organisation(world):
    parent = None
    for name in ("company", "division", "group", "squad"):
        world.cohort(name, **({"parent": parent} if parent else {}))
        parent = name
    organisation(world, 4, team=("squad", 2))

    queues = world.queues()
    path, node = [], "osmo-pool-ns-team--_shared"
    while node is not None:
        path.append(node)
        node = queues[node][0]
    assert [
        "osmo-pool-ns-team--_shared",
        "osmo-pool-ns-team",
        "squad",
        "group",
        "division",
        "company",
        "osmo-default-ns",
    ] == path
    assert 4 == lows(world, "team", 5)


def test_a_lending_limit_keeps_a_part_for_the_owner(world):
    world.backend.offer((big_node(8),))
    world.pool("owner", 8, lending_limit=3)
    world.pool("guest", 0)
    world.settle()

    assert 3 == lows(world, "guest", 6)


def test_a_cycle_stops_what_hangs_on_it_until_it_is_broken(world):
    for name in ("a", "b"):
        world.cohort(name)
    organisation(world, 4, team=("a", 2), other=(None, 2))
    cohorts.update_cohort(world.site, world.admin, "a", {"parent": "b"})
    running = world.run(1, "team", NORMAL)

    change = cohorts.update_cohort(world.site, world.admin, "b", {"parent": "a"})
    waiting, elsewhere = world.submit(1, "team", NORMAL), world.submit(1, "other", NORMAL)
    world.settle()

    assert {"a", "b", "osmo-pool-ns-team", "osmo-pool-ns-team--_shared"} == {
        node.name for node in change.effects.tangled
    }
    assert [Status.RUNNING, Status.PENDING, Status.RUNNING] == [
        world.status(each) for each in (running, waiting, elsewhere)
    ]
    (reason,) = query.why(world.site, world.admin, waiting.workflow_id)
    assert "its cohorts form a cycle" in reason.message

    change = cohorts.update_cohort(world.site, world.admin, "b", {"parent": None})
    world.settle()

    assert 4 == len(change.effects.untangled)
    assert Status.RUNNING is world.status(waiting)


def test_a_deleted_cohort_goes_on_without_quota_and_parent(world):
    world.cohort("org", quota=2)
    organisation(world, 8, team=("org", 2), other=(None, 4))
    assert 8 == lows(world, "team", 9)

    change = cohorts.delete_cohort(world.site, world.admin, "org")

    debts = {(debt.node.name, debt.after) for debt in change.effects.debts}
    assert ("org", 6) in debts
    assert "org" not in world.queues()
    assert "org" == pools.get_pool(world.site, world.admin, "team").pool.cohort
    for each in query.list_workflows(world.site, world.admin, query.Filter()).workflows:
        world.cancel(each)
    assert 2 == lows(world, "team", 4)


def test_a_cohorts_own_quota_is_for_all_below_it_and_counts_against_the_nodes(world):
    world.cohort("org", quota=2, borrowing_limit=0)
    organisation(world, 8, one=("org", 2), two=("org", 2))

    assert 6 == lows(world, "one", 8)


def test_a_change_can_be_planned_without_being_made(world):
    world.cohort("org", quota=4)
    organisation(world, 8, team=("org", 2))
    lows(world, "team", 8)
    before = world.queues(), change_history.list_audit(world.site, world.admin)

    planned = cohorts.update_cohort(
        world.site, world.admin, "org", {"borrowing_limit": 0}, plan=True
    )

    assert planned.planned
    assert [("org", 2)] == [(debt.node.name, debt.after) for debt in planned.effects.debts]
    assert before == (world.queues(), change_history.list_audit(world.site, world.admin))


def test_cohorts_that_cannot_be(world):
    world.cohort("org")
    site, admin = world.site, world.admin
    for name in ("osmo-default-ns", "osmo-pool-ns-x", "a--b", "_x", "", "a b"):
        assert 400 == refusal(cohorts.create_cohort, site, admin, name, {})[0]
    for fields in ({"quota": -1}, {"quota": "x"}, {"parent": "nope"}, {"parent": 3}, {"x": 1}, []):
        assert 400 == refusal(cohorts.update_cohort, site, admin, "org", fields)[0]
    assert (409, "Cohort org already exists.") == refusal(
        cohorts.create_cohort, site, admin, "org", {}
    )
    for action in (cohorts.delete_cohort, cohorts.get_cohort):
        assert (404, "Cohort nope not found.") == refusal(action, site, admin, "nope")
    assert (400, "Cohort nope not found; create it first.") == refusal(
        world.pool, "team", 1, cohort="nope"
    )
    world.pool("team", 1)
    user = world.user("ann", "osmo-team-admin")
    assert 403 == refusal(cohorts.create_cohort, site, user, "mine", {})[0]


def test_cohorts_have_a_history(world):
    world.cohort("org", quota=1)
    cohorts.update_cohort(world.site, world.admin, "org", {"quota": 2})
    cohorts.delete_cohort(world.site, world.admin, "org")

    entries = change_history.list_revisions(world.site, world.admin, types=(ConfigType.COHORT,))
    assert [None, 2, 1] == [each.data and each.data["quota"] for each in entries]
