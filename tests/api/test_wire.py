"""What an existing client needs: paths, bodies, times, streams, errors."""

from __future__ import annotations

import re
from datetime import datetime

import pytest

from tests.api.house import House, spec

DIFF = "/api/configs/diff"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\Z")


def test_repeated_slashes_are_one(team):
    assert 200 == team.ask("GET", "/api//pool_quota?all_pools=True").status_code


def test_the_version_is_in_parts(house):
    assert {"major": "0", "minor": "1", "revision": "0", "hash": ""} == house.get(
        "/api/version", user=None
    )


def test_an_empty_body_is_no_json(team):
    name = team.submit(1)
    headers = {"content-type": "application/json"}

    answer = team.ask("POST", f"/api/workflow/{name}/cancel?force=False", headers=headers)

    assert (200, {"name": name}) == (answer.status_code, answer.json())
    again = team.ask("POST", f"/api/pool/team/workflow?workflow_id={name}", headers=headers)
    assert (200, "job-2") == (again.status_code, again.json()["name"])


def test_an_answer_without_content_is_null(team):
    name = team.submit(1)

    answer = team.ask("POST", f"/api/workflow/{name}/tag?add=x&add=y&remove=x")

    assert (200, None) == (answer.status_code, answer.json())
    assert ["y"] == team.get(f"/api/workflow/{name}")["tags"]


def test_the_quota_of_pools_has_text_for_numbers_and_what_is_new_beside(divided):
    divided.run(5, "team--a")

    answer = divided.get("/api/pool_quota", params={"pools": ["team"], "all_pools": "False"})

    (node_set,) = answer["node_sets"]
    rows = {row["name"]: row for row in node_set["pools"]}
    assert ["team", "team--a", "team--b", "team--c"] == list(rows)
    assert {
        "quota_used": "0",
        "quota_free": "10",
        "quota_limit": "10",
        "total_usage": "0",
        "total_capacity": "100",
        "total_free": "95",
    } == rows["team"]["resource_usage"]
    assert ("100", None) == (rows["team"]["quota_total"], rows["team"]["parent_pool"])
    assert ("team", "a", "ACTIVE") == tuple(
        rows["team--a"][key] for key in ("parent_pool", "subpool_name", "subpool_state")
    )
    assert "100" == answer["resource_sum"]["quota_limit"]
    assert "100" == answer["resource_sum"]["total_capacity"]


def test_the_shared_leaf_is_shown_nowhere_but_among_the_queues(divided):
    name = divided.run(5)
    late = divided.submit(10)
    divided.settle()
    divided.send("POST", "/api/profile/settings", {"pool": "team"})

    for path in (
        "/api/pool",
        "/api/pool_quota?all_pools=True",
        "/api/configs/pool",
        "/api/configs/pool?verbose=True",
        "/api/configs/pool/team",
        "/api/configs/pool/team/subpool",
        "/api/resources?all_pools=True",
        "/api/profile/settings",
        "/api/workflow?all_pools=True",
        f"/api/workflow/{name}?verbose=True",
        f"/api/workflow/{late}",
        f"/api/workflow/{late}/why?remedies=True",
        f"/api/workflow/{late}/events?follow=False",
        "/api/task?all_pools=True",
    ):
        assert "_shared" not in divided.ask("GET", path).text, path
    assert "_shared" in divided.ask("GET", "/api/queues").text
    assert (
        404
        == divided.ask(
            "POST", "/api/pool/team--_shared/workflow", json={"file": spec(1)}
        ).status_code
    )


def test_why_is_told_in_the_names_of_pools_with_a_sentence_for_each_remedy(divided):
    divided.run(30, "team--a")
    name = divided.submit(30, "team--a")
    divided.settle()
    divided.user("member", "osmo-team-user")

    answer = divided.get(f"/api/workflow/{name}/why?remedies=True", user="member")

    (group,) = answer["groups"]
    assert group["message"].endswith("0 are left of the quota of pool team--a")
    assert ("team--a", "team--a") == (
        group["certificate"]["queue"],
        group["certificate"]["holders"][0]["queue"],
    )
    assert [
        "wait until job-1/group-0 ends",
        "run it as LOW (it may borrow, and be evicted)",
        "move it to pool team--b",
        (
            "raise the quota of subpool team--a from 30 to 60 and the quota of pool team from 100 "
            "to 120"
        ),
    ] == [each["sentence"] for each in group["remedies"]["found"]]
    assert "osmo-pool" not in divided.ask("GET", f"/api/workflow/{name}", user="member").text
    path = f"/api/workflow/{name}/why?queues=True"
    assert 403 == divided.ask("GET", path, user="member").status_code
    assert "queue osmo-pool-ns-team--a" in divided.get(path)["groups"][0]["message"]


