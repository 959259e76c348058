"""AC1 to AC8 of the design of dynamic subpools, over HTTP."""

from __future__ import annotations

from tests.api.house import spec


def test_scenario_016_a_pool_without_subpools_behaves_as_before(team):
    name = team.run(50)

    assert "osmo-pool-ns-team--_shared" == team.queue_of(name)
    assert ("100", "50", "50") == team.row()
    assert "team" == team.get(f"/api/workflow/{name}")["pool"]


def test_scenario_001_the_shared_queue_has_all_quota_while_there_are_no_subpools(team):
    queues = team.queues()

    assert {
        "osmo-default-ns",
        "osmo-pool-ns-team",
        "osmo-pool-ns-team--_shared",
    } == set(queues)
    assert 100 == queues["osmo-pool-ns-team"]["quota"]
    assert not queues["osmo-pool-ns-team"]["leaf"]
    assert {"_shared": 100} == team.leaves()


def test_scenario_002_a_new_subpool_takes_its_quota_from_the_shared_queue(team):
    made = team.ask("POST", "/api/configs/pool/team/subpool", json={"name": "a", "quota": 30})

    assert 201 == made.status_code
    body = made.json()
    assert ("team--a", "team", "a", "ACTIVE", 30) == (
        body["name"],
        body["parent_pool"],
        body["subpool_name"],
        body["subpool_state"],
        body["quota"],
    )
    assert {"_shared": 70, "a": 30} == team.leaves()


def test_scenarios_023_and_041_children_are_protected_from_what_is_submitted_to_their_parent(
    divided,
):
    answer = divided.ask("POST", "/api/pool/team/workflow?priority=HIGH", json={"file": spec(15)})

    assert 400 == answer.status_code
    body = answer.json()
    assert "USAGE" == body["error_code"]
    assert "job-1" == body["workflow_id"]
    assert (
        "Pool team has 10 GPUs guaranteed for NORMAL/HIGH priority workflows and group group-0 "
        "requires 15 GPUs. Higher gpu counts must be submitted with LOW priority"
    ) == body["message"]
    assert ("10", "0", "10") == divided.row()
    assert ("30", "0", "30") == divided.row("team--a")
    assert "FAILED_SUBMISSION" == divided.status("job-1")
    # Nor does one that is refused keep a subpool from being archived.
    divided.refused("POST", "/api/pool/team--a/workflow?priority=HIGH", {"file": spec(31)})
    assert "FAILED_SUBMISSION" == divided.status("job-2")
    deleted = divided.send("DELETE", "/api/configs/pool/team/subpool/a")
    assert "ARCHIVED" == deleted["subpool_state"]


def test_scenarios_025_and_167_low_goes_beyond_the_quota_and_gives_way(divided):
    low = divided.run(15, priority="LOW")
    divided.run(40, "team--b")
    divided.run(20, "team--c")

    divided.run(30, "team--a")

    assert "PENDING" == divided.status(low)
    attempts = divided.get(f"/api/workflow/{low}?verbose=True")["groups"][0]["tasks"]
    assert [(1, None), (0, 3006)] == [(each["retry_id"], each["exit_code"]) for each in attempts]


def test_scenario_015_what_is_submitted_to_a_subpool_goes_to_its_own_queue(divided):
    name = divided.run(5, "team--a")

    assert "osmo-pool-ns-team--a" == divided.queue_of(name)
    assert ("30", "5", "25") == divided.row("team--a")


def test_scenario_005_deleting_an_empty_subpool_returns_its_quota_at_once(team):
    team.create("team", "a", 30)
    team.create("team", "b", 40)

    deleted = team.send("DELETE", "/api/configs/pool/team/subpool/a")

    assert "ARCHIVED" == deleted["subpool_state"]
    assert {"_shared": 60, "b": 40} == team.leaves()


def test_scenarios_027_and_028_what_is_not_preemptible_waits_for_quota_and_low_does_not(divided):
    divided.run(8)

    high, low = divided.submit(5), divided.submit(5, priority="LOW")
    divided.settle()

    assert ("PENDING", "RUNNING") == (divided.status(high), divided.status(low))
    why = divided.get(f"/api/workflow/{high}/why")
    assert "left of the quota of pool team" in why["groups"][0]["message"]
    assert 3 == why["groups"][0]["certificate"]["missing"]["amount"]


def test_scenario_004_an_update_moves_quota_between_the_subpool_and_the_shared_queue(team):
    team.create("team", "a", 30)
    team.create("team", "b", 40)

    changed = team.send("PATCH", "/api/configs/pool/team/subpool/b", {"quota": 50})

    assert 50 == changed["quota"]
    assert {"_shared": 20, "a": 30, "b": 50} == team.leaves()
