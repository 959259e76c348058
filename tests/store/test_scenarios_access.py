"""Scenarios 125 to 142: names, roles, history; and who may do what at all."""

from __future__ import annotations

import pytest

from bough.control.people.administrators import ensure_admin
from bough.errors import BoughError
from bough.model.access import (
    DEFAULT_ACTIONS,
    POOL_ADMIN_ACTIONS,
    POOL_USER_ACTIONS,
    PUBLIC_ACTIONS,
    Action,
    Actor,
    CredentialType,
    Effect,
    Role,
    Statement,
)
from bough.model.pool import GpuQuota, Pool
from bough.model.record import ConfigType
from bough.model.subpool import SubpoolState
from bough.model.workflow import WorkflowStatus
from bough.store import people as people_store
from tests.store.usecases import (
    access,
    credentials,
    history,
    pool_store,
    pools,
    profiles,
    query,
    start,
    submit,
    subpools,
    tokens,
    users,
)
from tests.store.world import job, refusal

pytestmark = pytest.mark.postgresql


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
    for action in (query.get_workflow, query.get_spec, query.cancel, query.get_events):
        assert 403 == refusal(action, divided.site, ben, workflow.workflow_id)[0]
    assert ("team", "team--a", "team--c") == profiles.get_profile(divided.site, ben).pools
    seen = history.events_after(divided.site, ben, 0)
    assert [] == [each for each in seen if each.pool == "team"]
    told = [each for each in start(divided.site).warnings if "there are no roles" in each]
    closed, open_ = told
    assert "Role careful has a policy about pool/team--b, which is a subpool" in closed
    assert closed.endswith("the Deny keeps it closed. Rewrite it.")
    assert "Role narrow has a policy about pool/team--a, which is a subpool" in open_
    assert open_.endswith("the Allow grants nothing. Rewrite it.")


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
    query.cancel(site, admin, old.workflow_id)
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
    seen = {each.subject for each in history.events_after(site, ann, 0)}
    assert (True, False) == (new.workflow_id in seen, old.workflow_id in seen)
    assert old.workflow_id in {each.subject for each in history.events_after(site, admin, 0)}
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
        query.cancel,
    ):
        assert 403 == refusal(action, site, theirs, workflow.workflow_id)[0]
    assert workflow.uuid == query.get_workflow(site, ours, workflow.uuid).workflow.uuid
    query.cancel(site, ours, workflow.workflow_id)


def test_scenario_133_a_pool_can_leave_the_workflows_of_others_to_its_admins(divided):
    site, admin = divided.site, divided.admin
    ann, ben = divided.user("ann", "osmo-team-user"), divided.user("ben", "osmo-team-user")
    chief = divided.user("chief", "osmo-team-admin")
    first, second, third = (divided.submit(1, "team--a", actor=ann) for _ in range(3))
    pools.patch_pool(site, admin, "team", {"cancel": "own"})

    status, message = refusal(query.cancel, site, ben, first.workflow_id)
    assert (403, f"Workflow {first.workflow_id} was submitted by ann") == (
        status,
        message.partition(":")[0],
    )
    query.cancel(site, ann, first.workflow_id)
    query.cancel(site, chief, second.workflow_id)
    query.cancel(site, admin, third.workflow_id)
    last = divided.submit(1, "team", actor=ann)
    pools.patch_pool(site, admin, "team", {"cancel": None})
    query.cancel(site, ben, last.workflow_id)
    status, message = refusal(pools.patch_pool, site, admin, "team", {"cancel": "some"})
    assert (400, "Pool team: cancel must be any or own, not 'some'.") == (status, message)


def test_scenario_140_a_rollback_of_pools_leaves_subpools_alone(team):
    site, admin = team.site, team.admin
    (first,) = history.list_revisions(site, admin, types=(ConfigType.POOL,))
    pools.patch_pool(site, admin, "team", {"description": "later"})
    team.create("a", 30)

    history.rollback_pools(site, admin, first.revision)

    assert "" == pools.get_pool(site, admin, "team").pool.description
    assert {"_shared": 70, "a": 30} == team.leaf_quotas()


