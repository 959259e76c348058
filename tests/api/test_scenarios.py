"""Scenarios of subpools over HTTP: the status and the sentence that each is answered with."""

from __future__ import annotations

import threading

import pytest

from tests.api.house import spec
from tests.store.world import big_node

SUBPOOLS = "/api/configs/pool/team/subpool"
SUBMIT = "/api/pool/{}/workflow?priority={}"
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


def test_scenario_044_a_new_subpool_is_active_and_knows_its_pool(team):
    made = team.ask("POST", SUBPOOLS, json={"name": "a", "quota": 30})

    assert 201 == made.status_code
    assert ("team--a", "team", "a", "ACTIVE", 30) == tuple(
        made.json()[key]
        for key in ("name", "parent_pool", "subpool_name", "subpool_state", "quota")
    )


def test_scenarios_046_to_049_names_of_a_new_subpool(divided):
    before = divided.get(SUBPOOLS)
    for name in ("x--y", "_shared", "_foo", "", "-a", "a-", "1a", "a b", "a/b", "a" * 300):
        status, message = divided.refused("POST", SUBPOOLS, {"name": name, "quota": 1})
        assert (400, True) == (status, "is not valid!" in message), name
    assert before == divided.get(SUBPOOLS)
    assert 10 == divided.leaves()["_shared"]

    for name in ("A1", "x_y", "x-y", "x.y"):
        assert f"team--{name}" == divided.create("team", name, 1)["name"]
    assert 6 == divided.leaves()["_shared"]


def test_scenarios_050_to_052_what_can_be_divided(divided):
    divided.pool("endless", -1)
    body = {"name": "b", "quota": 1}

    assert (
        400,
        "Pool team--a is a subpool of team; a subpool cannot be divided again.",
    ) == divided.refused("POST", "/api/configs/pool/team--a/subpool", body)
    assert (404, "Pool nope not found.") == divided.refused(
        "POST", "/api/configs/pool/nope/subpool", body
    )
    status, message = divided.refused("POST", "/api/configs/pool/endless/subpool", body)
    assert (400, True) == (status, "no GPU quota to partition" in message)


@pytest.mark.parametrize(("quota", "kept"), [(30.9, 30), (100 / 3, 33), (0, 0), (0.5, 0)])
def test_scenarios_053_to_056_a_quota_is_rounded_down(team, quota, kept):
    assert kept == team.create("team", "a", quota)["quota"]
    assert {"_shared": 100 - kept, "a": kept} == team.leaves()


@pytest.mark.parametrize("quota", [{"quota": -1}, {"quota": "abc"}, {"quota": None}, {}])
def test_scenario_055_a_quota_that_is_none_is_refused(team, quota):
    assert 400 == team.refused("POST", SUBPOOLS, {"name": "a", **quota})[0]
    nan = team.ask(
        "POST",
        SUBPOOLS,
        content=b'{"name": "a", "quota": NaN}',
        headers={"content-type": "application/json"},
    )
    assert 400 == nan.status_code
    assert {"_shared": 100} == team.leaves()


def test_scenarios_057_to_060_a_name_is_used_again_only_once_it_is_archived(divided):
    name = divided.run(5, "team--a")
    body = {"name": "a", "quota": 10}
    assert (409, "Subpool team--a already exists (ACTIVE).") == divided.refused(
        "POST", SUBPOOLS, body
    )
    divided.send("DELETE", f"{SUBPOOLS}/a")
    assert (409, "Subpool team--a already exists (DELETING).") == divided.refused(
        "POST", SUBPOOLS, body
    )
    divided.finish(name)
    assert 409 == divided.refused("POST", SUBPOOLS, {"name": "a", "quota": 41})[0]

    again = divided.send("POST", SUBPOOLS, body)

    assert (10, "ACTIVE", True) == tuple(
        again[key] for key in ("quota", "subpool_state", "reactivated")
    )
    states = [each["data"]["state"] for each in divided.get(f"{SUBPOOLS}/a/history")["configs"]]
    assert ["ACTIVE", "DELETING", "ARCHIVED", "ACTIVE"] == states


def test_scenario_061_a_subpool_has_what_its_pool_has(divided):
    own = {"name", "parent_pool", "subpool_name", "subpool_state", "quota"}

    def shown(name: str) -> dict:
        document = divided.get(f"/api/configs/pool/{name}")
        document["resources"]["gpu"].pop("guarantee")
        return {key: value for key, value in document.items() if key not in own}

    assert shown("team") == shown("team--a")
    changes = {
        "default_exec_timeout": "8h",
        "platforms": {"h100": {"description": "new"}},
        "enable_maintenance": True,
        "resources": {"gpu": {"maximum": 120, "weight": 3}},
    }
    divided.send("PATCH", "/api/configs/pool/team", {"configs_dict": changes})

    found = shown("team--a")
    assert shown("team") == found
    assert ("8h", "MAINTENANCE", "new", {"maximum": 120, "weight": 3}) == (
        found["default_exec_timeout"],
        found["status"],
        found["platforms"]["h100"]["description"],
        found["resources"]["gpu"],
    )
    assert divided.get("/api/configs/pool/team--a") == divided.get(f"{SUBPOOLS}/a")


