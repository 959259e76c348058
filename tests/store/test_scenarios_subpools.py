"""Scenarios 44 to 78: creating subpools and changing their quota."""

from __future__ import annotations

import msgspec

from bough.model.change_record import ConfigType, EventKind
from bough.model.subpool import SubpoolState
from bough.model.workflow import Priority, WorkflowStatus
from tests.store.usecases import Note, change_history, pools, show_pool, subpools
from tests.store.world import refusal


def test_scenario_044_a_new_subpool_is_active_and_knows_its_pool(team):
    change = subpools.create_subpool(team.site, team.admin, "team", "a", 30)

    shown = show_pool(change.view)
    assert ("team--a", "team", "a", "ACTIVE", 30) == (
        shown.name,
        shown.parent_pool,
        shown.subpool_name,
        shown.subpool_state,
        shown.quota,
    )
    assert not change.reactivated


def test_scenario_045_subpools_have_no_more_together_than_their_pool(team):
    team.create("a", 70)
    expected = "Subpool team--b requires 31 GPUs but pool team has only 30 unallocated GPUs."
    assert (409, expected) == refusal(team.create, "b", 31)

    team.create("b", 30)

    assert 0 == team.leaf_quotas()["_shared"]


def test_scenarios_046_to_049_names_that_are_refused(team):
    for name in ("x--y", "_shared", "_foo", "", "-a", "a-", "1a", "a b", "a/b"):
        status, message = refusal(team.create, name, 1)
        assert (400, True) == (status, f'"{name}" is not valid!' in message)

    assert {"_shared": 100} == team.leaf_quotas()


def test_scenario_049_a_very_long_name_is_refused_shortly(team):
    status, message = refusal(team.create, "a" * 300, 1)

    assert (400, True) == (status, len(message) < 250)


def test_scenario_049_names_that_are_taken(team):
    for name in ("a", "A1", "x_y", "x-y", "x.y"):
        assert name == team.create(name, 1).subpool


def test_scenario_050_a_subpool_cannot_be_divided(divided):
    status, message = refusal(divided.create, "b", 1, "team--a")

    expected = "Pool team--a is a subpool of team; a subpool cannot be divided again."
    assert (400, expected) == (status, message)


def test_scenario_051_an_unknown_pool_cannot_be_divided(team):
    assert (404, "Pool nope not found.") == refusal(team.create, "a", 1, "nope")


def test_scenario_052_a_pool_without_quota_cannot_be_divided(world):
    world.pool("team", -1)

    status, message = refusal(world.create, "a", 1)

    assert (400, True) == (status, "no GPU quota to partition" in message)


def test_scenarios_053_055_and_056_quotas_are_rounded_down(team):
    assert [30, 0, 0] == [
        team.create(name, quota).quota for name, quota in (("a", 30.9), ("b", 0), ("c", 0.5))
    ]
    assert {"_shared": 70, "a": 30, "b": 0, "c": 0} == team.leaf_quotas()


def test_scenario_054_the_rest_of_three_thirds_stays_in_the_pool(team):
    for name in "abc":
        team.create(name, 100 / 3)

    assert {"_shared": 1, "a": 33, "b": 33, "c": 33} == team.leaf_quotas()


def test_scenario_055_quotas_that_are_none(team):
    for quota in (-1, "abc", "30", float("nan"), float("inf"), None, True, [], 1e300):
        status, message = refusal(team.create, "a", quota)
        assert (400, True) == (status, "The quota of subpool team--a" in message)


def test_scenario_055_a_subpool_of_nothing_runs_low_only(team):
    team.create("a", 0)

    assert 400 == refusal(team.submit, 1, "team--a")[0]
    team.run(1, "team--a", Priority.LOW)
    assert (0, 0, 0) == team.numbers("team--a")


def test_scenarios_057_and_058_a_name_in_use_is_refused(divided):
    assert (409, "Subpool team--a already exists (ACTIVE).") == refusal(divided.create, "a", 1)
    divided.run(5, "team--a")
    divided.delete("a")
    assert (409, "Subpool team--a already exists (DELETING).") == refusal(divided.create, "a", 1)


def test_scenario_059_an_archived_name_comes_back_with_the_new_quota(divided):
    divided.delete("a")

    change = subpools.create_subpool(divided.site, divided.admin, "team", "a", 25)

    assert change.reactivated
    assert (SubpoolState.ACTIVE, 25) == (change.view.subpool.state, change.view.subpool.quota)
    lives = subpools.subpool_history(divided.site, divided.admin, "team", "a")
    assert [("ACTIVE", 30), ("ARCHIVED", 30), ("ACTIVE", 25)] == [
        (each.data["state"], each.data["quota"]) for each in lives
    ]


def test_scenario_060_it_stays_archived_if_there_is_no_room(divided):
    divided.delete("a")

    assert 409 == refusal(divided.create, "a", 41)[0]
    assert SubpoolState.ARCHIVED is divided.state("a")


def test_scenario_061_a_subpool_shows_its_pool_as_it_is_now(divided):
    own = {"name", "parent_pool", "subpool_name", "subpool_state", "quota"}

    def shown(name: str) -> dict:
        view = pools.get_pool(divided.site, divided.admin, name)
        document = msgspec.to_builtins(show_pool(view))
        gpu = document["resources"]["gpu"]
        document["resources"] = {key: gpu[key] for key in gpu if key != "guarantee"}
        return {key: value for key, value in document.items() if key not in own}

    assert shown("team") == shown("team--a")
    changes = {
        "default_exec_timeout": "8h",
        "platforms": {"h100": {"description": "new"}},
        "enable_maintenance": True,
    }
    pools.patch_pool(divided.site, divided.admin, "team", changes)
    found = shown("team--a")
    assert shown("team") == found
    assert ("8h", "MAINTENANCE", ["h100"]) == (
        found["default_exec_timeout"],
        found["status"],
        list(found["platforms"]),
    )