def test_a_rollback_below_what_the_subpools_have_is_refused(team):
    site, admin = team.site, team.admin
    (first,) = history.list_revisions(site, admin, types=(ConfigType.POOL,))
    pools.patch_pool(site, admin, "team", {"resources": {"gpu": {"guarantee": 200}}})
    team.create("a", 150)

    assert 400 == refusal(history.rollback_pools, site, admin, first.revision)[0]


def test_history_says_what_was_different(team):
    site, admin = team.site, team.admin
    pools.patch_pool(site, admin, "team", {"resources": {"gpu": {"guarantee": 90}}})

    newest = history.list_revisions(site, admin, types=(ConfigType.POOL,))[0]

    assert [("resources.gpu.guarantee", 100, 90)] == [
        (each.field, each.before, each.after) for each in newest.differences
    ]
    between = history.diff(site, admin, ConfigType.POOL, 1, 2)
    assert ["team.resources.gpu.guarantee"] == [each.field for each in between]


def test_every_write_is_audited_with_who_when_from_where_before_and_after(team):
    team.create("a", 30)
    team.update("a", 20)

    newest, created, *_ = history.list_audit(team.site, team.admin, subject="pool/team--a")

    assert ("root", "127.0.0.1", "subpool:Update", team.time.ms) == (
        newest.actor,
        newest.origin,
        newest.action,
        newest.at_ms,
    )
    assert (30, 20) == (newest.before["quota"], newest.after["quota"])
    assert (None, 30) == (created.before, created.after["quota"])


def test_a_change_that_is_refused_leaves_no_trace(team):
    before = history.list_audit(team.site, team.admin)

    refusal(team.create, "a", 101)

    assert before == history.list_audit(team.site, team.admin)
    assert before


# Who may do what


def test_everything_is_denied_unless_a_role_allows_it():
    admin, everybody = Actor("a", ("osmo-admin",)), Actor("b", ("osmo-default",))
    user, chief = Actor("c", ("osmo-team-user",)), Actor("d", ("osmo-team-admin",))
    for action in Action:
        public = action in PUBLIC_ACTIONS
        assert access.allows(admin, action, "pool/team")
        assert access.allows(Actor(""), action) is public
        assert access.allows(Actor("nobody"), action, "pool/team") is public
        assert access.allows(everybody, action, "pool/team") is (
            public or action in DEFAULT_ACTIONS
        )
        assert access.allows(user, action, "pool/team") is (public or action in POOL_USER_ACTIONS)
        assert access.allows(chief, action, "pool/team") is (public or action in POOL_ADMIN_ACTIONS)
        assert access.allows(chief, action, "pool/team2") is public
        assert access.allows(chief, action, None) is public


def test_within_a_role_deny_beats_allow_and_another_role_may_still_allow():
    allow = Statement(Effect.ALLOW, ("workflow:*",), ("pool/*",))
    deny = Statement(Effect.DENY, ("workflow:Cancel",), ("pool/team",))
    careful, free = Role("careful", "", (allow, deny)), Role("free", "", (allow,))

    one = Actor("ann", ("careful",), (careful,))
    both = Actor("ann", ("careful", "free"), (careful, free))

    assert access.allows(one, Action.WORKFLOW_CREATE, "pool/team")
    assert not access.allows(one, Action.WORKFLOW_CANCEL, "pool/team")
    assert access.allows(one, Action.WORKFLOW_CANCEL, "pool/other")
    assert access.allows(both, Action.WORKFLOW_CANCEL, "pool/team")


def test_a_role_cannot_be_written_for_a_part_of_a_name(world):
    bad = Role("bad", "", (Statement(Effect.ALLOW, ("workflow:*",), ("pool/team*",)),))

    status, message = refusal(users.put_role, world.site, world.admin, bad)

    assert (400, True) == (status, "a part of a name is not possible" in message)


