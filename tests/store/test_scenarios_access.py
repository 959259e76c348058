"""Scenarios 125 to 142: names, roles, history, and permissions."""

from __future__ import annotations

import pytest

from bough.model.access import (
    Actor,
    Effect,
    Role,
    Statement,
)
from bough.model.change_record import ConfigType
from bough.model.pool import GpuQuota, Pool
from bough.model.subpool import SubpoolState
from bough.model.workflow import WorkflowStatus
from bough.store import people as people_store
from tests.store.usecases import (
    access,
    cancelling,
    change_history,
    pool_store,
    pools,
    profiles,
    query,
    start,
    subpools,
    users,
)
from tests.store.world import refusal


def test_scenario_125_no_pool_has_the_delimiter_in_its_name(team):
    site, admin = team.site, team.admin
    status, message = refusal(team.pool, "a--b", 1)
    assert (400, True) == (status, message.startswith('Pool name "a--b" is not valid!'))
    assert 400 == refusal(pools.rename_pool, site, admin, "team", "a--b")[0]

    refused = refusal(pools.put_pools, site, admin, {"good": {}, "bad--name": {}})

    assert 400 == refused[0]
    assert ["team"] == [each.name for each in pools.list_pools(site, admin)]


def test_scenario_126_an_old_pool_with_the_delimiter_works_but_is_not_divided(team):
    with team.site.store.write() as connection:
        pool_store.insert_pool(connection, Pool("x--y", gpu=GpuQuota(10)), 0)

    again = team.restarted()
    (warning,) = start(again.site).warnings
    assert "x--y" in warning
    workflow = again.run(5, "x--y")
    status, message = refusal(again.create, "a", 1, "x--y")
    assert (400, True) == (status, "rename it first" in message)
    again.finish(workflow)
    assert WorkflowStatus.COMPLETED is again.status(workflow)
    assert (10, 0, 10) == again.numbers("x--y")


def test_scenarios_127_and_128_only_the_pools_admin_divides_it(team):
    chief = team.user("chief", "osmo-team-admin")
    user = team.user("ann", "osmo-team-user")
    site = team.site

    subpools.create_subpool(site, chief, "team", "a", 30)
    subpools.update_subpool(site, chief, "team", "a", {"quota": 20})
    denied = (403, "access denied")
    assert denied == refusal(subpools.create_subpool, site, user, "team", "b", 1)
    assert denied == refusal(subpools.update_subpool, site, user, "team", "a", {"quota": 1})
    assert denied == refusal(subpools.delete_subpool, site, user, "team", "a")
    subpools.delete_subpool(site, chief, "team", "a")

    assert SubpoolState.ARCHIVED is team.state("a")


def test_scenario_129_a_pools_users_submit_to_all_its_subpools_also_to_later_ones(team):
    team.pool("other", 0)
    user = team.user("ann", "osmo-team-user")
    team.submit(1, actor=user)
    team.create("later", 10)
    team.submit(1, "team--later", actor=user)

    team.pool("other", 10)
    team.create("a", 5, "other")
    for name in ("other", "other--a"):
        assert (403, "access denied") == refusal(team.submit, 0, name, actor=user)


def test_scenario_130_a_role_is_for_one_pool_whatever_other_names_begin_with(world):
    for name in ("team", "team2", "team-b"):
        world.pool(name, 10)
    world.create("x", 5, "team-b")
    user = world.user("ann", "osmo-team-user")
    chief = world.user("chief", "osmo-team-b-admin")

    for name in ("team2", "team-b", "team-b--x"):
        assert 403 == refusal(world.submit, 1, name, actor=user)[0]
    refused = refusal(subpools.create_subpool, world.site, chief, "team", "a", 1)
    assert (403, "access denied") == refused


