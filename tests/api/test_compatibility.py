"""What the public OSMO client was seen to need, call by call; docs/compatibility.md tells the rest.

Names of parameters and bodies are those that the client sends.
"""

from __future__ import annotations

import base64
import json
import socket
from datetime import UTC, datetime

import pytest

from tests.api.house import spec
from tests.api.served import Served

#: What it sends with every call, also where there is no body.
HEADERS = {"content-type": "application/json", "x-osmo-client-version": "6.4.0", "accept": "*/*"}


def asked(house, method, path, body=None, **options):
    """The answer to the client, which takes anything but 200 for worth a warning."""
    sent = {} if body is None else {"json": body}
    answer = house.ask(method, path, headers=HEADERS, **sent, **options)
    assert 200 == answer.status_code, answer.text
    return answer.json()


def test_a_login_by_token_gives_three_parts_with_an_expiry(house):
    body = {"token": house.secrets["admin"]}

    answer = asked(house, "POST", "/api/auth/jwt/access_token", body, user=None)

    head, claims, _ = answer["token"].split(".")
    read = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert ("admin", True) == (read["name"], read["exp"] * 1_000 > house.time.ms)
    assert {"alg", "typ"} == set(json.loads(base64.urlsafe_b64decode(head + "==")))


def test_an_unknown_user_is_told_so_with_a_body(house):
    answer = house.ask("GET", "/api/pool_quota?all_pools=True", user=None, headers=HEADERS)

    assert 401 == answer.status_code
    assert {"message", "error_code", "workflow_id"} <= set(answer.json())
    assert answer.json()["message"]


def test_booleans_are_spelled_as_python_does(divided):
    for value, count in (("True", 4), ("False", 1), ("true", 4), ("FALSE", 1)):
        query = f"all_pools={value}&pools=team--a"
        (rows,) = asked(divided, "GET", f"/api/pool_quota?{query}")["node_sets"]
        assert count == len(rows["pools"])


def test_the_pools_are_a_table_by_name_and_the_only_one_can_be_chosen(team):
    answer = asked(team, "GET", "/api/pool")

    assert {"team"} == set(answer["pools"])
    assert [{"pools": [{"name": "team"}]}] == answer["node_sets"]


def test_a_template_is_rendered_first_and_submitted_then(team):
    text = spec(1).replace("name: job", "name: {{ title }}") + "default-values: {title: x}\n"
    path = "/api/pool/team/workflow"
    body = {"file": text, "set_variables": ["title=rendered"], "set_string_variables": []}

    rendered = asked(team, "POST", f"{path}?dry_run=True", body)["spec"]
    final = {"file": rendered, "set_variables": [], "uploaded_templated_spec": text}
    name = asked(team, "POST", f"{path}?dry_run=False", final)["name"]

    assert "rendered-1" == name
    template = team.ask("GET", f"/api/workflow/{name}/spec?use_template=True").text
    assert ("{{ title }}" in template, "name: rendered" in rendered) == (True, True)


def test_a_refused_submission_is_told_apart_by_its_code(team):
    answer = team.ask("POST", "/api/pool/team/workflow", json={"file": spec(101)}, headers=HEADERS)

    assert (400, "USAGE") == (answer.status_code, answer.json()["error_code"])
    assert "job-1" == answer.json()["workflow_id"]


def test_a_cancel_that_fails_is_an_error_of_the_user(team):
    name = team.submit(1)
    asked(team, "POST", f"/api/workflow/{name}/cancel?force=False")

    again = team.ask("POST", f"/api/workflow/{name}/cancel?force=False", headers=HEADERS)

    assert (400, "USER", None) == (
        again.status_code,
        again.json()["error_code"],
        again.json()["workflow_id"],
    )


def test_tags_are_listed_when_none_are_given(team):
    name = team.submit(1)
    assert asked(team, "POST", f"/api/workflow/{name}/tag?add=x&add=y") is None

    assert {"tags": ["x", "y"]} == asked(team, "GET", "/api/tag")


