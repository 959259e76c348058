"""Operations that existing clients and interfaces ask for beside the daily ones."""

from __future__ import annotations


def test_a_pod_template_is_written_read_and_removed_by_its_name(team):
    path, template = "/api/configs/pod_template/gpu", {"spec": {"tolerations": [{"key": "gpu"}]}}

    assert template == team.send("PUT", path, {"configs": template})
    assert template == team.get(path)
    team.send("DELETE", path, {"tags": ["old"]})
    assert (404, "Pod template gpu not found.") == team.refused("GET", path)
    assert (404, "Pod template gpu not found.") == team.refused("DELETE", path)


def test_pod_templates_can_be_rolled_back(team):
    path = "/api/configs/pod_template/{}"
    for name in ("one", "two"):
        team.send("PUT", path.format(name), {"configs": {"metadata": {"labels": {"a": name}}}})

    body = {"config_type": "POD_TEMPLATE", "revision": 1}
    team.send("POST", "/api/configs/history/rollback", body)

    assert ["one"] == list(team.get("/api/configs/pod_template"))


def test_a_task_is_shown_by_its_name(team):
    name = team.run(4)

    found = team.get(f"/api/workflow/{name}/task/task-0-0")

    assert (name, "task-0-0", "RUNNING", 4, "node-0") == (
        found["workflow_id"],
        found["task_name"],
        found["status"],
        found["gpu"],
        found["node"],
    )
    assert (404, f"Workflow {name} has no task x.") == team.refused(
        "GET", f"/api/workflow/{name}/task/x"
    )


def test_the_users_who_submitted_are_listed_once(team):
    team.user("ann", "osmo-team-user")
    team.user("ben", "osmo-team-user")
    assert [] == team.get("/api/users", "ben")
    for user in ("ann", "admin", "ann"):
        team.submit(1, user=user)

    assert ["admin", "ann"] == team.get("/api/users", "ben")


def test_a_role_is_given_to_several_users(team):
    for name in ("ann", "ben"):
        team.user(name)
    team.send("POST", "/api/auth/user/ben/roles", {"role_name": "osmo-team-user"})

    body = {"user_ids": ["ben", "ann", "cleo", "ann"]}
    given = team.send("POST", "/api/auth/roles/osmo-team-user/users", body)

    assert {
        "role_name": "osmo-team-user",
        "assigned": ["ann"],
        "already_assigned": ["ben"],
        "failed": ["cleo"],
    } == given
    roles = team.get("/api/auth/user/ann/roles")
    assert ("ann", ["osmo-team-user"]) == (
        roles["user_id"],
        [each["role_name"] for each in roles["roles"]],
    )


def test_only_those_who_may_give_rights_give_a_role_to_several(team):
    policy = {"effect": "Allow", "actions": ["user:*"], "resources": ["*"]}
    team.send("PUT", "/api/configs/role/helpdesk", {"policies": [policy]})
    team.user("ann", "helpdesk")

    status, _ = team.refused(
        "POST", "/api/auth/roles/osmo-admin/users", {"user_ids": ["ann"]}, user="ann"
    )

    assert 403 == status
    too_many = {"user_ids": [str(number) for number in range(1_001)]}
    assert (400, "user_ids: 1001 users; at most 1000 at a time are possible.") == team.refused(
        "POST", "/api/auth/roles/osmo-team-user/users", too_many
    )


def test_several_roles_are_written_or_none(team):
    good = {"name": "writers", "policies": [{"actions": ["pool:Read"], "resources": ["pool/team"]}]}
    bad = {"name": "others", "policies": [{"actions": ["everything"]}]}

    status, message = team.refused("PUT", "/api/configs/role", {"configs": [good, bad]})

    assert (400, "Role others: 'everything' is not an action like workflow:Create.") == (
        status,
        message,
    )
    assert [] == team.get("/api/configs/role")
    written = team.send("PUT", "/api/configs/role", {"configs": [good], "description": "first"})
    assert ["writers"] == [each["name"] for each in written]
    last = team.get("/api/configs/history?config_types=ROLE")["configs"][0]
    assert ("writers", "first") == (last["name"], last["description"])


