"""The guarantee of subpools as a law, served: what is promised to one is not given to another."""

from __future__ import annotations

import pytest

from tests.api.house import House, delete, resize, statuses


def test_waiting_work_of_a_deleted_subpool_has_what_the_shared_part_has_left(divided):
    first = divided.run(30, "team--a")
    waiting = [divided.submit(10, "team--a") for _ in range(8)]
    delete(divided, "a")
    divided.settle()
    inside = [divided.submit(40, "team--b"), divided.submit(20, "team--c")]
    divided.settle()

    assert ["RUNNING", "RUNNING"] == statuses(divided, *inside)
    assert 1 == statuses(divided, *waiting).count("RUNNING")
    divided.finish(first)
    assert ["RUNNING"] * 4 + ["PENDING"] * 4 == statuses(divided, *waiting)
    assert ("0", "40", "-40") == divided.row("team--a")


def test_the_shared_part_takes_nothing_from_subpools_while_another_one_drains(divided):
    running = divided.run(30, "team--a")
    delete(divided, "a")
    direct = divided.submit(40, "team")
    divided.settle()
    inside = divided.submit(40, "team--b")
    divided.settle()

    assert ["PENDING", "RUNNING"] == statuses(divided, direct, inside)
    assert ("40", "0", "40") == divided.row("team")
    divided.finish(running)
    assert "RUNNING" == divided.status(direct)


def test_the_shared_part_takes_nothing_from_subpools_after_a_soft_decrease(divided):
    running = divided.run(40, "team--b")
    resize(divided, "b", 10)
    direct = divided.submit(40, "team")
    divided.settle()
    inside = [divided.submit(20, "team--c"), divided.submit(30, "team--a")]
    divided.settle()

    assert ["PENDING", "RUNNING", "RUNNING"] == statuses(divided, direct, *inside)
    divided.finish(running)
    assert "RUNNING" == divided.status(direct)


def test_low_that_the_shared_part_could_have_only_in_name_gives_way_to_a_subpool(divided):
    """The shared part has 40 on paper, but 30 of them are what b uses above its new quota."""
    divided.run(40, "team--b")
    resize(divided, "b", 10)
    low = [divided.run(10, "team", "LOW") for _ in range(6)]
    inside = divided.submit(30, "team--a")
    divided.settle()

    assert "RUNNING" == divided.status(inside)
    assert 3 == statuses(divided, *low).count("RUNNING")


def test_a_subpool_takes_no_low_that_is_within_the_quota_of_its_sibling(divided):
    divided.pool("other", 0)
    for pool, gpus in (("team--a", 30), ("team--c", 20), ("team", 10)):
        divided.run(gpus, pool, "LOW")
    beyond = divided.run(40, "other", "LOW")
    inside = divided.submit(40, "team--b")
    divided.settle()

    assert ["RUNNING", "PENDING"] == statuses(divided, inside, beyond)
    assert [("30", "0"), ("20", "0")] == [divided.row(p)[:2] for p in ("team--a", "team--c")]


def test_what_waits_in_a_deleted_subpool_stands_in_one_line_with_the_shared_part(divided):
    divided.run(30, "team--a")
    divided.run(10, "team")
    earlier = divided.submit(10, "team--a", "NORMAL")
    divided.time.ms += 1_000
    later = divided.submit(10, "team", "NORMAL")
    divided.time.ms += 1_000
    urgent = divided.submit(10, "team", "HIGH")
    delete(divided, "a")
    divided.settle()

    assert ["PENDING"] * 3 == statuses(divided, earlier, later, urgent)
    started = []
    for _ in range(3):
        resize_pool(divided, 10)
        started.append([n for n in (earlier, later, urgent) if divided.status(n) == "RUNNING"])
    assert [[urgent], [earlier, urgent], [earlier, later, urgent]] == started


def resize_pool(house: House, more: int) -> None:
    """Give the pool some GPUs more, which go to its shared part."""
    before = house.get("/api/configs/pool/team")["resources"]["gpu"]["guarantee"]
    change = {"resources": {"gpu": {"guarantee": before + more}}}
    house.send("PATCH", "/api/configs/pool/team", {"configs_dict": change})
    house.settle()


def test_low_of_a_deleted_subpool_counts_in_the_shared_part_too(divided):
    running = divided.run(30, "team--a")
    low = divided.run(10, "team--a", "LOW")
    delete(divided, "a")
    divided.settle()

    queues = divided.queues()
    assert 40 == queues["osmo-pool-ns-team--_shared"]["used"]
    assert 30 == queues["osmo-pool-ns-team--_shared"]["used_guaranteed"]
    assert 0 == queues["osmo-pool-ns-team--a"]["used"]
    divided.finish(running)
    divided.finish(low)
    assert "ARCHIVED" == divided.get("/api/configs/pool/team/subpool/a")["subpool_state"]