def test_only_an_administrator_gives_rights_whatever_a_role_allows(team):
    site, admin = team.site, team.admin
    everything = Statement(Effect.ALLOW, ("*:*",), ("*",))
    users.put_role(site, admin, Role("helpdesk", "", (everything,)))
    for name, roles in (("eve", ("helpdesk",)), ("chief", ("osmo-admin",))):
        users.create_user(site, admin, name, roles)
    eve = access.recognise(site, "eve")
    users.create_user(site, eve, "new")
    users.delete_user(site, eve, "new")

    ways = (
        (users.change_roles, "eve", ("osmo-admin",)),
        (users.change_roles, "chief", (), ("osmo-admin",)),
        (users.create_user, "mallory", ("osmo-admin",)),
        (users.create_user, "mallory", ("osmo-team-user",)),
        (users.delete_user, "chief"),
        (users.put_role, Role("helpdesk", "", (everything,))),
        (users.put_role, Role("another", "", (everything,))),
        (users.delete_role, "helpdesk"),
    )
    for action, *arguments in ways:
        refused = refusal(action, site, eve, *arguments)
        assert (403, "Only an administrator can give and take rights.") == refused
    for action in (tokens.create_token, tokens.delete_token):
        assert 403 == refusal(action, site, eve, "x", user="chief")[0]
    assert ("helpdesk",) == tuple(each.role for each in users.get_user(site, admin, "eve").roles)
    assert 404 == refusal(users.get_user, site, admin, "mallory")[0]


# Tokens


def test_only_the_hash_of_a_token_is_kept_and_the_token_works(team):
    user = team.user("ann", "osmo-team-user")
    made = tokens.create_token(team.site, user, "laptop")

    actor = access.authenticate(team.site, made.secret, "10.0.0.1")

    assert ("ann", "laptop", "10.0.0.1") == (actor.name, actor.token, actor.origin)
    assert ("osmo-default", "osmo-team-user") == actor.roles
    assert made.secret not in repr(history.list_audit(team.site, team.admin))
    assert made.secret not in repr(tokens.list_tokens(team.site, user))
    with team.site.store.read() as connection:
        kept = connection.exec_driver_sql("SELECT * FROM tokens").all()
    assert 1 == len(kept)
    assert made.secret not in repr(kept)
    submit(team.site, actor, "team", job(1))


def test_a_token_expires_and_can_be_deleted(team):
    user = team.user("ann", "osmo-team-user")
    soon = tokens.create_token(team.site, user, "soon", expires_ms=team.time.ms + 1)
    later = tokens.create_token(team.site, user, "later")
    team.time.ms += 1

    assert (401, "The token soon has expired; make a new one.") == refusal(
        access.authenticate, team.site, soon.secret
    )
    tokens.delete_token(team.site, user, "later")
    assert 401 == refusal(access.authenticate, team.site, later.secret)[0]
    assert 400 == refusal(tokens.create_token, team.site, user, "x", expires_ms=team.time.ms)[0]


def test_a_token_has_no_role_that_its_user_lacks_and_loses_what_the_user_loses(team):
    team.pool("other", 0)
    user = team.user("ann", "osmo-team-user", "osmo-other-user")
    refused = refusal(tokens.create_token, team.site, user, "x", roles=("osmo-admin",))
    assert 403 == refused[0]
    made = tokens.create_token(team.site, user, "narrow", roles=("osmo-team-user",))
    narrow = access.authenticate(team.site, made.secret)
    assert ("osmo-default", "osmo-team-user") == narrow.roles

    wide = tokens.create_token(team.site, narrow, "wide")
    assert ("osmo-team-user",) == wide.token.roles
    users.change_roles(team.site, team.admin, "ann", remove=("osmo-team-user",))

    assert ("osmo-default",) == access.authenticate(team.site, made.secret).roles


def test_another_users_tokens_are_an_administrators_business(team):
    ann, ben = team.user("ann"), team.user("ben")
    made = tokens.create_token(team.site, team.admin, "robot", user="ben")
    assert "ben" == access.authenticate(team.site, made.secret).name

    for action in (tokens.list_tokens,):
        assert 403 == refusal(action, team.site, ann, user="ben")[0]
    assert 403 == refusal(tokens.delete_token, team.site, ann, "robot", user="ben")[0]
    assert ["robot"] == [each.name for each in tokens.list_tokens(team.site, ben)]


