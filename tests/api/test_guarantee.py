"""The guarantee of subpools as a law, served: what is promised to one is not given to another."""

from __future__ import annotations

import pytest

from tests.api.house import House


def statuses(house: House, *names: str) -> list[str]:
    return [house.status(name) for name in names]


def delete(house: House, name: str, pool: str = "team", **options: object) -> dict[str, object]:
    return house.send("DELETE", f"/api/configs/pool/{pool}/subpool/{name}", **options)


def resize(house: House, name: str, quota: int, **options: object) -> dict[str, object]:
    return house.send(
        "PATCH", f"/api/configs/pool/team/subpool/{name}", {"quota": quota}, **options
    )


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


# What a division does to those that wait, before and after it is made


def full(divided: House) -> tuple[str, str]:
    """Everything in use, 30 waiting in a, and a deleted: what runs in a, and what waits."""
    for pool, gpus in (("team--b", 40), ("team--c", 20), ("team", 10)):
        divided.run(gpus, pool)
    running = divided.run(30, "team--a")
    waiting = divided.submit(30, "team--a")
    divided.settle()
    delete(divided, "a")
    divided.settle()
    return running, waiting


def named(answer: dict[str, object], key: str) -> list[tuple[str, str]]:
    return [(each["workflow_id"], each["message"]) for each in answer[key]]


def drain_of(house: House, name: str) -> dict[str, object] | None:
    rows = house.get("/api/pool_quota?pools=team")["node_sets"][0]["pools"]
    return next(each["drain"] for each in rows if each["name"] == name)


def test_a_create_names_whom_it_strands_and_the_waiting_work_can_be_moved(divided):
    running, waiting = full(divided)
    body = {"name": "d", "quota": 40}
    path = "/api/configs/pool/team/subpool"
    stranded = [(waiting, "cannot start: team has a quota of 0 GPUs")]

    planned = divided.send("POST", f"{path}?plan=true", body)
    assert (stranded, True) == (named(planned, "stranded"), planned["planned"])
    assert "team--d" not in {each["name"] for each in divided.get(path)["subpools"]}

    made = divided.send("POST", path, body)
    assert (stranded, False) == (named(made, "stranded"), made["planned"])
    divided.finish(running)

    drain = drain_of(divided, "team--a")
    assert (1, 1) == (drain["workflow_count"], drain["stranded_count"])
    assert drain == divided.get(f"{path}/a")["drain"]
    assert (
        "group-0 needs 30 GPUs and cannot start: team has a quota of 0 GPUs; move it to another "
        "pool, cancel it, or give quota back to the pool"
    ) == drain["workflows"][0]["message"]

    moved = divided.send("PATCH", f"/api/workflow/{waiting}", {"pool": "team--d"})
    divided.settle()
    assert ("team--d", "RUNNING") == (moved["pool"], divided.status(waiting))
    assert "ARCHIVED" == divided.get(f"{path}/a")["subpool_state"]


def test_a_drain_shows_what_keeps_it_open(divided):
    running, waiting = full(divided)
    low = divided.submit(5, "team--b", "LOW")
    divided.send("PATCH", "/api/configs/pool/team/subpool/b", {"quota": 40})

    drain = drain_of(divided, "team--a")

    assert [(running, "RUNNING", 30, "runs"), (waiting, "PENDING", 30, "waits")] == [
        (each["workflow_id"], each["status"], each["gpus"], each["message"].partition(":")[0])
        for each in drain["workflows"]
    ]
    assert "pool team" in drain["workflows"][1]["message"]
    assert None is drain_of(divided, "team--b")
    assert "PENDING" == divided.status(low)


def test_an_update_names_whom_it_strands_and_whom_it_delays(divided):
    divided.run(30, "team--b")
    large, small = divided.submit(20, "team--b"), divided.submit(5, "team--b")
    divided.settle()

    planned = resize(divided, "b", 15, params={"plan": "true"})

    assert [(large, "cannot start: team--b has a quota of 15 GPUs")] == named(planned, "stranded")
    assert [(small, "waits until 20 GPUs more are free in team--b, not 15")] == named(
        planned, "delayed"
    )
    planned = resize(divided, "b", 25, params={"plan": "true"})
    assert [] == named(planned, "stranded")
    assert [
        (large, "waits until 25 GPUs more are free in team--b, not 10"),
        (small, "waits until 30 GPUs more are free in team--b, not 15"),
    ] == named(planned, "delayed")
    assert ("40", "30", "10") == divided.row("team--b")