@pytest.mark.parametrize("priority", ["HIGH", "NORMAL"])
def test_nothing_overtakes_the_head_of_its_own_line(divided, priority):
    divided.run(30, "team--b")
    large = divided.submit(20, "team--b", priority)
    divided.time.ms += 1_000
    small = divided.submit(10, "team--b", priority)
    divided.settle()

    assert ["PENDING", "PENDING"] == statuses(divided, large, small)


def can_start(house: House, pool: str) -> tuple[str, str]:
    rows = house.get("/api/pool_quota?all_pools=true")["node_sets"][0]["pools"]
    return next((e["can_start"], e["can_start_note"]) for e in rows if e["name"] == pool)


def test_a_pool_says_what_can_start_while_a_subpool_drains(divided):
    divided.run(30, "team--a")
    delete(divided, "a")
    divided.settle()

    assert ("40", "0", "40") == divided.row("team")
    assert ("10", "work of subpools that are being deleted counts here") == can_start(
        divided, "team"
    )
    assert ("40", "") == can_start(divided, "team--b")


def test_a_pool_says_what_can_start_after_a_soft_decrease(divided):
    divided.run(40, "team--b")
    resize(divided, "b", 10)

    assert ("40", "0", "40") == divided.row("team")
    assert ("10", "50 GPUs of pool team are kept for its subpools") == can_start(divided, "team")


def test_a_subpool_says_what_can_start_where_the_pool_was_in_use_before_it_was_divided(team):
    team.run(90, "team")
    team.create("team", "a", 30)

    assert ("30", "0", "30") == team.row("team--a")
    assert ("10", "pool team as a whole has no more") == can_start(team, "team--a")


def test_a_pool_without_a_quota_says_what_the_others_leave(team):
    team.pool("free", -1)

    assert ("100", "0", "100") == team.row("free")
    note = "it has no quota, but what the quotas of other pools leave"
    assert ("0", note) == can_start(team, "free")
    job = team.submit(1, "free")
    team.settle()
    assert "PENDING" == team.status(job)


def test_quotas_larger_than_the_machine_say_what_can_start(team):
    team.pool("more", 100)
    team.run(80, "team")

    assert ("100", "0", "100") == team.row("more")
    assert ("20", "the whole cluster has no more beside what other pools use") == can_start(
        team, "more"
    )


def why(house: House, name: str, **query: str) -> dict[str, object]:
    return house.get(f"/api/workflow/{name}/why", params=query)["groups"][0]


def test_why_says_what_is_kept_for_subpools_and_a_remedy_helps(divided):
    divided.run(40, "team--b")
    resize(divided, "b", 10)
    direct = divided.submit(40, "team")
    divided.settle()

    found = why(divided, direct, remedies="true")

    assert (
        "it needs 40 GPUs and 10 are left of the quota of pool team besides 50 GPUs kept for others"
    ) == found["message"]
    assert (50, 10, {"kind": "pool", "name": "team"}) == tuple(
        found["certificate"]["refusal"][key] for key in ("promised", "available", "node")
    )
    assert found["remedies"]["found"]


def test_why_says_what_work_of_a_deleted_subpool_takes(divided):
    running = divided.run(30, "team--a")
    delete(divided, "a")
    direct = divided.submit(40, "team")
    divided.settle()

    found = why(divided, direct)

    assert ("it needs 40 GPUs and 10 are left of the quota of pool team") == found["message"]
    holders = [each["workload"] for each in found["certificate"]["holders"]]
    assert [f"{running}/group-0"] == holders


def test_why_says_that_a_pool_without_a_quota_has_nothing_beside_pools_that_own_all(team):
    team.pool("free", -1)
    job = team.submit(1, "free")
    team.settle()

    assert (
        "it needs 1 GPU and 0 are left of the quota of pool free; it would not fit even if nothing "
        "ran"
    ) == why(team, job)["message"]


def test_a_task_without_a_gpu_does_not_wait_behind_one_that_waits_for_gpus(divided):
    divided.run(40, "team--b")
    waiting = divided.submit(10, "team--b")
    divided.time.ms += 1_000
    plain = divided.submit(0, "team--b")
    divided.settle()

    assert ["PENDING", "RUNNING"] == statuses(divided, waiting, plain)