def test_the_first_start_makes_one_administrator_and_later_ones_do_not(world):
    secret = ensure_admin(world.site)

    assert secret is not None
    assert access.is_admin(world.site, access.authenticate(world.site, secret))
    assert ensure_admin(world.site) is None


def test_a_first_start_that_dies_before_the_secret_is_kept_is_made_good_by_the_next(world):
    def die(_secret: str) -> None:
        raise OSError("no space left")

    kept: list[str] = []
    with pytest.raises(OSError, match="no space left"):
        ensure_admin(world.site, die)
    secret = ensure_admin(world.site, kept.append)

    assert [secret] == kept
    assert access.is_admin(world.site, access.authenticate(world.site, kept[0]))


# What belongs to one user


def test_credentials_are_never_shown_again(world):
    user = world.user("ann")
    credentials.set_credential(
        world.site, user, "registry", CredentialType.REGISTRY, {"auth": "hunter2"}
    )

    (shown,) = credentials.list_credentials(world.site, user)

    assert ("registry", ("auth",)) == (shown.name, shown.keys)
    everything = repr([shown, history.list_audit(world.site, world.admin)])
    assert "hunter2" not in everything
    assert [] == credentials.list_credentials(world.site, world.user("ben"))
    credentials.delete_credential(world.site, user, "registry")
    assert 404 == refusal(credentials.delete_credential, world.site, user, "registry")[0]


def test_a_default_pool_must_exist_and_follows_a_rename(team):
    user = team.user("ann", "osmo-team-user")
    assert 404 == refusal(profiles.set_profile, team.site, user, {"pool": "nope"})[0]
    profiles.set_profile(team.site, user, {"pool": "team"})

    pools.rename_pool(team.site, team.admin, "team", "crew")
    assert "crew" == profiles.get_profile(team.site, user).profile.pool
    pools.delete_pool(team.site, team.admin, "crew")

    assert profiles.get_profile(team.site, user).profile.pool is None


def test_people_may_only_do_what_is_theirs(team):
    user = team.user("ann", "osmo-team-user")
    site = team.site
    actions = [
        (pools.put_pools, {"x": {}}),
        (pools.patch_pool, "team", {}),
        (pools.rename_pool, "team", "x"),
        (pools.delete_pool, "team"),
        (users.create_user, "eve"),
        (users.list_users,),
        (users.put_role, Role("r")),
        (history.list_audit,),
        (history.list_revisions,),
        (history.rollback_pools, 1),
    ]

    refused = [refusal(action, site, user, *args) for action, *args in actions]

    assert [(403, "access denied")] * len(actions) == refused


def test_users_are_made_changed_and_removed(world):
    for name in "xy":
        world.pool(name, 0)
    users.create_user(world.site, world.admin, "ann@example.com", ("osmo-x-user",))
    assert 409 == refusal(users.create_user, world.site, world.admin, "ann@example.com")[0]
    for name in ("", "a b", "-a", "x" * 300):
        assert 400 == refusal(users.create_user, world.site, world.admin, name)[0]
    view = users.change_roles(
        world.site, world.admin, "ann@example.com", add=("osmo-y-user",), remove=("osmo-x-user",)
    )
    assert ["osmo-y-user"] == [each.role for each in view.roles]

    users.delete_user(world.site, world.admin, "ann@example.com")

    assert [] == users.list_users(world.site, world.admin)
    assert 401 == refusal(access.recognise, world.site, "ann@example.com")[0]


def test_errors_have_codes_and_statuses():
    def kinds(kind: type[BoughError]) -> list[type[BoughError]]:
        return [kind, *(each for child in kind.__subclasses__() for each in kinds(child))]

    # What declares none has the code of what it is a kind of.
    every = [each for each in kinds(BoughError) if "code" in vars(each)]
    assert len(every) == len({each.code for each in every})
    assert all(400 <= each.http_status < 600 for each in every)