def test_the_roles_of_a_token_say_who_gave_them_and_when(house):
    asked(house, "POST", "/api/auth/access_token/mine?expires_at=2099-01-01&roles=osmo-admin")

    (role,) = asked(house, "GET", "/api/auth/access_token/mine/roles")["roles"]

    assert {"role_name", "assigned_by", "assigned_at"} == set(role)
    assert ("osmo-admin", "admin") == (role["role_name"], role["assigned_by"])


def test_a_user_is_made_with_200(house):
    assert "ann" == asked(house, "POST", "/api/auth/user", {"id": "ann", "roles": []})["id"]


@pytest.mark.parametrize(
    ("body", "kind", "profile", "keys"),
    [
        ({"generic_credential": {"credential": {"k": "v"}}}, "GENERIC", None, "k"),
        (
            {"registry_credential": {"registry": "r.io", "username": "u", "auth": "s"}},
            "REGISTRY",
            "r.io",
            "auth, registry, username",
        ),
        (
            {"data_credential": {"endpoint": "s3://x", "access_key": "s", "region": None}},
            "DATA",
            "s3://x",
            "access_key, endpoint",
        ),
        ({"type": "generic", "payload": {"k": "v"}}, "GENERIC", None, "k"),
    ],
)
def test_a_credential_is_set_listed_and_deleted(house, body, kind, profile, keys):
    asked(house, "POST", "/api/credentials/mine", body)

    (line,) = asked(house, "GET", "/api/credentials")["credentials"]
    assert ("mine", kind, profile, keys) == tuple(
        line[key] for key in ("cred_name", "cred_type", "profile", "keys")
    )
    (deleted,) = asked(house, "DELETE", "/api/credentials/mine")["credentials"]
    assert (kind, profile) == (deleted["cred_type"], deleted["profile"])
    assert [] == asked(house, "GET", "/api/credentials")["credentials"]


def test_a_credential_of_two_kinds_or_of_none_is_refused(house):
    for body in ({}, {"type": "GENERIC"}, {"registry_credential": {}, "data_credential": {}}):
        status, message = house.refused("POST", "/api/credentials/mine", body)
        assert (400, True) == (status, message.startswith("Send one of generic_credential"))
    status, _ = house.refused("POST", "/api/credentials/m", {"type": "X", "payload": {"k": "v"}})
    assert 400 == status


def test_every_kind_of_configuration_is_answered(team):
    backends = asked(team, "GET", "/api/configs/backend")["backends"]
    assert [("default", True, 1, 100)] == [
        tuple(each[key] for key in ("name", "online", "nodes", "gpus")) for each in backends
    ]
    assert backends[0] == asked(team, "GET", "/api/configs/backend/default")
    assert (404, "Backend x not found.") == team.refused("GET", "/api/configs/backend/x")
    assert "ns" == asked(team, "GET", "/api/configs/service")["namespace"]
    for kind in ("pod_template", "group_template", "resource_validation", "backend_test"):
        assert {} == asked(team, "GET", f"/api/configs/{kind}")
    assert [] == asked(team, "GET", "/api/configs/role")


