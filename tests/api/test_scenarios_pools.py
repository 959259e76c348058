"""Scenarios 109 to 180 over HTTP: lists, names, history, and a whole life."""

from __future__ import annotations

import threading

from tests.api.house import OLD_KEYS, SUBMIT, SUBPOOLS, spec


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
    assert set(rows["team"]) == set(rows["team--a"])
    assert set(rows["team"]) >= OLD_KEYS
    assert set(usage) == set(answer["resource_sum"])


def test_scenario_109_every_answer_is_of_one_moment(divided):
    answers = []
    stop = threading.Event()

    def change() -> None:
        for number in range(8):
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


def test_scenario_133_rights_on_a_workflow_in_a_subpool_follow_the_pool(divided):
    divided.pool("other", 0)
    divided.user("ann", "osmo-team-user")
    divided.user("ben", "osmo-other-user")
    name = divided.run(5, "team--a")

    path = f"/api/workflow/{name}"
    parts = ("", "/spec", "/events", "/logs", "/why")

    def codes(user: str) -> list[int]:
        return [divided.ask("GET", f"{path}{part}", user=user).status_code for part in parts]

    assert 403 == divided.ask("POST", f"{path}/cancel", user="ben").status_code
    assert [403] * len(parts) == codes("ben")
    assert "RUNNING" == divided.status(name)
    divided.send("POST", f"{path}/cancel", user="ann")
    divided.settle()
    # Streams of what has ended end by themselves.
    assert "FAILED_CANCELED" == divided.status(name)
    assert ([200] * len(parts), [403] * len(parts)) == (codes("ann"), codes("ben"))


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
    assert "ARCHIVED" == team.get(f"{SUBPOOLS}/a")["subpool_state"]
    team.create("team", "a", 25)

    team.run(25, "team--a")

    assert 400 == team.refused("POST", SUBMIT.format("team--a", "HIGH"), {"file": spec(26)})[0]
    lived = [each["data"] for each in team.get(f"{SUBPOOLS}/a/history")["configs"]]
    assert [
        ("ACTIVE", 30),
        ("ACTIVE", 10),
        ("DELETING", 10),
        ("ARCHIVED", 10),
        ("ACTIVE", 25),
    ] == [(each["state"], each["quota"]) for each in lived]


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
