"""The acceptance criteria of dynamic subpools, through the command, against a server."""

from __future__ import annotations

from tests.e2e.served import Served


def test_scenarios_016_111_and_115_an_undivided_pool_behaves_as_ever(team: Served):
    team.run("team", 50, "HIGH")
    assert {"--_shared": (50, 50)} == team.used()
    assert {"": 100, "--_shared": 100} == team.quotas()
    drawn = [
        "Pool            Status         Subpool State  GPU Quota  Used  Available",
        "--------------  -------------  -------------  ---------  ----  ---------",
        "team            ONLINE         -              100        50    50",
    ]
    assert drawn == team.done("pool", "list", "--pool", "team").splitlines()
    # So does one whose only subpool is archived.
    team.done("pool", "subpool", "create", "team", "a", "--quota", "30")
    team.done("pool", "subpool", "delete", "team", "a")
    assert drawn == team.done("pool", "list", "--pool", "team").splitlines()


def test_scenarios_110_and_115_a_divided_pool_is_drawn_as_the_design_prints_it(team: Served):
    team.run("team", 50, "HIGH")
    for name, quota in (("a", "30"), ("b", "40"), ("c", "20")):
        team.done("pool", "subpool", "create", "team", name, "--quota", quota)
    team.run("team--a", 5, "HIGH")
    team.run("team--b", 10, "HIGH")
    assert [
        "Pool            Status         Subpool State  GPU Quota        Used  Available",
        "--------------  -------------  -------------  ---------------  ----  ---------",
        "team            ONLINE         -              10 (Total: 100)  50    -40",
        "├─ team--a      ONLINE         ACTIVE         30               5     25",
        "├─ team--b      ONLINE         ACTIVE         40               10    30",
        "└─ team--c      ONLINE         ACTIVE         20               0     20",
    ] == team.done("pool", "list", "--pool", "team").splitlines()
    team.done("pool", "subpool", "update", "team", "c", "--quota", "30")
    row = team.done("pool", "list", "--pool", "team").splitlines()[2]
    assert "team            ONLINE         -              0 (Total: 100)  50    -50" == row


def test_scenario_001_the_shared_queue_has_the_whole_quota_of_an_undivided_pool(team: Served):
    queues = {each["name"]: each for each in team.json("queue", "list")}
    container = queues["osmo-pool-ns-team"]
    shared = queues["osmo-pool-ns-team--_shared"]
    assert ("osmo-default-ns", False, 100) == tuple(
        container[key] for key in ("parent", "leaf", "quota")
    )
    assert ("osmo-pool-ns-team", True, 100) == tuple(
        shared[key] for key in ("parent", "leaf", "quota")
    )


def test_scenario_002_a_new_subpool_takes_from_the_shared_queue(team: Served):
    text = team.done("pool", "subpool", "create", "team", "a", "--quota", "30")
    assert "Subpool team--a is created: ACTIVE, quota 30 GPUs.\n" == text
    assert {"": 100, "--_shared": 70, "--a": 30} == team.quotas()


def test_scenarios_003_and_023_what_subpools_are_guaranteed_is_safe_from_their_pool(
    divided: Served,
):
    assert {"": 100, "--_shared": 10, "--a": 30, "--b": 40, "--c": 20} == divided.quotas()
    arguments = ("--pool", "team", "--priority", "HIGH", divided.spec(15))
    refused = divided.osmo("workflow", "submit", *arguments)
    assert (1, "") == (refused.code, refused.output)
    assert (
        "Pool team has 10 GPUs guaranteed for NORMAL/HIGH priority workflows and group main-group "
        "requires 15 GPUs. Higher gpu counts must be submitted with LOW priority" in refused.errors
    )
    assert {(0, 0)} == set(divided.used().values())


def test_scenarios_025_and_167_low_priority_borrows_until_a_subpool_wants_what_is_its_own(
    divided: Served,
):
    divided.run("team--b", 40, "HIGH")
    divided.run("team--c", 20, "HIGH")
    borrower = divided.run("team", 15, "LOW")
    assert (15, 0) == divided.used()["--_shared"]
    divided.run("team--a", 30, "HIGH")
    divided.until(lambda: "PENDING" == divided.status(borrower))
    attempts = divided.json("workflow", "query", borrower, "--verbose")["groups"][0]["tasks"]
    assert [1, 0] == [each["retry_id"] for each in attempts]
    assert 3006 == attempts[1]["exit_code"]


def test_scenario_015_a_subpool_has_a_queue_of_its_own(team: Served):
    team.done("pool", "subpool", "create", "team", "a", "--quota", "30")
    team.run("team--a", 5, "NORMAL")
    assert {"--_shared": (0, 0), "--a": (5, 5)} == team.used()


def test_scenario_005_a_deleted_subpool_gives_its_quota_back(team: Served):
    team.done("pool", "subpool", "create", "team", "a", "--quota", "30")
    team.done("pool", "subpool", "create", "team", "b", "--quota", "40")
    text = team.done("pool", "subpool", "delete", "team", "a")
    assert "Subpool team--a is ARCHIVED.\n" == text
    assert {"": 100, "--_shared": 60, "--b": 40} == team.quotas()
    assert "ARCHIVED" == team.json("pool", "subpool", "show", "team", "a")["subpool_state"]


def test_scenarios_027_and_028_what_cannot_be_preempted_stays_within_the_quota(divided: Served):
    divided.run("team", 8, "HIGH")
    waiting = divided.submit("team", 5, "HIGH")
    divided.run("team", 5, "LOW")
    assert "PENDING" == divided.status(waiting)
    assert (13, 8) == divided.used()["--_shared"]
    groups = divided.json("workflow", "why", waiting)["groups"]
    assert ["main-group"] == [each["group"] for each in groups]


def test_scenario_004_a_new_quota_changes_what_is_shared(team: Served):
    team.done("pool", "subpool", "create", "team", "a", "--quota", "30")
    team.done("pool", "subpool", "create", "team", "b", "--quota", "40")
    assert 30 == team.quotas()["--_shared"]
    team.done("pool", "subpool", "update", "team", "b", "--quota", "50")
    assert {"": 100, "--_shared": 20, "--a": 30, "--b": 50} == team.quotas()