def test_usage_is_in_hours_by_pool_or_by_user(divided):
    divided.user("member", "osmo-team-user")
    divided.time.ms += 3_600_000
    name = divided.run(4, "team--a")
    low = divided.submit(100, "team", "LOW", text=spec(90), user="member")
    divided.settle()
    assert "RUNNING" == divided.status(low)
    divided.time.ms += 2 * 3_600_000
    divided.finish(name)

    answer = divided.get("/api/usage?since=3h")
    assert "pool" == answer["by"]
    assert [
        {"name": "team", "gpu_hours": 180, "guaranteed": 0, "preemptible": 180, "borrowed": 160},
        {"name": "team--a", "gpu_hours": 8, "guaranteed": 8, "preemptible": 0, "borrowed": 0},
    ] == answer["rows"]
    assert (188, 160) == (answer["total"]["gpu_hours"], answer["total"]["borrowed"])
    users = divided.get("/api/usage?since=3h&by=user", user="member")["rows"]
    assert [("admin", 8), ("member", 180)] == [(each["name"], each["gpu_hours"]) for each in users]


def test_nodes_are_cordoned_and_let_in_again(team):
    team.run(5)
    (node,) = team.get("/api/node")["nodes"]
    assert ("READY", False, 1, 5, 100) == tuple(
        node[key] for key in ("status", "cordoned", "tasks", "used_gpu", "gpu")
    )
    path = f"/api/node/{node['name']}"

    assert "CORDONED" == team.send("POST", f"{path}/cordon")["status"]
    late = team.submit(1)
    team.settle()
    assert "PENDING" == team.status(late)
    assert "READY" == team.send("POST", f"{path}/uncordon")["status"]
    team.settle()
    assert "RUNNING" == team.status(late)
    assert (404, "Node none not found.") == team.refused("POST", "/api/node/none/cordon")


def test_a_workflow_in_the_list_and_alone(team):
    name = team.run(2)

    page = team.get("/api/workflow?order=DESC&limit=20&offset=0&all_pools=True&all_users=True")

    assert page["more_entries"] is False
    (line,) = page["workflows"]
    assert ("admin", name, "RUNNING", "HIGH", "team", {}) == tuple(
        line[key] for key in ("user", "name", "status", "priority", "pool", "labels")
    )
    assert TIME.match(line["submit_time"])
    document = team.get(f"/api/workflow/{name}?verbose=False")
    assert document == team.get(f"/api/workflow/{line['workflow_uuid']}")
    (group,) = document["groups"]
    (task,) = group["tasks"]
    assert ("task-0-0", "RUNNING", 0, "node-0") == tuple(
        task[key] for key in ("name", "status", "retry_id", "node_name")
    )
    assert TIME.match(task["start_time"])


def test_the_list_says_what_workflows_ask_for_and_what_they_wait_for(team):
    runs, waits = team.run(8), team.submit(98)
    team.settle()

    lines = team.get("/api/workflow?all_pools=True&all_users=True")["workflows"]

    assert {(runs, 8, None), (waits, 98, "quota")} == {
        (line["name"], line["gpus"], line["wait_reason"]) for line in lines
    }


def test_one_sees_ones_own_workflows_unless_others_are_asked_for(team):
    team.user("ann", "osmo-team-user")
    team.submit(1)
    mine = team.submit(1, user="ann")

    def names(query: str) -> list[str]:
        found = team.get(f"/api/workflow?all_pools=True{query}", user="ann")["workflows"]
        return [each["name"] for each in found]

    assert [mine] == names("")
    assert ["job-2", "job-1"] == names("&all_users=True")
    assert ["job-1"] == names("&users=admin")
    assert ["job-1", "job-2"] == names("&all_users=True&order=ASC")
    assert ["job-2"] == names("&all_users=True&limit=1")
    assert [] == names("&all_users=True&statuses=RUNNING&statuses=FAILED")
    assert [] == names("&all_users=True&priority=LOW")
    assert (400, "No pool selected!") == team.refused("GET", "/api/workflow")