def test_pod_templates_are_kept_by_name_and_removed_unless_a_pool_names_them(team):
    path, template = "/api/configs/pod_template", {"spec": {"tolerations": [{"key": "gpu"}]}}
    put = {"configs": {"gpu": template, "rack": {"metadata": {"labels": {"a": "b"}}}}}
    assert put["configs"] == team.send("PUT", path, put)
    assert put["configs"] == asked(team, "GET", path)
    changes = {"configs_dict": {"common_pod_template": ["gpu"]}}
    team.send("PATCH", "/api/configs/pool/team", changes)

    assert (409, "Pod template gpu is used by pool team.") == team.refused(
        "PUT", path, {"configs": {"gpu": None}}
    )
    assert ["gpu"] == list(team.send("PUT", path, {"configs": {"rack": None}}))


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ([], "Pod template t: expected an object, not '[]'."),
        ({"kind": "Pod"}, "Pod template t: there is no field 'kind' here."),
        ({"spec": []}, "Pod template t.spec: expected an object, not '[]'."),
        (
            {"metadata": {"name": "x"}},
            "Pod template t.metadata: there is no field 'name' here.",
        ),
        ({"spec": {"nodeName": "x"}}, "Pod template t.spec.nodeName: is decided by Bough."),
    ],
)
def test_a_pod_template_that_is_none_is_refused_and_nothing_changes(team, template, message):
    path = "/api/configs/pod_template"

    assert (400, message) == team.refused("PUT", path, {"configs": {"t": template}})
    assert {} == asked(team, "GET", path)


def test_the_list_of_configurations_has_the_latest_of_each_kind_at_a_time(team):
    team.time.ms += 60_000
    before = _moment(team.time.ms - 1)
    team.send("PATCH", "/api/configs/pool/team", {"configs_dict": {"description": "x"}})
    team.send("PATCH", "/api/configs/workflow", {"configs_dict": {"max_num_tasks": 5}})
    kinds = "&".join(
        f"config_types={kind}"
        for kind in ("POOL", "WORKFLOW", "POD_TEMPLATE", "BACKEND_TEST", "SERVICE")
    )
    path = f"/api/configs/history?omit_data=True&{kinds}&at_timestamp="

    now = asked(team, "GET", path + _moment(team.time.ms))["configs"]
    then = asked(team, "GET", path + before)["configs"]

    assert [("POOL", 2), ("WORKFLOW", 1)] == [(e["config_type"], e["revision"]) for e in now]
    assert [("POOL", 1)] == [(each["config_type"], each["revision"]) for each in then]
    only = asked(team, "GET", "/api/configs/history?config_types=POD_TEMPLATE")
    assert [] == only["configs"]


def test_two_revisions_are_compared_by_their_data(team):
    team.send("PATCH", "/api/configs/pool/team", {"configs_dict": {"description": "x"}})

    query = "config_type=POOL&first_revision=1&second_revision=2"
    answer = asked(team, "GET", f"/api/configs/diff?{query}")

    assert ("", "x") == (
        answer["first_data"]["team"]["description"],
        answer["second_data"]["team"]["description"],
    )
    assert ["team.description"] == [each["field"] for each in answer["differences"]]


def test_workflow_settings_are_replaced_and_rolled_back(team):
    path = "/api/configs/workflow"
    body = {"configs": {"max_num_tasks": 7}, "description": "fewer"}
    assert 7 == asked(team, "PUT", path, body)["max_num_tasks"]
    changed = asked(team, "PUT", path, {"configs": {"subpool_drain_check_interval": "5m"}})
    assert (1000, "5m") == (changed["max_num_tasks"], changed["subpool_drain_check_interval"])

    back = {"config_type": "WORKFLOW", "revision": 1, "description": "back", "tags": ["t"]}
    assert asked(team, "POST", "/api/configs/history/rollback", back) is None

    now = asked(team, "GET", path)
    assert (7, "15m") == (now["max_num_tasks"], now["subpool_drain_check_interval"])
    latest = asked(team, "GET", "/api/configs/history?config_types=WORKFLOW")["configs"][0]
    assert ("back", ["t"]) == (latest["description"], latest["tags"])
    role = {"config_type": "ROLE", "revision": 1}
    assert 400 == team.refused("POST", "/api/configs/history/rollback", role)[0]


