"""Fields of pools and settings as people send them: what is kept, merged, shown and refused."""

from __future__ import annotations

import pytest

from tests.api.house import House

POOL = "/api/configs/pool/team"
SETTINGS = "/api/configs/workflow"


def test_a_pool_that_was_shown_can_be_sent_back(house: House):
    exit_actions = {"RESCHEDULE": "3006"}
    timeout = {"default_exec_timeout": "8h", "default_exit_actions": exit_actions}
    house.pool("team", 4, description="ours", **timeout)
    before = house.get(POOL)
    own = {"description", "resources", *timeout}

    house.send("PUT", POOL, {"configs": {key: before[key] for key in own}})

    assert before == house.get(POOL)
    assert ("ours", "8h", exit_actions, -1) == (
        before["description"],
        before["default_exec_timeout"],
        before["default_exit_actions"],
        before["resources"]["gpu"]["maximum"],
    )


def test_a_merge_changes_only_what_is_sent(house: House):
    house.pool("team", 4, description="ours", default_exec_timeout="8h")

    changes = {"resources": {"gpu": {"guarantee": 5}}, "description": None}
    house.send("PATCH", POOL, {"configs_dict": changes})

    found = house.get(POOL)
    assert ("", "8h", {"guarantee": 5, "maximum": -1, "weight": 1}) == (
        found["description"],
        found["default_exec_timeout"],
        found["resources"]["gpu"],
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"colour": "red"}, "there is no field colour"),
        ({"name": "other"}, "rename it"),
        ({"resources": {"cpu": {}}}, "resources must be"),
        ({"resources": {"gpu": {"quota": 1}}}, "there is no field resources.gpu.quota"),
        ({"resources": {"gpu": {"guarantee": "x"}}}, "must be a number of GPUs"),
        ({"resources": {"gpu": {"guarantee": 5, "maximum": 4}}}, "below the guarantee"),
        ({"default_platform": "h100"}, "Default platform h100 not in platforms"),
        ({"platforms": {"a b": {}}}, "Platform name"),
        ({"platforms": []}, "platforms must be an object"),
        ({"platforms": {"a": 1}}, "Expected `object`"),
        ({"default_exec_timeout": "soon"}, "is not a duration"),
        ({"default_exit_actions": {"RETRY": "1"}}, "RETRY"),
        ({"enable_maintenance": "yes"}, "Expected `bool`"),
        ({"user_gpu_limit": "all"}, "user_gpu_limit must be"),
    ],
)
def test_what_is_wrong_with_a_pool_is_said_and_nothing_changes(team: House, changes, expected):
    before = team.get(POOL)

    status, message = team.refused("PUT", POOL, {"configs": changes})

    assert (400, True) == (status, expected in message), message
    assert before == team.get(POOL)


def test_settings_are_sent_and_shown_with_units_and_told_field_by_field(house: House):
    before = house.get(SETTINGS)
    assert ("15m", "60d") == (
        before["subpool_drain_check_interval"],
        before["default_exec_timeout"],
    )

    house.send("PATCH", SETTINGS, {"configs_dict": {"subpool_drain_check_interval": "90s"}})

    assert {**before, "subpool_drain_check_interval": "90s"} == house.get(SETTINGS)
    house.send("PATCH", SETTINGS, {"configs_dict": {"subpool_drain_check_interval": "2m"}})
    query = "config_type=WORKFLOW&first_revision=1&second_revision=2"
    (difference,) = house.get(f"/api/configs/diff?{query}")["differences"]
    assert ("workflow.subpool_drain_check_interval", "90s", "2m") == (
        difference["field"],
        difference["before"],
        difference["after"],
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"x": 1},
        {"subpool_drain_check_interval": "0s"},
        {"max_num_tasks": -1},
        {"subpool_drain_check_interval_s": 5},
        {"max_num_tasks": "many"},
    ],
)
def test_a_setting_that_cannot_be_is_refused(house: House, changes):
    before = house.get(SETTINGS)

    status, message = house.refused("PATCH", SETTINGS, {"configs_dict": changes})

    assert (400, True) == (status, message.startswith("Workflow configuration")), message
    assert before == house.get(SETTINGS)