def test_an_update_of_a_whole_pool_names_whom_it_strands_and_whom_it_delays(team):
    team.run(60, "team")
    large, small = team.submit(50, "team"), team.submit(5, "team")
    team.settle()
    path = "/api/configs/pool/team"
    body = {"configs_dict": {"resources": {"gpu": {"guarantee": 45}}}}

    planned = team.send("PATCH", path, body, params={"plan": "true"})
    kept = team.get(path)["resources"]["gpu"]["guarantee"]
    made = team.send("PATCH", path, body)

    for answer in (planned, made):
        assert 45 == answer["resources"]["gpu"]["guarantee"]
        assert [(large, "cannot start: team has a quota of 45 GPUs")] == named(answer, "stranded")
        assert [(small, "waits until 20 GPUs more are free in team, not 15")] == named(
            answer, "delayed"
        )
    assert (True, False, 100) == (planned["planned"], made["planned"], kept)
    assert 45 == team.get(path)["resources"]["gpu"]["guarantee"]


def test_replacing_a_pool_names_whom_it_strands_and_whom_it_delays(team):
    team.run(60, "team")
    large, small = team.submit(50, "team"), team.submit(5, "team")
    team.settle()
    path = "/api/configs/pool/team"
    config = team.get(path)
    smaller = {"backend": config["backend"], "resources": {"gpu": {"guarantee": 45}}}

    planned = team.send("PUT", path, {"configs": smaller}, params={"plan": "true"})
    several = {"configs": {"team": smaller}}
    of_all = team.send("PUT", "/api/configs/pool", several, params={"plan": "true"})
    kept = team.get(path)["resources"]["gpu"]["guarantee"]
    made = team.send("PUT", path, {"configs": smaller})

    for answer in (planned, of_all, made):
        assert [(large, "cannot start: team has a quota of 45 GPUs")] == named(answer, "stranded")
        assert [(small, "waits until 20 GPUs more are free in team, not 15")] == named(
            answer, "delayed"
        )
    assert 45 == planned["resources"]["gpu"]["guarantee"]
    assert 45 == of_all["configs"]["team"]["resources"]["gpu"]["guarantee"]
    assert (True, True, False, 100) == (
        planned["planned"],
        of_all["planned"],
        made["planned"],
        kept,
    )
    assert 45 == team.get(path)["resources"]["gpu"]["guarantee"]


def test_an_update_of_a_divided_pool_names_those_of_its_shared_part(divided):
    divided.run(8, "team")
    waiting = divided.submit(9, "team")
    divided.settle()

    body = {"configs_dict": {"resources": {"gpu": {"guarantee": 95}}}}
    planned = divided.send("PATCH", "/api/configs/pool/team", body, params={"plan": "true"})

    assert [(waiting, "cannot start: team has a quota of 5 GPUs")] == named(planned, "stranded")


def test_a_pool_that_is_given_a_quota_names_those_that_wait_longer(team):
    free = {"configs_dict": {"resources": {"gpu": {"guarantee": -1}}}}
    team.send("PATCH", "/api/configs/pool/team", free)
    team.run(60, "team")
    waiting = team.submit(50, "team")
    team.settle()

    body = {"configs_dict": {"resources": {"gpu": {"guarantee": 80}}}}
    planned = team.send("PATCH", "/api/configs/pool/team", body, params={"plan": "true"})

    assert [(waiting, "waits until 30 GPUs more are free in team, not 10")] == named(
        planned, "delayed"
    )


def test_more_quota_for_one_pool_names_those_of_pools_without_a_quota(team):
    quota_of = "/api/configs/pool/team"
    team.send("PATCH", quota_of, {"configs_dict": {"resources": {"gpu": {"guarantee": 80}}}})
    team.send("POST", "/api/configs/pool", {"name": "free", "configs": {}})
    team.run(20, "free")
    waiting = team.submit(15, "free")
    team.settle()

    body = {"configs_dict": {"resources": {"gpu": {"guarantee": 90}}}}
    planned = team.send("PATCH", quota_of, body, params={"plan": "true"})

    assert [(waiting, "cannot start: other pools leave free only 10 GPUs")] == named(
        planned, "stranded"
    )


def test_groups_that_wait_for_others_of_their_workflow_are_named_too(divided):
    text = """\
workflow:
  name: chain
  resources:
    small: {gpu: 5, cpu: 1, memory: 1Gi, storage: 1Gi}
    large: {gpu: 20, cpu: 1, memory: 1Gi, storage: 1Gi}
  tasks:
  - {name: first, image: i, resource: small}
  - {name: second, image: i, resource: large, inputs: [{task: first}]}
"""
    chain = divided.submit(0, "team--b", text=text)
    divided.settle()

    planned = resize(divided, "b", 10, params={"plan": "true"})

    assert [(chain, "cannot start: team--b has a quota of 10 GPUs")] == named(planned, "stranded")
    assert "RUNNING" == divided.status(chain)


