"""Every route with every role. A route that is not in the table below, or declares nothing, fails.

The table names the least that a caller must be to come through: not known at all, one who is
known, a user of the pool `team`, its administrator, or an administrator of everything.
"""

from __future__ import annotations

import pytest

from bough.server.application import routes

NOBODY, KNOWN, USER, MANAGER, ADMIN = range(5)

LEAST = {
    NOBODY: """
        GET /api/auth/login
        POST /api/auth/jwt/access_token
        GET /api/openapi.json
        GET /api/version
        GET /health
    """,
    KNOWN: """
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
        GET /api/pool
        GET /api/pool_quota
        GET /api/profile/settings
        POST /api/profile/settings
        GET /api/resources
        GET /api/resources/{node}
        GET /api/tag
        GET /api/task
        GET /api/usage
        GET /api/workflow
    """,
    USER: """
        POST /api/pool/{pool}/workflow
        POST /api/pool/{pool}/workflow/{workflow}/restart
        GET /api/configs/pool/{pool}/subpool
        GET /api/configs/pool/{pool}/subpool/{subpool}
        GET /api/configs/pool/{pool}/subpool/{subpool}/history
        GET /api/workflow/{workflow}
        PATCH /api/workflow/{workflow}
        POST /api/workflow/{workflow}/cancel
        GET /api/workflow/{workflow}/error_logs
        GET /api/workflow/{workflow}/events
        GET /api/workflow/{workflow}/logs
        GET /api/workflow/{workflow}/spec
        POST /api/workflow/{workflow}/tag
        GET /api/workflow/{workflow}/why
    """,
    MANAGER: """
        POST /api/configs/pool/{pool}/subpool
        PATCH /api/configs/pool/{pool}/subpool/{subpool}
        DELETE /api/configs/pool/{pool}/subpool/{subpool}
    """,
    ADMIN: """
        GET /api/audit
        GET /api/auth/roles/{role}/users
        GET /api/auth/user
        POST /api/auth/user
        GET /api/auth/user/{user}
        PATCH /api/auth/user/{user}
        DELETE /api/auth/user/{user}
        POST /api/auth/user/{user}/roles
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
        POST /api/configs/pool
        PUT /api/configs/pool
        PUT /api/configs/pool/{pool}
        PATCH /api/configs/pool/{pool}
        DELETE /api/configs/pool/{pool}
        PUT /api/configs/pool/{pool}/rename
        GET /api/configs/role
        PUT /api/configs/role/{role}
        DELETE /api/configs/role/{role}
        PUT /api/configs/pool/{pool}/platform/{platform}
        PUT /api/configs/pool/{pool}/platform/{platform}/rename
        GET /api/configs/role/{role}
        GET /api/configs/service
        GET /api/configs/backend
        GET /api/configs/backend/{backend}
        GET /api/configs/pod_template
        GET /api/configs/group_template
        GET /api/configs/resource_validation
        GET /api/configs/backend_test
        GET /api/configs/workflow
        PUT /api/configs/workflow
        PATCH /api/configs/workflow
        POST /api/node/{node}/cordon
        POST /api/node/{node}/drain
        POST /api/node/{node}/uncordon
        GET /api/queues
        PATCH /api/resources/{node}
        GET /metrics
    """,
}
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
    # There are no roles for a subpool alone.
    "guest": (("osmo-team--a-user", "osmo-team--a-admin"), KNOWN),
    "member": (("osmo-team-user",), USER),
    "manager": (("osmo-team-admin",), MANAGER),
    "chief": (("osmo-admin",), ADMIN),
}
#: Whose scope is in the body: what to send so that it is about the pool.
BODIES = {
    ("PUT", "/api/configs/pool"): {"configs": {"team": {"backend": 5}}},
    ("POST", "/api/configs/pool"): {"name": "team", "configs": {}},
}


@pytest.fixture
def town(divided):
    divided.pool("other", 0)
    divided.pool("team-b", 0)
    for name, (roles, _) in PEOPLE.items():
        if name is not None:
            divided.user(name, *roles)
    divided.user("victim")
    divided.submit(1, "team--a")
    divided.engine.stopping.set()
    return divided


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


@pytest.mark.parametrize("name", PEOPLE, ids=str)
def test_a_role_opens_what_the_table_says_and_nothing_else(town, name):
    rank = PEOPLE[name][1]
    wrong: list[str] = []

    for (method, path), least in TABLE.items():
        status = _status(town, name, method, path)
        denied = status in (401, 403)
        if denied != (rank < least) or (denied and (status == 401) != (name is None)):
            wrong.append(f"{method} {path}: {status}")

    assert [] == wrong


def test_a_subpool_is_reached_through_its_pool_by_the_stored_edge(town):
    text = {"file": "workflow: {name: x, tasks: [{name: t}]}"}
    for pool, expected in (("team", 200), ("team--a", 200), ("other", 403), ("team-b", 403)):
        path = f"/api/pool/{pool}/workflow"
        assert expected == town.ask("POST", path, json=text, user="member").status_code

    town.create("team", "late", 1)

    path = "/api/pool/team--late/workflow"
    assert 200 == town.ask("POST", path, json=text, user="member").status_code


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


def _status(town, name, method, path):
    names = {
        "pool": "team",
        "subpool": "a",
        "workflow": "job-1",
        "cohort": "none",
        "node": "node-0",
        "platform": "none",
        "backend": "none",
        "user": "victim",
        "token": "other",
        "role": "none",
        "credential": "none",
    }
    # Of the wrong form, so that those who come through change nothing.
    body = BODIES.get((method, path), [])
    options = {} if method in ("GET", "DELETE") else {"json": body}
    return town.ask(method, path.format(**names), user=name, **options).status_code
