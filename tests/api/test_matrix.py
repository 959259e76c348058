"""Every route with every role. A route that is not in the table below, or declares nothing, fails.

The table names the least that a caller must be to come through: not known at all, one who is
known, a user of the pool `team`, its administrator, or an administrator of everything.
"""

from __future__ import annotations

import pytest

from bough.server.application import routes
from bough.store import Store
from tests.api.house import House

NOBODY, KNOWN, USER, MANAGER, ADMIN = range(5)

LEAST = {
    NOBODY: """
        GET /api/auth/login
        POST /api/auth/jwt/access_token
        GET /api/openapi.json
        GET /api/router/version
        GET /api/server-key
        GET /api/version
        GET /client/version
        GET /health
    """,
    KNOWN: """
        GET /api/app
        GET /api/app/user/{app_name}
        GET /api/app/user/{app_name}/spec
        POST /api/app/user/{app_name}
        PATCH /api/app/user/{app_name}
        POST /api/app/user/{app_name}/rename
        DELETE /api/app/user/{app_name}
        GET /api/auth/access_token
        POST /api/auth/access_token/{token}
        DELETE /api/auth/access_token/{token}
        GET /api/auth/access_token/{token}/roles
        GET /api/configs/pool
        GET /api/configs/pool/{pool}
        GET /api/configs/pool/{pool}/platform
        GET /api/configs/pool/{pool}/platform/{platform}
        GET /api/credentials
        POST /api/credentials/{credential}
        DELETE /api/credentials/{credential}
        GET /api/events
        GET /api/node
        GET /api/plugins/configs
        GET /api/pool
        GET /api/pool_quota
        GET /api/profile/settings
        POST /api/profile/settings
        GET /api/resources
        GET /api/resources/{node}
        GET /api/tag
        GET /api/task
        GET /api/usage
        GET /api/users
        GET /api/array
        GET /api/workflow
    """,
    USER: """
        GET /api/pool/{pool}/data
        DELETE /api/pool/{pool}/data
        POST /api/pool/{pool}/data/contents
        POST /api/pool/{pool}/data/draft/{draft}
        POST /api/pool/{pool}/data/draft/{draft}/publish
        GET /api/pool/{pool}/data/part
        GET /api/pool/{pool}/data/usage
        POST /api/pool/{pool}/workflow
        POST /api/pool/{pool}/workflow/{workflow}/restart
        GET /api/configs/pool/{pool}/subpool
        GET /api/configs/pool/{pool}/subpool/{subpool}
        GET /api/configs/pool/{pool}/subpool/{subpool}/history
        GET /api/array/{workflow}
        GET /api/workflow/{workflow}
        PATCH /api/workflow/{workflow}
        POST /api/workflow/{workflow}/cancel
        GET /api/workflow/{workflow}/error_logs
        GET /api/workflow/{workflow}/events
        GET /api/workflow/{workflow}/logs
        GET /api/workflow/{workflow}/results
        GET /api/workflow/{workflow}/results/part
        GET /api/workflow/{workflow}/spec
        GET /api/workflow/{workflow}/task/{task}
        POST /api/workflow/{workflow}/tag
        GET /api/workflow/{workflow}/why
    """,
    MANAGER: """
        POST /api/configs/pool/{pool}/subpool
        PATCH /api/configs/pool/{pool}/subpool/{subpool}
        DELETE /api/configs/pool/{pool}/subpool/{subpool}
        POST /api/workflow/{workflow}/exec/group/{group}
        POST /api/workflow/{workflow}/exec/task/{task}
        POST /api/workflow/{workflow}/portforward/{task}
        POST /api/workflow/{workflow}/rsync/task/{task}
        GET /api/logger/workflow/{workflow}/osmo_ctrl/{task}/retry_id/{retry_id}
        GET /api/router/exec/{workflow}/client/{key}
        GET /api/router/portforward/{workflow}/client/{key}
        GET /api/router/rsync/{workflow}/client/{key}
    """,
    ADMIN: """
        GET /api/audit
        GET /api/kube/drift
        GET /api/auth/roles/{role}/users
        GET /api/auth/user
        POST /api/auth/user
        GET /api/auth/user/{user}
        PATCH /api/auth/user/{user}
        DELETE /api/auth/user/{user}
        GET /api/auth/user/{user}/roles
        POST /api/auth/user/{user}/roles
        POST /api/auth/roles/{role}/users
        DELETE /api/auth/user/{user}/roles/{role}
        GET /api/auth/user/{user}/access_token
        POST /api/auth/user/{user}/access_token/{token}
        DELETE /api/auth/user/{user}/access_token/{token}
        GET /api/auth/user/{user}/access_token/{token}/roles
        GET /api/configs/cohort
        POST /api/configs/cohort
        GET /api/configs/cohort/{cohort}
        PATCH /api/configs/cohort/{cohort}
        DELETE /api/configs/cohort/{cohort}
        GET /api/configs/diff
        GET /api/configs/policy
        PUT /api/configs/policy
        PATCH /api/configs/policy
        GET /api/configs/history
        POST /api/configs/history/rollback
        POST /api/configs/history/{config_type}/revision/{revision}/tags
        DELETE /api/configs/history/{config_type}/revision/{revision}
        POST /api/configs/pool
        PUT /api/configs/pool
        PUT /api/configs/pool/{pool}
        PATCH /api/configs/pool/{pool}
        DELETE /api/configs/pool/{pool}
        PUT /api/configs/pool/{pool}/rename
        GET /api/configs/role
        PUT /api/configs/role
        PUT /api/configs/role/{role}
        DELETE /api/configs/role/{role}
        PUT /api/configs/pool/{pool}/platform/{platform}
        PUT /api/configs/pool/{pool}/platform/{platform}/rename
        GET /api/configs/role/{role}
        GET /api/configs/service
        PUT /api/configs/service
        PATCH /api/configs/service
        GET /api/configs/backend
        GET /api/configs/backend/{backend}
        POST /api/configs/backend/{backend}
        DELETE /api/configs/backend/{backend}
        GET /api/configs/pod_template
        PUT /api/configs/pod_template
        GET /api/configs/pod_template/{pod_template}
        PUT /api/configs/pod_template/{pod_template}
        DELETE /api/configs/pod_template/{pod_template}
        GET /api/configs/group_template
        PUT /api/configs/group_template
        GET /api/configs/group_template/{group_template}
        PUT /api/configs/group_template/{group_template}
        DELETE /api/configs/group_template/{group_template}
        GET /api/configs/resource_validation
        PUT /api/configs/resource_validation
        GET /api/configs/resource_validation/{validation}
        PUT /api/configs/resource_validation/{validation}
        DELETE /api/configs/resource_validation/{validation}
        GET /api/configs/backend_test
        PUT /api/configs/backend_test
        GET /api/configs/backend_test/{backend_test}
        PUT /api/configs/backend_test/{backend_test}
        PATCH /api/configs/backend_test/{backend_test}
        DELETE /api/configs/backend_test/{backend_test}
        GET /api/configs/workflow
        PUT /api/configs/workflow
        PATCH /api/configs/workflow
        POST /api/node/{node}/cordon
        POST /api/node/{node}/declare_lost
        POST /api/node/{node}/drain
        POST /api/node/{node}/uncordon
        GET /api/kube/export/{system}
        GET /api/queues
        PATCH /api/resources/{node}
        GET /api/history
        POST /api/history/drop
        GET /metrics
    """,
}
#: What reaches into tasks, of which people have those that they submitted.
_REACHING = (
    "/api/workflow/{workflow}/exec",
    "/api/workflow/{workflow}/portforward",
    "/api/workflow/{workflow}/rsync",
    "/api/logger/workflow",
    "/api/router/exec",
    "/api/router/portforward",
    "/api/router/rsync",
)
TABLE = {
    tuple(line.split()): least
    for least, text in LEAST.items()
    for line in text.split("\n")
    if line.strip()
}
#: The caller: the roles, and what that is in the table above.
PEOPLE = {
    None: ((), NOBODY),
    "stranger": ((), KNOWN),
    # A name that only begins like the pool's, or a part of it, says nothing about the pool.
    "neighbour": (("osmo-team-b-admin", "osmo-other-user", "osmo-tea-admin"), KNOWN),
    # Roles of an earlier pool of that name, which was renamed, or deleted.
    "leaver": ((), KNOWN),
    "orphan": ((), KNOWN),
    # Roles that an older version stored: of a subpool alone, and of no pool that there was.
    "guest": ((), KNOWN),
    "ghost": ((), KNOWN),
    # The role was given and taken again.
    "former": ((), KNOWN),
    # The token was deleted, and another one of the same name made.
    "revoked": ((), NOBODY),
    "member": (("osmo-team-user",), USER),
    "manager": (("osmo-team-admin",), MANAGER),
    "chief": (("osmo-admin",), ADMIN),
}
#: Routes whose scope is in the body: what to send so that it concerns the pool.
BODIES = {
    ("PUT", "/api/configs/pool"): {"configs": {"team": {"backend": 5}}},
    ("POST", "/api/configs/pool"): {"name": "team", "configs": {}},
}