def test_scenario_067_only_the_quota_is_changed(divided):
    before = divided.get(f"{SUBPOOLS}/b")
    for body in (
        {"description": "x", "platforms": {}},
        {"subpool_state": "ACTIVE"},
        {"quota": 1, "x": 2},
        {},
    ):
        status, message = divided.refused("PATCH", f"{SUBPOOLS}/b", body)
        assert (400, True) == (status, message.startswith("Only the quota"))
    assert before == divided.get(f"{SUBPOOLS}/b")


def test_scenarios_066_068_and_073_to_075_a_quota_is_changed_within_its_pool(divided):
    path = f"{SUBPOOLS}/b"
    refused = "Subpool team--b requires 51 GPUs but pool team has only 50 unallocated GPUs."
    assert (409, refused) == divided.refused("PATCH", path, {"quota": 51})
    assert 40 == divided.leaves()["b"]

    assert 50 == divided.send("PATCH", path, {"quota": 50.7})["quota"]
    assert {"_shared": 0, "a": 30, "b": 50, "c": 20} == divided.leaves()
    before = divided.queues()
    assert 50 == divided.send("PATCH", path, {"quota": 50})["quota"]
    assert before == divided.queues()
    assert (404, "Subpool team--zzz not found.") == divided.refused(
        "PATCH", f"{SUBPOOLS}/zzz", {"quota": 1}
    )


def test_scenarios_071_and_072_only_an_active_subpool_is_changed(divided):
    name = divided.run(5, "team--a")
    divided.send("DELETE", f"{SUBPOOLS}/a")
    text = "Subpool team--a is {} and cannot be updated."
    assert (409, text.format("DELETING")) == divided.refused("PATCH", f"{SUBPOOLS}/a", {"quota": 1})
    divided.finish(name)
    assert (409, text.format("ARCHIVED")) == divided.refused("PATCH", f"{SUBPOOLS}/a", {"quota": 1})


def test_scenario_069_a_decrease_ends_nothing(divided):
    name = divided.run(35, "team--b")

    divided.send("PATCH", f"{SUBPOOLS}/b", {"quota": 20})
    divided.settle()

    assert "RUNNING" == divided.status(name)
    assert ("20", "35", "-15") == divided.row("team--b")
    assert "bough_gpus_to_drain 15" in divided.ask("GET", "/metrics").text


def test_scenario_076_a_subpool_is_not_changed_as_if_it_were_a_pool(divided):
    path = "/api/configs/pool/team--b"
    for method, where, body in (
        ("PUT", path, {"configs": {}}),
        ("PATCH", path, {"configs_dict": {"description": "x"}}),
        ("DELETE", path, None),
        ("PUT", f"{path}/rename", {"new_name": "x"}),
        ("PUT", "/api/configs/pool", {"configs": {"team--b": {}}}),
    ):
        status, message = divided.refused(method, where, body)
        assert (400, True) == (status, "/api/configs/pool/team/subpool/b" in message), where


def test_scenario_077_a_pool_keeps_what_its_subpools_were_given(divided):
    def shrink(quota: int) -> int:
        changes = {"resources": {"gpu": {"guarantee": quota}}}
        body = {"configs_dict": changes}
        return divided.ask("PATCH", "/api/configs/pool/team", json=body).status_code

    assert (200, 400, 200) == (shrink(90), shrink(89), shrink(120))
    assert 30 == divided.leaves()["_shared"]


def test_scenarios_080_083_and_090_to_093_a_drain_from_running_to_archived(divided):
    name = divided.run(5, "team--a")

    deleted = divided.send("DELETE", f"{SUBPOOLS}/a")

    assert "DELETING" == deleted["subpool_state"]
    assert ("0", "5", "-5") == divided.row("team--a")
    assert ("40", "0", "40") == divided.row("team")
    assert {"_shared": 40, "a": 0, "b": 40, "c": 20} == divided.leaves()
    assert (409, "Subpool team--a is DELETING and cannot be deleted.") == divided.refused(
        "DELETE", f"{SUBPOOLS}/a"
    )
    divided.finish(name)
    assert {"_shared": 40, "b": 40, "c": 20} == divided.leaves()
    assert "ARCHIVED" == divided.get(f"{SUBPOOLS}/a")["subpool_state"]
    assert (409, "Subpool team--a is ARCHIVED and cannot be deleted.") == divided.refused(
        "DELETE", f"{SUBPOOLS}/a"
    )
    assert 404 == divided.refused("DELETE", f"{SUBPOOLS}/zzz")[0]
    # It is hidden from lists, and kept for ever.
    assert 2 == len(divided.get(SUBPOOLS)["subpools"])
    assert 3 == len(divided.get(f"{SUBPOOLS}?include_archived=True")["subpools"])
    assert "COMPLETED" == divided.status(name)