def test_a_dry_run_answers_with_the_spec_and_a_validation_with_a_sentence(divided):
    path = "/api/pool/team/workflow"

    dry = divided.send("POST", f"{path}?dry_run=True&priority=HIGH", {"file": spec(50)})
    valid = divided.send("POST", f"{path}?validation_only=True", {"file": spec(5)})

    assert (spec(50), None) == (dry["spec"], dry["logs"])
    assert (None, "Workflow validation succeeded.") == (valid["spec"], valid["logs"])
    refused = divided.ask("POST", f"{path}?validation_only=True", json={"file": spec(50)})
    assert (400, "USAGE", None) == (
        refused.status_code,
        refused.json()["error_code"],
        refused.json()["workflow_id"],
    )
    assert [] == divided.get("/api/workflow?all_pools=True")["workflows"]


def test_labels_and_variables_come_with_the_submission(team):
    text = "workflow: {name: x, labels: {a: one}, tasks: [{name: t, environment: {K: v}}]}"
    path = "/api/pool/team/workflow?label=b=two&env_vars=E=f"

    name = team.send("POST", path, {"file": text})["name"]

    assert {"a": "one", "b": "two"} == team.get(f"/api/workflow/{name}")["labels"]
    assert (400, "label must be like key=value, not 'b'.") == team.refused(
        "POST", "/api/pool/team/workflow?label=b", {"file": text}
    )


def test_streams_are_plain_lines(team):
    name = team.run(1)

    events = team.ask("GET", f"/api/workflow/{name}/events?follow=False")
    text = team.ask("GET", f"/api/workflow/{name}/spec?use_template=False")

    assert events.headers["content-type"].startswith("text/plain")
    lines = events.text.splitlines()
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00 \[\S+\] Submitted: \S+$", lines[0])
    assert any("[task-0-0] Started: RUNNING on node-0" in line for line in lines)
    assert spec(1) == text.text
    assert (404, "Workflow none-1 not found.") == team.refused("GET", "/api/workflow/none-1/logs")


def test_scenario_124_nodes_of_a_subpool_and_what_is_used_of_them(divided):
    divided.run(5, "team--a")

    (node,) = divided.get("/api/resources?pools=team--a&all_pools=False")["resources"]

    assert (["team--a/default"], "RESERVED") == (
        node["exposed_fields"]["pool/platform"],
        node["resource_type"],
    )
    assert (100, 5) == (node["allocatable_fields"]["gpu"], node["usage_fields"]["gpu"])
    assert (f"{2**20}Ki", str(2**30)) == (
        node["usage_fields"]["memory"],
        node["usage_fields"]["storage"],
    )
    alone = divided.get("/api/resources/node-0")["resources"][0]
    assert {"team": ["default"]} == alone["pool_platform_labels"]
    cordoned = divided.send("PATCH", "/api/resources/node-0", {"cordoned": True})
    assert cordoned["resources"][0]["cordoned"]


def test_tasks_and_what_they_ask_for_together(divided):
    divided.run(5, "team--a")
    divided.time.pass_minutes(1)
    divided.submit(8, "team--b")

    answer = divided.get("/api/task?all_pools=True&all_users=True&limit=20&offset=0&order=ASC")

    assert [("job-1", "RUNNING", 5, 1.0), ("job-2", "SCHEDULING", 8, 1.0)] == [
        (each["workflow_id"], each["status"], each["gpu"], each["memory"])
        for each in answer["tasks"]
    ]
    assert {"tasks"} == set(answer)
    assert [] == divided.get("/api/task?all_pools=True&users=nobody&summary=True")["summaries"]
    sums = divided.get("/api/task?all_pools=True&summary=True")["summaries"]
    assert {("team--a", 5), ("team--b", 8)} == {(each["pool"], each["gpu"]) for each in sums}
    on_node = divided.get("/api/task?nodes=node-0")["tasks"]
    assert ["job-1"] == [each["workflow_id"] for each in on_node]


