"""Existing clients and interfaces find the fields that they cannot do without, in their units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

#: By request: what its answer always has and is never null. `[]`: of each element, `{}`: of each
#: value. Read from the description of OSMO's own interface, version 6.4.0.
REQUIRED = {
    "GET /api/app": "more_entries apps[].uuid apps[].name apps[].description apps[].created_date "
    "apps[].owner apps[].latest_version",
    "GET /api/app/user/{app_name}": "uuid name description created_date owner versions[].version "
    "versions[].created_by versions[].created_date versions[].status",
    "GET /api/auth/access_token": "[].user_name [].token_name [].expires_at [].description",
    "GET /api/auth/access_token/{token}/roles": "user_name token_name roles[].role_name "
    "roles[].assigned_by roles[].assigned_at",
    "GET /api/auth/roles/{role}/users": "role_name users[].user_id users[].assigned_by",
    "GET /api/auth/user": "total_results start_index items_per_page users[].id",
    "GET /api/auth/user/{user}": "id roles[].role_name roles[].assigned_by roles[].assigned_at",
    "POST /api/auth/user/{user}/roles": "user_id role_name assigned_by assigned_at",
    "GET /api/configs/backend/{backend}": "name description version k8s_uid k8s_namespace "
    "dashboard_url grafana_url tests scheduler_settings node_conditions last_heartbeat "
    "created_date router_address online",
    "GET /api/configs/history": "configs[].config_type configs[].name configs[].revision "
    "configs[].username configs[].created_at configs[].description",
    "GET /api/configs/pool/{pool}": "backend topology_keys[].key topology_keys[].label",
    "GET /api/configs/role": "[].name [].description [].policies[].actions",
    "GET /api/credentials": "credentials[].cred_name credentials[].cred_type",
    "GET /api/pool": "pools{}.backend pools{}.topology_keys[].key pools{}.topology_keys[].label",
    "GET /api/pool_quota": "node_sets[].pools[].backend resource_sum.quota_used "
    "resource_sum.total_capacity node_sets[].pools[].resource_usage.quota_used "
    "node_sets[].pools[].resource_usage.quota_free node_sets[].pools[].resource_usage.quota_limit "
    "node_sets[].pools[].resource_usage.total_usage "
    "node_sets[].pools[].resource_usage.total_capacity "
    "node_sets[].pools[].resource_usage.total_free",
    "GET /api/profile/settings": "profile roles pools",
    "GET /api/resources": "resources[].hostname resources[].exposed_fields resources[].taints "
    "resources[].usage_fields resources[].non_workflow_usage_fields "
    "resources[].allocatable_fields resources[].backend resources[].pool_platform_labels "
    "resources[].resource_type",
    "GET /api/workflow": "more_entries workflows[].user workflows[].name "
    "workflows[].workflow_uuid workflows[].submit_time workflows[].queued_time "
    "workflows[].status workflows[].overview workflows[].logs workflows[].priority",
    "GET /api/workflow/{workflow}": "name uuid submitted_by spec template_spec logs events "
    "overview submit_time queued_time status plugins priority groups[].name groups[].status "
    "groups[].tasks[].name groups[].tasks[].retry_id groups[].tasks[].status "
    "groups[].tasks[].logs groups[].tasks[].events groups[].tasks[].pod_name "
    "groups[].tasks[].task_uuid",
    "GET /api/workflow/{workflow}/task/{task}": "workflow_id task_name status storage cpu memory "
    "gpu",
}


def values(found: Any, path: str) -> Iterator[Any]:
    """What there is at a path."""
    name, dot, rest = path.partition(".")
    bare = name.removesuffix("[]").removesuffix("{}")
    found = found[bare] if bare else found
    if name.endswith(("[]", "{}")):
        parts = found if name.endswith("[]") else found.values()
        for part in parts:
            yield from values(part, rest) if dot else (part,)
    elif dot:
        yield from values(found, rest)
    else:
        yield found


@pytest.mark.parametrize("request_line", REQUIRED)
def test_an_answer_has_what_others_require_of_it(visited, request_line):
    method, path = request_line.split()
    answers = [each for each in visited if (each.method, each.template) == (method, path)]

    assert answers
    for field in REQUIRED[request_line].split():
        found = [value for each in answers for value in values(each.response.json(), field)]
        assert found, f"nothing was asked that has {field}"
        assert None not in found, field


def test_the_events_of_a_task_are_where_its_document_says(team):
    name = team.run(1)
    (task,) = team.get(f"/api/workflow/{name}")["groups"][0]["tasks"]

    path = task["events"][task["events"].index("/api/") :]

    reasons = [
        line.split()[3] for line in team.ask("GET", f"{path}&follow=False").text.splitlines()
    ]
    assert ["Scheduled:", "Started:"] == reasons


def test_times_of_a_workflow_are_numbers_of_seconds(team):
    text = "workflow: {name: x, timeout: {exec_timeout: 2h}, tasks: [{name: t}]}"
    name = team.send("POST", "/api/pool/team/workflow", {"file": text})["name"]

    assert 7_200 == team.get(f"/api/workflow/{name}")["exec_timeout"]


def test_ten_thousand_tasks_can_be_asked_for(team):
    name = team.run(3)

    path = "/api/task?all_users=True&all_pools=True&summary=True&limit={}"

    (line,) = team.get(path.format(10_000))["summaries"]
    assert (3, "team") == (line["gpu"], line["pool"])
    assert 400 == team.refused("GET", path.format(10_001))[0]
    (task,) = team.get("/api/task?all_pools=True&limit=10000")["tasks"]
    assert name == task["workflow_id"]


def test_ten_thousand_workflows_can_be_asked_for(team):
    name = team.run(3)

    page = team.get("/api/workflow?all_pools=True&limit=10000")

    assert ([name], False) == ([each["name"] for each in page["workflows"]], page["more_entries"])
    assert 400 == team.refused("GET", "/api/workflow?all_pools=True&limit=10001")[0]


def test_users_are_listed_page_by_page(team):
    for name in ("ann", "ben", "cleo"):
        team.user(name)

    page = team.get("/api/auth/user?count=2&start_index=3")

    everyone = [each["id"] for each in team.get("/api/auth/user")["users"]]
    assert everyone[2:4] == [each["id"] for each in page["users"]]
    assert (len(everyone), 3, 2) == (
        page["total_results"],
        page["start_index"],
        page["items_per_page"],
    )
    assert 400 == team.refused("GET", "/api/auth/user?start_index=0")[0]