def test_scenario_081_a_deleting_subpool_can_only_be_looked_at(divided):
    divided.run(5, "team--a")
    divided.send("DELETE", f"{SUBPOOLS}/a")
    before = divided.get(f"{SUBPOOLS}/a")

    assert "DELETING" == before["subpool_state"]
    for method, path, body in (
        ("POST", SUBMIT.format("team--a", "LOW"), {"file": spec(1)}),
        ("PATCH", f"{SUBPOOLS}/a", {"quota": 1}),
        ("DELETE", f"{SUBPOOLS}/a", None),
        ("POST", SUBPOOLS, {"name": "a", "quota": 1}),
    ):
        status, message = divided.refused(method, path, body)
        assert (409, True) == (status, "DELETING" in message), path
    assert before == divided.get(f"{SUBPOOLS}/a")


def test_the_interval_of_drain_checks_is_a_setting(divided):
    changed = divided.send(
        "PATCH",
        "/api/configs/workflow",
        {"configs_dict": {"subpool_drain_check_interval": "1m"}},
    )

    assert "1m" == changed["subpool_drain_check_interval"]
    assert "1m" == divided.get("/api/configs/workflow")["subpool_drain_check_interval"]
    body = {"configs_dict": {"subpool_drain_check_interval": "often"}}
    assert 400 == divided.refused("PATCH", "/api/configs/workflow", body)[0]


def test_scenarios_094_095_a_pool_with_subpools_stays_and_keeps_its_name(divided):
    status, message = divided.refused("DELETE", "/api/configs/pool/team")
    assert (409, True) == (status, "team--a (ACTIVE)" in message)
    assert 409 == divided.refused("PUT", "/api/configs/pool/team/rename", {"new_name": "x"})[0]
    for name in "abc":
        divided.send("DELETE", f"{SUBPOOLS}/{name}")
    assert 409 == divided.refused("DELETE", "/api/configs/pool/team")[0]


def test_scenario_117_some_pools_and_unknown_ones(divided):
    def names(*pools: str) -> list[str]:
        answer = divided.get("/api/pool_quota", params={"pools": pools})
        return [row["name"] for each in answer["node_sets"] for row in each["pools"]]

    assert ["team", "team--a", "team--b", "team--c"] == names("team")
    assert ["team--a"] == names("team--a")
    assert (404, "Pools x, y not found") == divided.refused(
        "GET", "/api/pool_quota?pools=x&pools=y"
    )


def test_scenarios_113_114_and_118_a_list_of_pools_for_programs_has_the_numbers_as_text(team):
    team.run(50)
    for name, quota in (("a", 30), ("b", 40), ("c", 20)):
        team.create("team", name, quota)
    team.run(15, "team--a")
    team.run(15, priority="LOW")

    answer = team.get("/api/pool_quota?all_pools=True")
    rows = {row["name"]: row for each in answer["node_sets"] for row in each["pools"]}

    usage = rows["team"]["resource_usage"]
    assert {
        "quota_limit": "10",
        "quota_used": "50",
        "quota_free": "-40",
        "total_usage": "65",
        "total_capacity": "100",
        "total_free": "20",
    } == usage
    assert (None, None, None, "100") == tuple(
        rows["team"][key] for key in ("parent_pool", "subpool_name", "subpool_state", "quota_total")
    )
    assert ("team", "a", "ACTIVE", None) == tuple(
        rows["team--a"][key]
        for key in ("parent_pool", "subpool_name", "subpool_state", "quota_total")
    )
    assert {"name", "description", "status", "resource_usage"} <= set(rows["team"])
    assert set(usage) == set(answer["resource_sum"])