def test_a_delete_names_those_of_the_shared_part_that_must_wait_behind_its_work(divided):
    divided.run(30, "team--a")
    divided.run(10, "team")
    first = divided.submit(10, "team--a")
    divided.time.ms += 1_000
    second = divided.submit(10, "team")
    divided.settle()

    planned = delete(divided, "a", params={"plan": "true"})

    assert [(second, "waits until 20 GPUs more are free in team, not 10")] == named(
        planned, "delayed"
    )
    assert "ACTIVE" == divided.get("/api/configs/pool/team/subpool/a")["subpool_state"]
    assert "DELETING" == planned["subpool_state"]
    assert "PENDING" == divided.status(first)


# What can really start


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


# Moving work that waits


def test_a_workflow_that_waits_is_moved_and_keeps_its_submit_time(divided):
    divided.run(10, "team")
    waiting = divided.submit(5, "team", "NORMAL")
    divided.settle()
    submitted = divided.get(f"/api/workflow/{waiting}")["submit_time"]
    divided.time.ms += 60_000

    moved = divided.send(
        "PATCH", f"/api/workflow/{waiting}", {"pool": "team--c", "priority": "HIGH"}
    )
    divided.settle()

    assert ("team--c", "HIGH", submitted) == (
        moved["pool"],
        moved["priority"],
        moved["submit_time"],
    )
    assert "RUNNING" == divided.status(waiting)
    assert ("20", "5", "15") == divided.row("team--c")
    entry = divided.get(f"/api/audit?subject=workflow/{waiting}")["entries"][0]
    assert ("workflow:Update", f"workflow/{waiting}") == (entry["action"], entry["subject"])
    assert {"pool": "team", "priority": "NORMAL"} == entry["before"]
    assert {"pool": "team--c", "priority": "HIGH"} == entry["after"]


def test_a_move_goes_before_those_that_were_submitted_later(divided):
    running = divided.run(20, "team--c")
    divided.run(40, "team--b")
    early = divided.submit(20, "team--b", "NORMAL")
    divided.time.ms += 1_000
    late = divided.submit(20, "team--c", "NORMAL")
    divided.settle()

    divided.send("PATCH", f"/api/workflow/{early}", {"pool": "team--c"})
    divided.settle()
    divided.finish(running)

    assert ["RUNNING", "PENDING"] == statuses(divided, early, late)


def test_what_holds_gpus_is_not_moved(divided):
    running = divided.run(10, "team--b")

    status, message = divided.refused("PATCH", f"/api/workflow/{running}", {"pool": "team--c"})

    assert 409 == status
    assert (
        f"Workflow {running} cannot be moved: its group group-0 holds GPUs. Only a workflow that "
        "waits can be moved; cancel it and submit it again."
    ) == message


def test_a_move_is_checked_as_a_submission(divided):
    divided.user("sue", "osmo-team-user")
    divided.pool("other", 0)
    divided.run(40, "team--b")
    waiting = divided.submit(30, "team--b")
    path = f"/api/workflow/{waiting}"

    def refused(body: object, **options: object) -> tuple[int, str]:
        return divided.refused("PATCH", path, body, **options)

    assert (403, "access denied") == refused({"pool": "other"}, user="sue")
    assert 400 == refused({"pool": "team"})[0]
    assert "Pool team has 10 GPUs guaranteed" in refused({"pool": "team"})[1]
    assert (404, "Pool team--x not found.") == refused({"pool": "team--x"})
    assert 400 == refused({})[0]
    assert 400 == refused({"pools": "team"})[0]
    delete(divided, "a")
    assert (
        409,
        "Subpool team--a is ARCHIVED and does not accept new workflows.",
    ) == refused({"pool": "team--a"})
    assert "team--b" == divided.get(path)["pool"]


def test_waiting_work_of_a_deleted_subpool_may_go_on_as_low(divided):
    running, waiting = full(divided)
    divided.create("team", "d", 40)
    divided.finish(running)
    divided.send("PATCH", f"/api/workflow/{waiting}", {"priority": "LOW"})
    divided.settle()

    assert "RUNNING" == divided.status(waiting)


def test_a_finished_workflow_is_not_moved(divided):
    done = divided.run(10, "team")
    divided.finish(done)

    assert (400, f"Workflow {done} is already finished.") == divided.refused(
        "PATCH", f"/api/workflow/{done}", {"priority": "LOW"}
    )


# Why it waits


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
