"""Scenarios of subpools over HTTP: the status and the sentence that each is answered with."""

from __future__ import annotations

import pytest

from tests.api.house import spec

SUBPOOLS = "/api/configs/pool/team/subpool"
SUBMIT = "/api/pool/{}/workflow?priority={}"


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


def test_scenarios_024_026_the_cap_is_the_same_for_normal_and_ends_at_the_quota(divided):
    for gpus, priority, expected in (
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
    assert 200 == divided.ask("POST", f"{path}&dry_run=True", json=body).status_code
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


@pytest.mark.parametrize(
    ("name", "quota", "status"),
    [
        ("x--y", 1, 400),
        ("_shared", 1, 400),
        ("_foo", 1, 400),
        ("", 1, 400),
        ("-a", 1, 400),
        ("a-", 1, 400),
        ("1a", 1, 400),
        ("a b", 1, 400),
        ("a/b", 1, 400),
        ("a" * 300, 1, 400),
        ("A1", 1, 201),
        ("x_y", 1, 201),
        ("x-y", 1, 201),
        ("x.y", 1, 201),
        ("n", -1, 400),
        ("n", "abc", 400),
        ("n", None, 400),
        ("n", True, 400),
        ("n", 0, 201),
        ("n", 0.5, 201),
        ("n", 11, 409),
    ],
)
def test_scenarios_046_to_056_names_and_quotas_of_a_new_subpool(divided, name, quota, status):
    body = {"name": name, "quota": quota}

    assert status == divided.ask("POST", SUBPOOLS, json=body).status_code
    if status != 201:
        assert ["team--a", "team--b", "team--c"] == [
            each["name"] for each in divided.get(SUBPOOLS)["subpools"]
        ]


def test_scenarios_050_to_054_what_can_be_divided_and_how_it_is_rounded(team):
    team.pool("endless", -1)
    team.create("team", "a", 30.9)

    body = {"name": "b", "quota": 1}
    assert 400 == team.refused("POST", "/api/configs/pool/team--a/subpool", body)[0]
    assert (404, "Pool nope not found.") == team.refused(
        "POST", "/api/configs/pool/nope/subpool", body
    )
    status, message = team.refused("POST", "/api/configs/pool/endless/subpool", body)
    assert (400, True) == (status, "no GPU quota to partition" in message)
    assert {"_shared": 70, "a": 30} == team.leaves()


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
    divided.send(
        "PATCH", "/api/configs/pool/team", {"configs_dict": {"default_exec_timeout": "8h"}}
    )

    pool = divided.get("/api/configs/pool/team")
    subpool = divided.get("/api/configs/pool/team--a")

    differ = {"name", "resources", "parent_pool", "subpool_name", "subpool_state", "quota"}
    assert {key: pool[key] for key in pool if key not in differ} == {
        key: subpool[key] for key in subpool if key not in differ
    }
    assert "8h" == subpool["default_exec_timeout"]
    assert subpool == divided.get(f"{SUBPOOLS}/a")


def test_scenarios_067_to_075_only_the_quota_is_changed_and_only_while_active(divided):
    path = f"{SUBPOOLS}/b"
    for body in ({"description": "x"}, {"subpool_state": "ACTIVE"}, {"quota": 1, "x": 2}, {}):
        status, message = divided.refused("PATCH", path, body)
        assert (400, True) == (status, message.startswith("Only the quota"))
    assert (409, 200) == tuple(
        divided.ask("PATCH", path, json={"quota": quota}).status_code for quota in (51, 50.7)
    )
    assert 0 == divided.leaves()["_shared"]
    assert 404 == divided.refused("PATCH", f"{SUBPOOLS}/zzz", {"quota": 1})[0]
    divided.send("DELETE", f"{SUBPOOLS}/c")
    assert (409, "Subpool team--c is ARCHIVED and cannot be updated.") == divided.refused(
        "PATCH", f"{SUBPOOLS}/c", {"quota": 1}
    )


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


def test_scenarios_080_to_093_a_drain_from_running_to_archived(divided):
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


def test_scenario_083_the_interval_of_drain_checks_is_a_setting(divided):
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


def test_scenarios_117_and_118_some_pools_and_unknown_ones(divided):
    def names(*pools: str) -> list[str]:
        answer = divided.get("/api/pool_quota", params={"pools": pools})
        return [row["name"] for each in answer["node_sets"] for row in each["pools"]]

    assert ["team", "team--a", "team--b", "team--c"] == names("team")
    assert ["team--a"] == names("team--a")
    assert (404, "Pools x, y not found") == divided.refused(
        "GET", "/api/pool_quota?pools=x&pools=y"
    )


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