@pytest.fixture
def town(sqlite_files):
    """Pool `team` as in `divided`, after two other pools had the name; and all people."""
    address, secrets = sqlite_files.make_prepared("town", _prepare_town)
    with House(sqlite_files.open(address), secret=secrets["admin"]) as made:
        made.secrets.update(secrets)
        made.engine.stopping.set()
        yield made
    sqlite_files.give_back(address)


def _prepare_town(store: Store) -> dict[str, str]:
    with House(store) as house:
        for name in ("orphan", "leaver"):
            house.pool("team", 10)
            house.user(name, "osmo-team-admin", "osmo-team-user")
            if name == "orphan":
                house.send("DELETE", "/api/configs/pool/team")
        house.send("PUT", "/api/configs/pool/team/rename", {"new_name": "crew"})
        house.pool("team", 100)
        for name, quota in (("a", 30), ("b", 40), ("c", 20)):
            house.create("team", name, quota)
        for name in ("other", "team-b", "tea"):
            house.pool(name, 0)
        for name, (roles, _) in PEOPLE.items():
            if name is not None and name not in house.secrets:
                house.user(name, *roles)
        _store_role(house, "guest", "osmo-team--a-user", "osmo-team--a-admin")
        _store_role(house, "ghost", "osmo-team-user", "osmo-team-admin")
        _revoke(house)
        house.user("victim")
        house.submit(1, "team--a")
        return house.secrets


