"""Scenarios 7 to 40 over HTTP: queues and admission, by the answer and its sentence."""

from __future__ import annotations

import pytest

from tests.api.house import SUBMIT, SUBPOOLS, spec
from tests.store.world import big_node

RACKED = """
workflow:
  name: racked
  resources: {default: {gpu: 2, cpu: 1, memory: 1Gi, storage: 1Gi, topology: [{key: rack}]}}
  groups:
  - name: gang
    tasks: [{name: first, image: i, lead: true}, {name: second, image: i}]
"""


def test_scenario_007_the_shared_leaf_is_shown_nowhere_but_among_the_queues(divided):
    divided.user("ann", "osmo-team-user")
    name, waiting = divided.submit(8, user="ann"), divided.submit(5, user="ann")
    divided.settle()
    shown = {
        path: divided.ask("GET", path, user="ann").text
        for path in (
            "/api/pool?all_pools=True",
            "/api/pool_quota?all_pools=True",
            "/api/configs/pool",
            "/api/configs/pool?verbose=True",
            "/api/configs/pool/team",
            SUBPOOLS,
            f"{SUBPOOLS}?include_archived=True",
            f"{SUBPOOLS}/a",
            "/api/resources?all_pools=True",
            "/api/resources/node-0",
            "/api/profile/settings",
            "/api/workflow?all_pools=True",
            f"/api/workflow/{name}",
            f"/api/workflow/{waiting}/why",
            "/api/task?all_pools=True",
            "/api/node",
        )
    }

    assert dict.fromkeys(shown, True) == {path: "team" in text for path, text in shown.items()}
    assert [] == [path for path, text in shown.items() if "_shared" in text]
    assert "team" == divided.get(f"/api/workflow/{name}")["pool"]
    assert "_shared" in divided.ask("GET", "/api/queues").text


def test_scenario_014_work_of_a_subpool_keeps_together_by_the_topology_of_its_pool(house):
    racks = [
        big_node(2, f"node-{number}", labels={"z": "z-1", "r": f"r-{number // 2}"})
        for number in range(4)
    ]
    house.backend.offer(tuple(racks))
    house.pool("busy", 8)
    keys = [{"key": "zone", "label": "z"}, {"key": "rack", "label": "r"}]
    house.pool("team", 8, topology_keys=keys)
    house.create("team", "a", 6)
    house.settle()
    house.run(1, "busy")
    name = house.submit(4, "team--a", text=RACKED)
    house.settle()

    (group,) = house.get(f"/api/workflow/{name}")["groups"]
    assert "RUNNING" == house.status(name)
    # Two GPUs for each task: one rack still has four, and only together.
    assert {"node-2", "node-3"} == {task["node_name"] for task in group["tasks"]}
    second = house.submit(4, "team--a", text=RACKED)
    house.settle()
    assert "PENDING" == house.status(second)
    why = house.get(f"/api/workflow/{second}/why")["groups"][0]["message"]
    assert "osmo-pool" not in why


def test_scenarios_018_019_a_name_that_is_no_pool_is_not_found(divided):
    for name in ("team--_shared", "team--zzz", "nope"):
        assert (404, f"Pool {name} not found.") == divided.refused(
            "POST", SUBMIT.format(name, "LOW"), {"file": spec(1)}
        )
    assert [] == divided.get("/api/workflow?all_pools=True")["workflows"]


def test_scenario_020_a_pool_lists_its_own_workflows_alone(divided):
    divided.submit(1), divided.submit(1, "team--a")

    def pools(query: str) -> list[str]:
        return [each["pool"] for each in divided.get(f"/api/workflow?{query}")["workflows"]]

    assert ["team"] == pools("pools=team")
    assert ["team--a"] == pools("pools=team--a")


def test_scenarios_023_to_026_the_cap_is_the_same_for_normal_and_ends_at_the_quota(divided):
    for gpus, priority, expected in (
        (15, "HIGH", 400),
        (15, "NORMAL", 400),
        (11, "HIGH", 400),
        (10, "HIGH", 200),
        (15, "LOW", 200),
    ):
        answer = divided.ask("POST", SUBMIT.format("team", priority), json={"file": spec(gpus)})
        assert expected == answer.status_code
        if expected == 400:
            assert (
                "Pool team has 10 GPUs guaranteed for NORMAL/HIGH priority workflows and group "
                f"group-0 requires {gpus} GPUs."
            ) in answer.json()["message"]
    divided.settle()

    assert ["RUNNING", "RUNNING"] == [divided.status(name) for name in ("job-4", "job-5")]
    assert "osmo-pool-ns-team--_shared" == divided.queue_of("job-5")
    assert ("10", "10", "0") == divided.row()


@pytest.mark.parametrize("priority", ["HIGH", "NORMAL", "LOW"])
def test_scenarios_030_031_039_a_subpool_that_goes_takes_nothing_of_any_priority(divided, priority):
    name = divided.run(5, "team--a")
    path = SUBMIT.format("team--a", priority)
    divided.send("DELETE", f"{SUBPOOLS}/a")

    text = "Subpool team--a is {} and does not accept new workflows."
    body = {"file": spec(1)}
    assert (409, text.format("DELETING")) == divided.refused("POST", path, body)
    assert 409 == divided.refused("POST", f"{path}&validation_only=True", body)[0]
    dry = divided.send("POST", f"{path}&dry_run=True", body)
    assert "name: job" in dry["spec"]
    divided.finish(name)
    assert (409, text.format("ARCHIVED")) == divided.refused("POST", path, body)


def test_scenario_033_it_is_the_group_that_must_fit(divided):
    path = SUBMIT.format("team", "HIGH")

    serial = divided.ask("POST", path, json={"file": spec(8, groups=2)})
    gang = divided.ask("POST", path, json={"file": spec(16, tasks=2)})

    assert (200, 400) == (serial.status_code, gang.status_code)


def test_scenario_038_a_restart_is_a_new_submission(divided):
    name = divided.run(5, "team--a")
    keeper = divided.run(1, "team--a")
    divided.send("POST", f"/api/workflow/{name}/cancel")
    divided.settle()
    assert "FAILED_CANCELED" == divided.status(name)
    divided.send("DELETE", f"{SUBPOOLS}/a")

    refused = divided.refused("POST", f"/api/pool/team--a/workflow/{name}/restart")
    restarted = divided.send("POST", f"/api/pool/team/workflow/{name}/restart")

    assert (409, "Subpool team--a is DELETING and does not accept new workflows.") == refused
    assert "job-3" == restarted["name"]
    assert ("job", 1) == tuple(
        divided.get("/api/workflow/job-3")[key] for key in ("parent_name", "parent_job_id")
    )
    assert 400 == divided.refused("POST", f"/api/pool/team/workflow/{keeper}/restart")[0]


def test_scenario_040_under_maintenance_only_administrators_submit(divided):
    divided.user("ann", "osmo-team-user")
    divided.send("PATCH", "/api/configs/pool/team", {"configs_dict": {"enable_maintenance": True}})

    status, message = divided.refused(
        "POST", SUBMIT.format("team--a", "HIGH"), {"file": spec(1)}, user="ann"
    )

    assert (400, True) == (status, message.startswith("Pool team--a is undergoing maintenance."))
    assert "job-1" == divided.submit(1, "team--a")
    assert "MAINTENANCE" == divided.get("/api/configs/pool/team--a")["status"]