def test_scenario_109_every_answer_is_of_one_moment(divided):
    answers = []
    stop = threading.Event()

    def change() -> None:
        for number in range(20):
            divided.send("PATCH", f"{SUBPOOLS}/a", {"quota": 10 + number})
            divided.submit(1, "team--b")
            divided.settle()
        stop.set()

    writer = threading.Thread(target=change)
    writer.start()
    while not stop.is_set():
        answers.append(divided.get("/api/pool_quota?all_pools=True"))
    writer.join()

    usages = [[row["resource_usage"] for row in each["node_sets"][0]["pools"]] for each in answers]
    numbers = [
        [
            tuple(int(row[key]) for key in ("quota_limit", "quota_used", "quota_free"))
            for row in rows
        ]
        for rows in usages
    ]
    assert [] == [row for rows in numbers for row in rows if row[2] != row[0] - row[1]]
    # What a subpool gives up its pool has, in the same answer.
    assert {100} == {sum(row[0] for row in rows) for rows in numbers}
    assert len({tuple(rows) for rows in numbers}) > 1


def test_scenario_125_the_delimiter_is_refused_and_a_bulk_change_is_all_or_nothing(team):
    body = {"configs": {"fine": {}, "a--b": {}}}
    status, message = team.refused("PUT", "/api/configs/pool", body)

    assert (400, True) == (status, message.startswith('Pool name "a--b" is not valid!'))
    assert ["team"] == list(team.get("/api/configs/pool")["pools"])
    assert 400 == team.refused("PUT", "/api/configs/pool/team/rename", {"new_name": "a--b"})[0]


def test_scenario_132_a_profile_lists_the_pools_that_one_reaches(divided):
    divided.user("ann", "osmo-team-user")
    divided.send("DELETE", f"{SUBPOOLS}/c")

    assert ["team", "team--a", "team--b"] == divided.get("/api/profile/settings", "ann")["pools"]


def test_scenario_140_a_rollback_leaves_subpools_alone(team):
    team.create("team", "a", 30)
    team.send("PATCH", "/api/configs/pool/team", {"configs_dict": {"description": "later"}})

    team.send("POST", "/api/configs/history/rollback", {"config_type": "POOL", "revision": 1})

    assert "" == team.get("/api/configs/pool/team")["description"]
    assert {"_shared": 70, "a": 30} == team.leaves()
    (first, *_) = team.get("/api/configs/history?config_types=POOL&omit_data=True")["configs"]
    assert ("POOL", 3, "admin", None) == tuple(
        first[key] for key in ("config_type", "revision", "username", "data")
    )


def test_a_revision_is_found_by_its_number_however_many_came_after_it(team):
    path = "/api/configs/pool/team"
    for number in range(25):
        team.send("PATCH", path, {"configs_dict": {"description": f"change {number}"}})
    team.create("team", "a", 30)

    def found(query: str) -> list[tuple[str, int, str]]:
        answer = team.get(f"/api/configs/history?omit_data=true&{query}")["configs"]
        return [(each["config_type"], each["revision"], each["name"]) for each in answer]

    assert [("SUBPOOL", 1, "team--a"), ("POOL", 1, "team")] == found("revision=1")
    assert [("POOL", 1, "team")] == found("revision=1&config_types=POOL")
    assert [("SUBPOOL", 1, "team--a")] == found("revision=1&name=team--a")
    assert [] == found("revision=99")


def test_scenario_180_a_subpool_has_its_full_life(team):
    team.create("team", "a", 30)
    name = team.run(20, "team--a")
    team.send("PATCH", f"{SUBPOOLS}/a", {"quota": 10})
    assert ("10", "20", "-10") == team.row("team--a")
    team.send("DELETE", f"{SUBPOOLS}/a")
    assert ("0", "20", "-20") == team.row("team--a")
    team.finish(name)
    team.create("team", "a", 25)

    team.run(25, "team--a")

    assert 400 == team.refused("POST", SUBMIT.format("team--a", "HIGH"), {"file": spec(26)})[0]
    assert 5 <= len(team.get(f"{SUBPOOLS}/a/history")["configs"])


def test_cohorts_are_planned_before_they_are_made(team):
    path = "/api/configs/cohort"
    body = {"name": "research", "quota": 5, "lending_limit": 2}

    planned = team.ask("POST", f"{path}?plan=true", json=body)

    assert (201, True) == (planned.status_code, planned.json()["planned"])
    assert [] == team.get(path)
    team.send("POST", path, body)
    team.send("PATCH", "/api/configs/pool/team", {"configs_dict": {"cohort": "research"}})
    assert "research" == team.queues()["osmo-pool-ns-team"]["parent"]
    moved = team.send("PATCH", f"{path}/research", {"parent": "research"})
    assert ["osmo-pool-ns-team", "research"] == sorted(
        each["name"] if isinstance(each, dict) else each[1]
        for each in moved["effects"]["tangled"]
        if "_shared" not in str(each)
    )
    team.send("PATCH", f"{path}/research", {"parent": None})
    assert 404 == team.refused("DELETE", f"{path}/none")[0]
    team.send("DELETE", f"{path}/research")