def _store_role(house, user, *roles):
    """Give a user and the token roles as an older version would have stored them."""
    with house.site.store.write() as connection:
        for role in roles:
            connection.exec_driver_sql(
                f"INSERT INTO user_roles VALUES ('{user}', '{role}', 'root', 0)"  # noqa: S608
            )
            connection.exec_driver_sql(
                f"INSERT INTO token_roles VALUES ('{user}', 'test', '{role}')"  # noqa: S608
            )


def _revoke(house):
    house.send("POST", "/api/auth/user/former/roles", {"role_name": "osmo-team-admin"})
    house.send("DELETE", "/api/auth/user/former/roles/osmo-team-admin")
    house.send("POST", "/api/auth/user/revoked/roles", {"role_name": "osmo-admin"})
    house.send("DELETE", "/api/auth/user/revoked/access_token/test")
    house.send("POST", "/api/auth/user/revoked/access_token/test")


def test_every_route_declares_what_it_needs_and_is_in_the_table(house):
    declared = {
        (method, path): permit
        for method, path, permit in routes(house.application)
        if method != "OPTIONS"
    }

    assert set(TABLE) == set(declared)
    assert [] == [route for route, permit in declared.items() if permit is None]


def test_a_route_that_declares_nothing_is_denied_to_administrators_too(house):
    assert (403, "access denied") == house.refused("OPTIONS", "/api/pool")