@pytest.mark.parametrize("effect", Effect)
def test_scenario_131_there_are_no_roles_of_subpools(divided, effect):
    role = Role("narrow", "", (Statement(effect, ("*:*",), ("pool/team--a",)),))
    site, admin = divided.site, divided.admin

    status, message = refusal(users.put_role, site, admin, role)
    assert (400, True) == (status, message.startswith("Role narrow: pool/team--a: team--a is a "))
    assert "there are no roles of subpools" in message
    for name in ("osmo-team--a-user", "osmo-team--a-admin"):
        status, message = refusal(users.create_user, site, admin, "ann", (name,))
        assert (400, True) == (status, "there are no roles of subpools" in message)


def test_scenario_131_a_stored_policy_about_a_subpool_is_told_of_and_never_opens(divided):
    allow = Statement(Effect.ALLOW, ("*:*",), ("pool/team--a",))
    every = Statement(Effect.ALLOW, ("*:*",), ("pool/*",))
    deny = Statement(Effect.DENY, ("workflow:*",), ("pool/team--b",))
    workflow = divided.submit(1, "team--b")
    with divided.site.store.write() as connection:
        people_store.put_role(connection, Role("narrow", "", (allow,)))
        people_store.put_role(connection, Role("careful", "", (every, deny)))
    for name, role in (("ann", "narrow"), ("ben", "careful")):
        users.create_user(divided.site, divided.admin, name, (role,))
    ann, ben = access.recognise(divided.site, "ann"), access.recognise(divided.site, "ben")

    for name in ("team", "team--a", "team--b"):
        assert 403 == refusal(divided.submit, 1, name, actor=ann)[0]
    divided.submit(1, "team", actor=ben)
    divided.submit(1, "team--a", actor=ben)
    assert 403 == refusal(divided.submit, 1, "team--b", actor=ben)[0]
    for action in (query.get_workflow, query.get_spec, cancelling.cancel, query.get_events):
        assert 403 == refusal(action, divided.site, ben, workflow.workflow_id)[0]
    assert ("team", "team--a", "team--c") == profiles.get_profile(divided.site, ben).pools
    seen = change_history.events_after(divided.site, ben, 0)
    assert [] == [each for each in seen if each.pool == "team"]
    told = [each for each in start(divided.site).warnings if "there are no roles" in each]
    closed, open_ = told
    assert "Role careful has a policy about pool/team--b, which is a subpool" in closed
    assert closed.endswith("the Deny keeps it closed. Rewrite it.")
    assert "Role narrow has a policy about pool/team--a, which is a subpool" in open_
    assert open_.endswith("the Allow grants nothing. Rewrite it.")


def test_scenario_131_a_role_for_the_pool_reaches_its_subpools(divided):
    statements = (Statement(Effect.ALLOW, ("workflow:*",), ("pool/team",)),)
    users.put_role(divided.site, divided.admin, Role("writers", "", statements))
    users.create_user(divided.site, divided.admin, "ann", ("writers",))
    user = access.recognise(divided.site, "ann")

    divided.submit(1, "team--a", actor=user)
    refused = refusal(subpools.create_subpool, divided.site, user, "team", "x", 0)
    assert 403 == refused[0]


def test_scenario_132_who_may_submit_where_is_in_the_profile(divided):
    divided.pool("other", 0)
    divided.delete("c")
    user = divided.user("ann", "osmo-team-user")

    assert ("team", "team--a", "team--b") == profiles.get_profile(divided.site, user).pools
    every = profiles.get_profile(divided.site, divided.admin).pools
    assert ("other", "team", "team--a", "team--b") == every
    assert 403 == refusal(profiles.get_profile, divided.site, Actor("eve"))[0]


