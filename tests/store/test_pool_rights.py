"""Roles and policies belong to a pool, and not to its name."""

from __future__ import annotations

import pytest

from bough.model.access import (
    Action,
    Effect,
    Role,
    Statement,
)
from tests.store.usecases import (
    access,
    cancelling,
    change_history,
    pools,
    query,
    start,
    tokens,
    users,
)
from tests.store.world import refusal

pytestmark = pytest.mark.postgresql


def test_a_role_and_a_policy_follow_their_pool_and_not_its_name(world):
    site, admin = world.site, world.admin
    world.pool("team", 10)
    policy = Statement(Effect.ALLOW, ("workflow:*",), ("pool/team",))
    users.put_role(site, admin, Role("writers", "", (policy,)))
    for name, role in (("ann", "osmo-team-user"), ("ben", "writers")):
        users.create_user(site, admin, name, (role,))
    robot = tokens.create_token(site, admin, "robot", user="ann").secret
    pools.rename_pool(site, admin, "team", "crew")
    world.pool("team", 10)

    actors = [access.recognise(site, "ann"), access.recognise(site, "ben")]
    actors.append(access.authenticate(site, robot))
    for actor in actors:
        world.submit(1, "crew", actor=actor)
        assert (403, "access denied") == refusal(world.submit, 1, "team", actor=actor)
    (role,) = users.list_roles(site, admin)
    assert ("pool/crew",) == role.statements[0].resources
    assert ["osmo-crew-user"] == [each.role for each in users.get_user(site, admin, "ann").roles]
    assert ("osmo-crew-user",) == tokens.get_token(site, admin, "robot", user="ann").roles
    # The new pool of the old name has roles of its own.
    users.change_roles(site, admin, "ann", add=("osmo-team-user",))
    world.submit(1, "team", actor=access.recognise(site, "ann"))
    users.change_roles(site, admin, "ann", remove=("osmo-crew-user",))
    assert 403 == refusal(world.submit, 1, "crew", actor=access.recognise(site, "ann"))[0]


def test_a_pool_that_is_made_again_is_another_one(world):
    site, admin = world.site, world.admin
    world.pool("team", 10)
    policy = Statement(Effect.ALLOW, ("workflow:*",), ("pool/team",))
    users.put_role(site, admin, Role("writers", "", (policy,)))
    for name, role in (("ann", "osmo-team-user"), ("ben", "writers")):
        users.create_user(site, admin, name, (role,))
    pools.delete_pool(site, admin, "team")
    world.pool("team", 10)

    for name in ("ann", "ben"):
        actor = access.recognise(site, name)
        assert 403 == refusal(world.submit, 1, "team", actor=actor)[0]
        # Nor does a policy about nothing become one about everything.
        assert not access.allows(actor, Action.WORKFLOW_CREATE)
    (told,) = [each for each in start(site).warnings if "writers" in each]
    assert "Role writers has a policy about pool/team, which is no pool" in told


@pytest.mark.parametrize("change", ["rename", "delete"])
def test_users_of_a_new_pool_read_nothing_of_an_earlier_one_of_its_name(world, change):
    site, admin = world.site, world.admin
    world.pool("team", 10)
    old = world.submit(1, "team")
    cancelling.cancel(site, admin, old.workflow_id)
    world.settle()
    if change == "rename":
        pools.rename_pool(site, admin, "team", "crew")
    else:
        pools.delete_pool(site, admin, "team")
    world.pool("team", 10)
    ann = world.user("ann", "osmo-team-user")
    new = world.submit(1, "team")

    for action in (query.get_workflow, query.get_spec, query.get_events, query.why):
        assert 403 == refusal(action, site, ann, old.workflow_id)[0]
    seen = {each.subject for each in change_history.events_after(site, ann, 0)}
    assert (True, False) == (new.workflow_id in seen, old.workflow_id in seen)
    assert old.workflow_id in {each.subject for each in change_history.events_after(site, admin, 0)}
    shown = query.get_workflow(site, admin, old.workflow_id).workflow.pool
    assert {"rename": "crew", "delete": "team (deleted)"}[change] == shown


def test_what_is_about_no_pool_is_refused_when_it_is_written(world):
    policy = Statement(Effect.ALLOW, ("workflow:*",), ("pool/none",))
    site, admin = world.site, world.admin

    assert (400, "Role r: pool/none: there is no pool none; create it first.") == refusal(
        users.put_role, site, admin, Role("r", "", (policy,))
    )
    assert (400, "Role osmo-none-user: there is no pool none; create it first.") == refusal(
        users.create_user, site, admin, "ann", ("osmo-none-user",)
    )
    world.pool("team", 1)
    status, message = refusal(users.put_role, site, admin, Role("osmo-team-user"))
    assert (400, True) == (status, "has the name of a role of a pool" in message)
