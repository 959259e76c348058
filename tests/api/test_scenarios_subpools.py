"""Scenarios 44 to 95 over HTTP: subpools from their creation to the archive."""

from __future__ import annotations

import pytest

from tests.api.house import SUBMIT, SUBPOOLS, spec


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


@pytest.mark.parametrize(("quota", "kept"), [(30.9, 30), (0, 0), (0.5, 0)])
def test_scenarios_053_055_and_056_a_quota_is_rounded_down(team, quota, kept):
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
    assert "ARCHIVED" == divided.get(f"{SUBPOOLS}/a")["subpool_state"]

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
    assert "ACTIVE" == divided.get(f"{SUBPOOLS}/b")["subpool_state"]
    assert {"_shared": 30, "a": 30, "b": 20, "c": 20} == divided.leaves()
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
    def resize(quota: int):
        changes = {"resources": {"gpu": {"guarantee": quota}}}
        body = {"configs_dict": changes}
        return divided.ask("PATCH", "/api/configs/pool/team", json=body)

    for quota, left in ((90, 0), (120, 30)):
        assert 200 == resize(quota).status_code
        assert left == divided.leaves()["_shared"]
        refused = resize(89)
        assert 400 == refused.status_code
        assert "90 GPUs are allocated to subpools" in refused.json()["message"]
        assert left == divided.leaves()["_shared"]


def test_scenarios_080_and_090_to_093_a_drain_from_running_to_archived(divided):
    name = divided.run(5, "team--a")

    deleted = divided.send("DELETE", f"{SUBPOOLS}/a")

    assert "DELETING" == deleted["subpool_state"]
    assert "RUNNING" == divided.status(name)
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
    # It is hidden from lists, and never deleted: nothing else deletes subpools.
    paths = divided.get("/api/openapi.json")["paths"]
    assert ["/api/configs/pool/{pool}/subpool/{subpool}"] == [
        path for path, methods in paths.items() if "subpool" in path and "delete" in methods
    ]
    assert 2 == len(divided.get(SUBPOOLS)["subpools"])
    assert 3 == len(divided.get(f"{SUBPOOLS}?include_archived=True")["subpools"])
    assert "COMPLETED" == divided.status(name)
    lived = divided.get(f"{SUBPOOLS}/a/history")["configs"]
    assert {"ACTIVE", "DELETING", "ARCHIVED"} == {each["data"]["state"] for each in lived}


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