def test_scenario_133_rights_on_a_workflow_in_a_subpool_follow_the_pool(divided):
    divided.pool("other", 0)
    workflow = divided.submit(5, "team--a")
    ours = divided.user("ann", "osmo-team-user")
    theirs = divided.user("ben", "osmo-other-user")
    site = divided.site

    for action in (
        query.get_workflow,
        query.get_events,
        query.why,
        query.get_spec,
        cancelling.cancel,
    ):
        assert 403 == refusal(action, site, theirs, workflow.workflow_id)[0]
    assert workflow.uuid == query.get_workflow(site, ours, workflow.uuid).workflow.uuid
    cancelling.cancel(site, ours, workflow.workflow_id)


def test_scenario_133_a_pool_can_leave_the_workflows_of_others_to_its_admins(divided):
    site, admin = divided.site, divided.admin
    ann, ben = divided.user("ann", "osmo-team-user"), divided.user("ben", "osmo-team-user")
    chief = divided.user("chief", "osmo-team-admin")
    first, second, third = (divided.submit(1, "team--a", actor=ann) for _ in range(3))
    pools.patch_pool(site, admin, "team", {"cancel": "own"})

    status, message = refusal(cancelling.cancel, site, ben, first.workflow_id)
    assert (403, f"Workflow {first.workflow_id} was submitted by ann") == (
        status,
        message.partition(":")[0],
    )
    cancelling.cancel(site, ann, first.workflow_id)
    cancelling.cancel(site, chief, second.workflow_id)
    cancelling.cancel(site, admin, third.workflow_id)
    last = divided.submit(1, "team", actor=ann)
    pools.patch_pool(site, admin, "team", {"cancel": None})
    cancelling.cancel(site, ben, last.workflow_id)
    status, message = refusal(pools.patch_pool, site, admin, "team", {"cancel": "some"})
    assert (400, "Pool team: cancel must be any or own, not 'some'.") == (status, message)


def test_scenario_140_a_rollback_of_pools_leaves_subpools_alone(team):
    site, admin = team.site, team.admin
    (first,) = change_history.list_revisions(site, admin, types=(ConfigType.POOL,))
    pools.patch_pool(site, admin, "team", {"description": "later"})
    team.create("a", 30)

    change_history.rollback_pools(site, admin, first.revision)

    assert "" == pools.get_pool(site, admin, "team").pool.description
    assert {"_shared": 70, "a": 30} == team.leaf_quotas()


def test_a_rollback_below_what_the_subpools_have_is_refused(team):
    site, admin = team.site, team.admin
    (first,) = change_history.list_revisions(site, admin, types=(ConfigType.POOL,))
    pools.patch_pool(site, admin, "team", {"resources": {"gpu": {"guarantee": 200}}})
    team.create("a", 150)

    assert 400 == refusal(change_history.rollback_pools, site, admin, first.revision)[0]


def test_history_says_what_was_different(team):
    site, admin = team.site, team.admin
    pools.patch_pool(site, admin, "team", {"resources": {"gpu": {"guarantee": 90}}})

    newest = change_history.list_revisions(site, admin, types=(ConfigType.POOL,))[0]

    assert [("resources.gpu.guarantee", 100, 90)] == [
        (each.field, each.before, each.after) for each in newest.differences
    ]
    between = change_history.diff(site, admin, ConfigType.POOL, 1, 2)
    assert ["team.resources.gpu.guarantee"] == [each.field for each in between]


def test_every_write_is_audited_with_who_when_from_where_before_and_after(team):
    team.create("a", 30)
    team.update("a", 20)

    newest, created, *_ = change_history.list_audit(team.site, team.admin, subject="pool/team--a")

    assert ("root", "127.0.0.1", "subpool:Update", team.time.ms) == (
        newest.actor,
        newest.origin,
        newest.action,
        newest.at_ms,
    )
    assert (30, 20) == (newest.before["quota"], newest.after["quota"])
    assert (None, 30) == (created.before, created.after["quota"])


def test_a_change_that_is_refused_leaves_no_trace(team):
    before = change_history.list_audit(team.site, team.admin)

    refusal(team.create, "a", 101)

    assert before == change_history.list_audit(team.site, team.admin)
    assert before