def test_scenario_062_creating_subpools_disturbs_nothing_that_runs(team):
    high = team.run(50)
    low = team.run(20, priority=Priority.LOW)
    before = [team.tasks(each) for each in (high, low)]

    team.split(a=30, b=40, c=20)
    team.settle()

    events = change_history.events_after(team.site, team.admin, 0)
    assert EventKind.PREEMPTED not in {each.kind for each in events}
    assert before == [team.tasks(each) for each in (high, low)]
    assert ["osmo-pool-ns-team--_shared"] * 2 == [team.queue_of(each) for each in (high, low)]


def test_scenario_063_a_new_subpool_is_one_entry_of_the_history(team):
    before = change_history.list_revisions(team.site, team.admin)
    subpools.create_subpool(team.site, team.admin, "team", "a", 30, note=Note("for vision"))

    entry, *rest = change_history.list_revisions(team.site, team.admin)
    assert before == rest
    assert (ConfigType.SUBPOOL, "team--a", "root", team.time.ms, "for vision") == (
        entry.config_type,
        entry.name,
        entry.username,
        entry.created_ms,
        entry.description,
    )


def test_scenario_064_a_queue_name_that_is_too_long_is_refused_before_anything(world):
    world.pool("team", 100)
    fits = 63 - len("osmo-pool-ns-team--")
    world.create("a" * fits, 1)

    before = world.queues()
    status, message = refusal(world.create, "a" * (fits + 1), 1)

    assert (400, True) == (status, "at most 63" in message)
    assert before == world.queues()


def test_scenarios_066_and_075_a_quota_is_changed_and_rounded_down(divided):
    assert 50 == divided.update("b", 50.7).quota
    assert 0 == divided.leaf_quotas()["_shared"]


def test_scenario_067_only_the_quota_can_be_changed(divided):
    for changes in (
        {"description": "x", "platforms": {}},
        {"subpool_state": "ACTIVE"},
        {"quota": 1, "name": "x"},
        {},
        None,
    ):
        status, message = refusal(
            subpools.update_subpool, divided.site, divided.admin, "team", "b", changes
        )
        assert (400, True) == (status, message.startswith("Only the quota of subpool team--b"))

    assert 40 == divided.leaf_quotas()["b"]


def test_scenario_068_an_increase_beyond_the_pool_is_refused(divided):
    expected = "Subpool team--b requires 51 GPUs but pool team has only 50 unallocated GPUs."
    assert (409, expected) == refusal(divided.update, "b", 51)

    divided.update("b", 50)

    assert 0 == divided.leaf_quotas()["_shared"]


def test_scenarios_069_and_070_a_decrease_is_soft(divided):
    first = divided.run(20, "team--b")
    second = divided.run(15, "team--b")

    divided.update("b", 20)
    divided.settle()

    assert [WorkflowStatus.RUNNING] * 2 == [divided.status(each) for each in (first, second)]
    assert (20, 35, -15) == divided.numbers("team--b")
    assert 30 == divided.leaf_quotas()["_shared"]
    third = divided.submit(5, "team--b")
    divided.settle()
    assert WorkflowStatus.PENDING is divided.status(third)
    divided.finish(first)
    assert WorkflowStatus.RUNNING is divided.status(third)
    assert (20, 20, 0) == divided.numbers("team--b")


def test_scenarios_071_and_072_only_an_active_subpool_is_changed(divided):
    last = divided.run(5, "team--a")
    divided.delete("a")
    expected = "Subpool team--a is DELETING and cannot be updated."
    assert (409, expected) == refusal(divided.update, "a", 1)
    divided.finish(last)
    expected = "Subpool team--a is ARCHIVED and cannot be updated."
    assert (409, expected) == refusal(divided.update, "a", 1)


def test_scenario_073_the_same_quota_again_changes_nothing(divided):
    def everything():
        return divided.queues(), change_history.list_revisions(divided.site, divided.admin)

    before = everything()

    assert 40 == divided.update("b", 40).quota
    assert before == everything()


def test_scenario_074_an_unknown_subpool_cannot_be_changed(divided):
    assert (404, "Subpool team--z not found.") == refusal(divided.update, "z", 1)


def test_scenario_076_the_general_interface_points_to_the_one_for_subpools(divided):
    site, admin = divided.site, divided.admin
    for action, *args in (
        (pools.put_pools, {"team--b": {}}),
        (pools.patch_pool, "team--b", {}),
        (pools.delete_pool, "team--b"),
        (pools.rename_pool, "team--b", "x"),
    ):
        status, message = refusal(action, site, admin, *args)
        assert (400, True) == (status, "/api/configs/pool/team/subpool/b" in message)


def test_scenario_077_a_pool_keeps_what_its_subpools_were_given(divided):
    def resize(guarantee: int):
        changes = {"resources": {"gpu": {"guarantee": guarantee}}}
        return pools.patch_pool(divided.site, divided.admin, "team", changes)

    resize(90)
    assert 0 == divided.leaf_quotas()["_shared"]
    status, message = refusal(resize, 89)
    assert (400, True) == (status, "90 GPUs are allocated to subpools" in message)
    assert 400 == refusal(resize, -1)[0]
    resize(120)
    assert 30 == divided.leaf_quotas()["_shared"]


def test_scenario_078_a_new_subpool_may_leave_less_than_is_used(team):
    team.run(50)

    change = subpools.create_subpool(team.site, team.admin, "team", "a", 60)

    assert (40, 50, -10) == team.numbers()
    assert () == change.effects.debts