@pytest.mark.parametrize("pool", ["team", "team--a"])
def test_a_role_opens_what_the_table_says_and_nothing_else(town, pool):
    wrong: list[str] = []

    # Those who may do least come first, so that none changes what the next one finds.
    for name, (_, rank) in PEOPLE.items():
        for (method, path), least in TABLE.items():
            if pool != "team" and "{pool}" not in path:
                continue
            status = _status(town, name, method, path, pool)
            denied = status in (401, 403)
            # What is public is not denied, whatever is shown.
            if denied != (rank < least) or (denied and (status == 401) != (rank == NOBODY)):
                wrong.append(f"{name}: {method} {path}: {status}")

    assert [] == wrong


@pytest.mark.parametrize("pool", ["team", "team--a"])
def test_users_reach_into_their_own_tasks_and_admins_of_the_pool_into_all(town, pool):
    text = {"file": "workflow: {name: own, tasks: [{name: t}]}"}
    sent = town.ask("POST", f"/api/pool/{pool}/workflow", json=text, user="member")
    own = sent.json()["name"]
    town.user("colleague", "osmo-team-user")
    reaching = [route for route in TABLE if route[1].startswith(_REACHING)]

    for name, (_, rank) in {**PEOPLE, "colleague": ((), USER)}.items():
        allowed = name == "member" or rank >= MANAGER
        for method, path in reaching:
            status = _status(town, name, method, path, pool, workflow=own)
            assert allowed == (status not in (401, 403)), (name, method, path, status)


def test_a_subpool_is_reached_through_its_pool_by_the_stored_edge(town):
    text = {"file": "workflow: {name: x, tasks: [{name: t}]}"}
    for pool, expected in (("team", 200), ("team--a", 200), ("other", 403), ("team-b", 403)):
        path = f"/api/pool/{pool}/workflow"
        assert expected == town.ask("POST", path, json=text, user="member").status_code

    town.create("team", "late", 1)

    path = "/api/pool/team--late/workflow"
    assert 200 == town.ask("POST", path, json=text, user="member").status_code


def test_a_role_goes_with_its_pool_to_another_name(town):
    text = {"file": "workflow: {name: x, tasks: [{name: t}]}"}
    for user, expected in (("leaver", 200), ("orphan", 403), ("manager", 403), ("ghost", 403)):
        path = "/api/pool/crew/workflow"
        assert expected == town.ask("POST", path, json=text, user=user).status_code
    assert ["osmo-crew-admin", "osmo-crew-user"] == [
        each["role_name"] for each in town.get("/api/auth/user/leaver")["roles"]
    ]
    assert [] == town.get("/api/auth/user/orphan")["roles"]
    (holder,) = town.get("/api/auth/roles/osmo-crew-admin/users")["users"]
    assert "leaver" == holder["user_id"]


def test_what_does_not_exist_is_said_only_to_those_who_are_known(town):
    for path in ("/api/workflow/none-1", "/api/configs/pool/none"):
        assert 404 == town.ask("GET", path, user="stranger").status_code
        assert 401 == town.ask("GET", path, user=None).status_code


def test_the_metrics_can_be_given_to_a_role_that_was_written(town):
    policy = {"effect": "Allow", "actions": ["metrics:Read"], "resources": []}
    town.send("PUT", "/api/configs/role/watcher", {"policies": [policy]})
    town.user("prometheus", "watcher")

    assert 200 == town.ask("GET", "/metrics", user="prometheus").status_code
    assert 403 == town.ask("GET", "/api/queues", user="prometheus").status_code


def _status(town, name, method, path, pool, workflow="job-1"):
    names = {
        "pool": pool,
        "subpool": "a",
        "workflow": workflow,
        "group": "none",
        "key": "none",
        "cohort": "none",
        "node": "node-0",
        "platform": "none",
        "draft": "none-such",
        "backend": "none",
        "user": "victim",
        "token": "other",
        "role": "none",
        "credential": "none",
        "app_name": "none",
        "task": "none",
        "pod_template": "none",
        "group_template": "none",
        "backend_test": "none",
        "validation": "none",
        "config_type": "POOL",
        "system": "kueue",
        "revision": "999",
        "retry_id": "0",
    }
    # Of the wrong form, so that those who come through change nothing.
    body = BODIES.get((method, path), [])
    options = {} if method in ("GET", "DELETE") else {"json": body}
    return town.ask(method, path.format(**names), user=name, **options).status_code
