"""Scenarios 156 to 162, 166, 168, 169, 171 and 172: borrowing and reclaim, seen on processes."""

from __future__ import annotations

from typing import Any

from tests.e2e.local import Attempt, Local, gang, task

PREEMPTED = Attempt(0, "FAILED_PREEMPTED", 3006)


def usage(local: Local, pool: str) -> dict[str, Any]:
    node_sets = local.json("pool", "list")["node_sets"]
    (found,) = [row for each in node_sets for row in each["pools"] if row["name"] == pool]
    return found["resource_usage"]


def borrow(local: Local) -> tuple[str, str, str, str]:
    """4 GPUs of two pools; pool1 has borrowed one of pool2's."""
    local.cluster(4, pool1=2, pool2=2)
    first, second = local.run("pool1", 1, "NORMAL"), local.run("pool1", 1, "LOW")
    fourth = local.run("pool2", 1, "NORMAL")
    third = local.run("pool1", 1, "LOW")
    return first, second, third, fourth


def test_scenarios_156_157_161_and_172_what_is_borrowed_is_reclaimed_and_had_again(small: Local):
    first, second, third, fourth = borrow(small)
    assert ("2", "1", "3", "4") == tuple(
        usage(small, "pool1")[key]
        for key in ("quota_limit", "quota_used", "total_usage", "total_capacity")
    )
    assert ("1", "1") == tuple(usage(small, "pool2")[key] for key in ("quota_used", "total_usage"))
    assert "4 (shared)" in small.done("pool", "list", "--mode", "used")
    kept = small.mains(first, second, fourth)

    fifth = small.run("pool2", 1, "NORMAL")
    small.left_waiting(third)
    assert kept == small.mains(first, second, fourth)
    assert [] == small.processes(third)
    assert [PREEMPTED, Attempt(1, "SCHEDULING", None)] == small.attempts(third)
    events = small.done("workflow", "events", "--no-follow", second)
    assert "preempted" not in events
    assert "preempted" in small.done("workflow", "events", "--no-follow", third)

    small.finish(fifth)
    small.settle(RUNNING=[third])
    assert [f"{each}/1" for each in {one["task_uuid"] for one in tasks(small, third)}] == [
        each.attempt for each in small.mains(third)
    ]
    small.finish(third)
    assert Attempt(1, "COMPLETED", 0) == small.attempts(third)[-1]


def tasks(local: Local, name: str) -> list[dict[str, Any]]:
    return [each for group in local.workflow(name)["groups"] for each in group["tasks"]]


def test_scenario_158_normal_never_borrows(small: Local):
    small.cluster(4, pool1=2, pool2=2)
    for pool in ("pool1", "pool1", "pool2"):
        small.run(pool, 1, "NORMAL")
    waiting = small.submit("pool1", 1, "NORMAL")
    small.left_waiting(waiting)
    assert 3 == len(small.mains())


def test_scenarios_159_and_162_low_of_a_pool_within_its_quota_is_safe_from_others(small: Local):
    small.cluster(4, pool1=2, pool2=3)
    safe = [small.run("pool1", 1, "NORMAL"), small.run("pool1", 1, "LOW")]
    for _ in range(2):
        small.run("pool2", 1, "NORMAL")
    before = small.mains(*safe)
    inside_its_quota = small.submit("pool2", 1, "NORMAL")
    small.left_waiting(inside_its_quota)
    assert before == small.mains(*safe)
    over_its_quota = small.submit("pool2", 1, "NORMAL")
    small.left_waiting(inside_its_quota, over_its_quota)
    assert ["RUNNING", "RUNNING"] == small.statuses(*safe)


def test_scenario_160_borrowing_ends_at_the_maximum_and_at_the_nodes(small: Local):
    small.cluster(4, pool2=2)
    small.pool("pool1", 2, maximum=3)
    lows = [small.run("pool1", 1, "LOW") for _ in range(3)]
    beyond = small.submit("pool1", 1, "LOW")
    small.left_waiting(beyond)
    small.run("pool2", 1, "LOW")
    full = small.submit("pool2", 1, "LOW")
    small.left_waiting(beyond, full)
    assert ["RUNNING"] * 3 == small.statuses(*lows)
    assert 4 == len(small.mains())


def test_scenario_168_pools_reclaim_from_pools_and_subpools_from_their_siblings(small: Local):
    small.cluster(4, team=2, other=2)
    for name in ("a", "b"):
        small.done("pool", "subpool", "create", "team", name, "--quota", "1")
    lows = [small.run("team--a", 1, "LOW") for _ in range(4)]
    theirs = [small.run("other", 1, "HIGH") for _ in range(2)]
    small.left_waiting(*lows[2:])
    assert 2 == len(small.mains(*lows[:2]))
    sibling = small.run("team--b", 1, "HIGH")
    small.left_waiting(*lows[1:])
    assert 1 == len(small.mains(*lows))
    own = small.run("team--a", 1, "HIGH")
    small.left_waiting(*lows)
    assert ["RUNNING"] * 4 == small.statuses(*theirs, sibling, own)
    assert [] == small.processes(*lows)


def test_scenario_169_a_gang_has_all_its_processes_or_none(small: Local):
    small.cluster(4, p=4)
    one = small.run("p", 1, "LOW")
    names = [f"worker-{number}" for number in range(4)]
    low = small.send("p", "LOW", gang([task(name) for name in names]))
    small.left_waiting(low)
    assert [] == small.processes(low)
    small.finish(one)
    small.settle(RUNNING=[low])
    small.until(lambda: 4 == len(small.ready(low)))
    assert [0, 1, 2, 3] == sorted(gpu for each in small.mains(low) for gpu in each.gpus)

    normal = small.run("p", 1, "NORMAL")
    small.left_waiting(low)
    assert [] == small.processes(low)
    assert {name: [PREEMPTED, Attempt(1, "SCHEDULING", None)] for name in names} == small.tasks(low)
    small.finish(normal)
    small.settle(RUNNING=[low])
    small.until(lambda: 4 == len(small.ready(low)))
    assert {"1"} == {each.attempt.split("/")[1] for each in small.mains(low)}


def test_scenario_171_low_overtakes_what_waits_for_quota(small: Local):
    small.cluster(4, p=2, q=2)
    small.run("p", 2, "NORMAL")
    waiting = small.submit("p", 1, "NORMAL")
    low = small.run("p", 1, "LOW")
    small.left_waiting(waiting)
    assert 1 == len(small.mains(low))