def test_users_tokens_and_profile(team):
    team.user("ann", "osmo-team-user")

    listed = team.get("/api/auth/user?count=1&id_prefix=a")
    assert (["admin"], 2) == ([each["id"] for each in listed["users"]], listed["total_results"])
    ann = team.get("/api/auth/user/ann")
    assert ["osmo-team-user"] == [each["role_name"] for each in ann["roles"]]
    (token,) = team.get("/api/auth/access_token", user="ann")
    assert TIME.match(token["created_at"])
    expires = datetime.fromisoformat(token["expires_at"])
    assert expires.isoformat() == token["expires_at"]
    profile = team.get("/api/profile/settings", user="ann")
    assert {"name": token["token_name"], "expires_at": token["expires_at"]} == profile["token"]
    assert ["team"] == profile["pools"]
    # OSMO's MCP server takes any other answer for one that says nothing certain.
    assert team.send("POST", "/api/profile/settings", {"pool": "team"}, user="ann") is None
    assert "team" == team.get("/api/profile/settings", user="ann")["profile"]["pool"]
    assert (404, "Pool none not found.") == team.refused(
        "POST", "/api/profile/settings", {"pool": "none"}, user="ann"
    )


def test_events_are_sent_as_they_happen_to_those_who_may_see_them(team):
    team.user("ann", "osmo-team-user")
    team.user("bob")
    team.submit(1)
    # A stream ends when the server does.
    team.engine.stopping.set()

    def kinds(user: str) -> list[str]:
        team.engine.stopping.clear()
        found: list[str] = []
        team.engine.stopping = _After(1)
        text = team.ask("GET", "/api/events?after=0", user=user).text
        found += re.findall(r"^event: (.+)$", text, re.MULTILINE)
        return found

    assert ["pool.changed", "workflow.submitted"] == kinds("ann")
    assert [] == kinds("bob")
    assert "node.changed" in kinds("admin")


def test_the_description_names_every_route(house):
    described = house.get("/api/openapi.json", user=None)

    assert described["openapi"].startswith("3.1")
    assert "/api/configs/pool/{pool}/subpool/{subpool}" in described["paths"]
    assert {"token": {"type": "http", "scheme": "bearer"}}.keys() == described["components"][
        "securitySchemes"
    ].keys()


def test_the_description_is_put_together_once(house, monkeypatch):
    first = house.ask("GET", "/api/openapi.json", user=None)
    monkeypatch.setattr(type(house.application.openapi_schema), "to_schema", None)

    second = house.ask("GET", "/api/openapi.json", user=None)

    assert (200, first.content) == (second.status_code, second.content)


def test_metrics_count_what_happens(divided):
    divided.run(15, priority="LOW")
    divided.run(40, "team--b")
    divided.run(20, "team--c")
    divided.run(30, "team--a")

    text = divided.ask("GET", "/metrics").text

    assert 'bough_workflows_waiting{pool="team",priority="LOW"} 1' in text
    assert 'bough_pool_quota_gpus{pool="team--a"} 30' in text
    assert re.search(r"^bough_evictions_total\{level=\".*\",rule=\".+\"\} 1$", text, re.MULTILINE)
    assert re.search(r"^bough_gangs_started_total 4$", text, re.MULTILINE)
    assert 'bough_subpools{state="ACTIVE"} 3' in text
    assert "bough_gpus_to_drain 0" in text


def test_health_says_whether_the_server_can_answer(house):
    house.settle()
    expected = {"status": "ok", "schedules": True, "offline": [], "reasons": []}
    assert expected == house.get("/health", user=None)
    house.engine.stopping.set()
    assert 503 == house.ask("GET", "/health", user=None).status_code