def test_a_role_is_written_as_the_client_sends_it(team):
    role = {
        "name": "watcher",
        "description": "reads",
        "policies": [{"effect": "Allow", "actions": ["workflow:*"], "resources": ["pool/team"]}],
        "immutable": False,
    }
    asked(team, "PUT", "/api/configs/role/watcher", {"configs": role, "description": "why"})

    assert "reads" == asked(team, "GET", "/api/configs/role/watcher")["description"]
    assert [role] == asked(team, "GET", "/api/configs/role")
    (change,) = asked(team, "GET", "/api/configs/history?config_types=ROLE")["configs"]
    assert "why" == change["description"]
    assert (404, "Role none not found.") == team.refused("GET", "/api/configs/role/none")
    for wrong in ({"configs": {"name": "other", "policies": []}}, {"configs": {}}):
        assert 400 == team.refused("PUT", "/api/configs/role/watcher", wrong)[0]


def test_platforms_of_a_pool_are_written_and_renamed(team):
    path = "/api/configs/pool/team/platform"
    first = {"description": "new", "allowed_mounts": ["/a"]}
    asked(team, "PUT", f"{path}/h100", {"configs": first})
    asked(team, "PUT", f"{path}/h100", {"configs": {"description": "newer"}})
    team.send("PATCH", "/api/configs/pool/team", {"configs_dict": {"default_platform": "h100"}})

    one = asked(team, "GET", f"{path}/h100")
    assert ("newer", []) == (one["description"], one["allowed_mounts"])
    assert asked(team, "PUT", f"{path}/h100/rename", {"new_name": "h200"}) is None
    assert ["h200"] == list(asked(team, "GET", path))
    assert "h200" == asked(team, "GET", "/api/configs/pool/team")["default_platform"]
    status, message = team.refused("PUT", f"{path}/none/rename", {"new_name": "x"})
    assert (404, "Platform none does not exist in pool team!") == (status, message)
    assert 409 == team.refused("PUT", f"{path}/h200/rename", {"new_name": "h200"})[0]


@pytest.mark.served
def test_a_stream_comes_in_chunks_and_ends_with_an_empty_one(tmp_path):
    with Served(tmp_path / "data", "--backend", "virtual", "--gpus", "8") as server:
        server.ask("POST", "/api/pool/default/workflow", json={"file": spec(1)})
        server.until(lambda: server.get("/api/workflow/job-1")["status"] == "RUNNING")
        host, port = server.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 30) as connection:
            # The path begins with two slashes, as the client builds it.
            head = (
                "GET //api/workflow/job-1/events HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                f"Authorization: Bearer {server.token}\r\nContent-Type: application/json\r\n\r\n"
            )
            connection.sendall(head.encode())
            text = _read_until(connection, b"Started: RUNNING\n")
            assert b"transfer-encoding: chunked" in text.lower()
            server.ask("POST", "/api/workflow/job-1/cancel?force=True")
            rest = _read_until(connection, b"\r\n0\r\n\r\n")
            assert b"FAILED_CANCELED" in rest


def _read_until(connection: socket.socket, end: bytes) -> bytes:
    text = b""
    while end not in text:
        block = connection.recv(4096)
        assert block, text
        text += block
    return text


def _moment(at_ms: int) -> str:
    """As OSMO's client writes a time."""
    at = datetime.fromtimestamp(at_ms / 1_000, UTC).replace(tzinfo=None)
    return at.isoformat(sep=" ", timespec="microseconds")


def test_an_overview_that_is_opened_without_an_interface_names_the_command_that_shows_it(team):
    name = team.submit(1)
    overview = team.get(f"/api/workflow/{name}")["overview"]
    path = overview[overview.index("/workflows/") :]
    opened, first = team.ask("GET", path, user=None), team.ask("GET", "/", user=None)
    assert (404, 404) == (opened.status_code, first.status_code)
    assert (
        f"This server has no web pages; `bough workflow query {name}` shows more in a terminal."
    ) == opened.json()["hint"]
    assert "`bough --help`" in first.json()["hint"]
    for path in ("/api/none", "/workflows/", "/workflows/x%60;%20rm%20-r", "/none"):
        assert "" == team.ask("GET", path).json()["hint"], path
