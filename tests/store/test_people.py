"""Rights, tokens, credentials and users."""

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
from tests.store.usecases import (
    access,
    change_history,
    credentials,
    pools,
    profiles,
    submit,
    tokens,
    users,
)
from tests.store.world import job, refusal


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
        assert (403, "Only an administrator can grant and revoke rights.") == refused
    for action in (tokens.create_token, tokens.delete_token):
        assert 403 == refusal(action, site, eve, "x", user="chief")[0]
    assert ("helpdesk",) == tuple(each.role for each in users.get_user(site, admin, "eve").roles)
    assert 404 == refusal(users.get_user, site, admin, "mallory")[0]


def test_only_the_hash_of_a_token_is_kept_and_the_token_works(team):
    user = team.user("ann", "osmo-team-user")
    made = tokens.create_token(team.site, user, "laptop")

    actor = access.authenticate(team.site, made.secret, "10.0.0.1")

    assert ("ann", "laptop", "10.0.0.1") == (actor.name, actor.token, actor.origin)
    assert ("osmo-default", "osmo-team-user") == actor.roles
    assert made.secret not in repr(change_history.list_audit(team.site, team.admin))
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


def test_credentials_are_never_shown_again(world):
    user = world.user("ann")
    credentials.set_credential(
        world.site, user, "registry", CredentialType.REGISTRY, {"auth": "hunter2"}
    )

    (shown,) = credentials.list_credentials(world.site, user)

    assert ("registry", ("auth",)) == (shown.name, shown.keys)
    everything = repr([shown, change_history.list_audit(world.site, world.admin)])
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
        (change_history.list_audit,),
        (change_history.list_revisions,),
        (change_history.rollback_pools, 1),
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


def test_what_a_deleted_user_left_running_has_nothing_of_a_later_user_of_that_name(team):
    site, admin = team.site, team.admin
    ann = team.user("ann", "osmo-team-user")
    left = team.submit(1, actor=ann)
    users.delete_user(site, admin, "ann")

    message = "An earlier user ann was deleted, and has 1 workflows that are not finished."
    assert (409, message) == refusal(users.create_user, site, admin, "ann")

    team.cancel(left)
    team.settle()
    users.create_user(site, admin, "ann", ("osmo-team-user",))
    team.submit(1, actor=access.recognise(site, "ann"))