# What is wrong


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/nothing", None, 404),
        ("GET", "/", None, 404),
        ("POST", "/api/version", None, 405),
        ("GET", "/api/workflow?all_pools=True&limit=0", None, 400),
        ("GET", "/api/workflow?all_pools=True&limit=100000000000000000000000", None, 400),
        ("GET", "/api/workflow?all_pools=True&limit=ten", None, 400),
        ("GET", "/api/workflow?all_pools=maybe", None, 400),
        ("GET", "/api/workflow?all_pools=True&statuses=ASLEEP", None, 400),
        ("GET", "/api/workflow?all_pools=True&submitted_after=yesterday", None, 400),
        ("GET", "/api/workflow?all_pools=True&submitted_after=0001-01-01T00:00:00", None, 200),
        ("GET", "/api/workflow?all_pools=True&name=%00", None, 400),
        ("GET", "/api/workflow/%00", None, 400),
        ("POST", "/api/configs/pool/team/subpool", {"name": "a"}, 400),
        ("POST", "/api/configs/pool/team/subpool", {"name": "a", "quota": "x"}, 400),
        ("POST", "/api/configs/pool/team/subpool", {"name": "a", "quota": 1e300}, 400),
        ("POST", "/api/configs/pool/team/subpool", {"name": "a\0", "quota": 1}, 400),
        ("POST", "/api/configs/pool/team/subpool", [], 400),
        ("PATCH", "/api/configs/pool/team/subpool/a", {"quota": 1, "x": 2}, 404),
        ("POST", "/api/pool/team/workflow", {"file": "a: ["}, 400),
        ("POST", "/api/pool/team/workflow", {"file": ""}, 400),
        ("POST", "/api/pool/team/workflow", {"file": "workflow: {name: x}"}, 400),
        ("POST", "/api/pool/team/workflow", {"file": "{% for x in y %}"}, 400),
        ("POST", "/api/pool/team/workflow?priority=URGENT", {"file": "x"}, 400),
        ("PUT", "/api/configs/role/x", {"policies": [5]}, 400),
        ("PUT", "/api/configs/role/x", {"policies": [{"actions": ["x"]}]}, 400),
        ("POST", "/api/auth/user", {"id": "a b"}, 400),
        ("POST", "/api/auth/access_token/t?expires_at=2001-01-01", None, 400),
        ("POST", "/api/auth/access_token/t?expires_at=soon", None, 400),
        ("POST", "/api/configs/history/rollback", {"config_type": "POOL", "revision": 99}, 404),
        (
            "GET",
            f"{DIFF}?config_type=POOL&first_revision=1&second_revision=99",
            None,
            404,
        ),
        ("GET", f"{DIFF}?config_type=X&first_revision=1&second_revision=2", None, 400),
        ("GET", "/api/events?after=-1", None, 400),
        ("GET", "/api/usage?since=yesterday", None, 400),
        ("GET", "/api/usage?since=9999999999d", None, 400),
        ("GET", "/api/usage?since=2999-01-01", None, 400),
        ("GET", "/api/usage?by=planet", None, 400),
        ("GET", "/api/usage?since=12h&until=0001-01-01", None, 400),
        ("DELETE", "/api/configs/pool/none", None, 200),
        ("GET", "/api/resources?pools=none", None, 404),
        ("GET", "/api/pool_quota?pools=none", None, 404),
    ],
)
def test_bad_input_is_answered_by_a_status_and_a_sentence(team, method, path, body, status):
    options = {} if body is None else {"json": body}

    response = team.ask(method, path, **options)

    assert status == response.status_code, response.text
    if status >= 400:
        answer = response.json()
        assert "USER" == answer["error_code"]
        assert answer["message"]
        assert "Traceback" not in response.text


def test_what_is_no_json_is_refused(team):
    for content in (b"{", b"\xff", b'{"name": "\\ud800"}', b"nul"):
        response = team.ask("POST", "/api/configs/pool/team/subpool", content=content)
        assert 400 == response.status_code, response.text


def test_a_large_body_is_refused(sqlite_files):

    store = sqlite_files.open(sqlite_files.make())
    with House(store, maximum_body_bytes=1_000) as house:
        house.pool("team", 1)
        status, _ = house.refused("POST", "/api/pool/team/workflow", {"file": "x" * 2_000})
    store.close()
    assert 413 == status


class _After:
    """An event that is set after it was asked for so many times."""

    def __init__(self, times: int) -> None:
        self._left = times

    def is_set(self) -> bool:
        self._left -= 1
        return self._left < 0

    def set(self) -> None:
        self._left = 0

    def clear(self) -> None:
        self._left = 0