def test_a_change_of_configuration_is_tagged_and_stays_as_it_is(team):
    path = "/api/configs/history/POOL/revision/1/tags"
    before = team.get("/api/configs/history?config_types=POOL&order=ASC")["configs"][0]

    team.send("POST", path, {"set_tags": ["good", "b"]})
    team.send("POST", path, {"set_tags": ["a"], "delete_tags": ["b"]})

    after = team.get("/api/configs/history?config_types=POOL&order=ASC")["configs"][0]
    assert {**before, "tags": ["a", "good"]} == after
    entry = team.get("/api/audit?subject=config/pool/1")["entries"][0]
    assert (["b", "good"], ["a", "good"]) == (entry["before"], entry["after"])
    missing = "/api/configs/history/POOL/revision/99/tags"
    assert (404, "POOL has no revision 99.") == team.refused("POST", missing, {"set_tags": ["x"]})
    assert 400 == team.refused("POST", path, {"set_tags": ["two\nlines"]})[0]


def test_a_change_is_taken_out_of_the_history_and_all_else_stays_as_it_is(house):
    house.pool("team", 10)
    house.pool("other", 5)
    house.send("PATCH", "/api/configs/pool/other", {"configs_dict": {"description": "new"}})
    pools = house.get("/api/configs/pool")
    first, third = (_pools_at(house, number) for number in (1, 3))

    house.send("DELETE", "/api/configs/history/POOL/revision/1")

    assert pools == house.get("/api/configs/pool")
    history = house.get("/api/configs/history?config_types=POOL")["configs"]
    assert [3, 2] == [each["revision"] for each in history]
    assert [] == house.get("/api/configs/history?config_types=POOL&revision=1")["configs"]
    # Pool team was last changed by what was removed, and later revisions still have it.
    assert third == _pools_at(house, 3)
    assert first["team"] == third["team"]
    for method, path, body in (
        ("GET", "/api/configs/diff?config_type=POOL&first_revision=1&second_revision=3", None),
        ("POST", "/api/configs/history/rollback", {"config_type": "POOL", "revision": 1}),
        ("POST", "/api/configs/history/POOL/revision/1/tags", {"set_tags": ["x"]}),
        ("DELETE", "/api/configs/history/POOL/revision/1", None),
    ):
        assert (404, "POOL has no revision 1.") == house.refused(method, path, body)
    entry = house.get("/api/audit?subject=config/pool/1")["entries"][0]
    assert ("team", None) == (entry["before"]["name"], entry["after"])


def test_the_latest_change_of_a_kind_stays_in_the_history(house):
    house.pool("team", 10)
    house.pool("other", 5)
    message = "Revision 2 of POOL cannot be removed: it is the latest."

    assert (409, message) == house.refused("DELETE", "/api/configs/history/POOL/revision/2")
    for none in (3, 0, 10**30):
        path = f"/api/configs/history/POOL/revision/{none}"
        assert 404 == house.refused("DELETE", path)[0]
        assert 404 == house.refused("POST", f"{path}/tags", {"set_tags": ["x"]})[0]
    rollback = {"config_type": "POOL", "revision": 10**30}
    assert 404 == house.refused("POST", "/api/configs/history/rollback", rollback)[0]
    assert 400 == house.refused("DELETE", "/api/configs/history/HAT/revision/1")[0]
    assert 2 == len(house.get("/api/configs/history?config_types=POOL")["configs"])


def _pools_at(house, revision):
    return house.get(
        f"/api/configs/diff?config_type=POOL&first_revision={revision}&second_revision={revision}"
    )["first_data"]


def test_a_client_can_ask_for_its_version_as_text(team):
    plain = team.ask("GET", "/client/version", user=None, headers={"accept": "text/plain"}).text
    parts = team.get("/client/version", None)

    assert plain == ".".join(parts[part] for part in ("major", "minor", "revision"))
