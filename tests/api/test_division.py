"""What a division of a pool does to work that waits, told before and after it is made."""

from __future__ import annotations

from tests.api.house import House, delete, full, resize


def named(answer: dict[str, object], key: str) -> list[tuple[str, str]]:
    return [(each["workflow_id"], each["message"]) for each in answer[key]]


def drain_of(house: House, name: str) -> dict[str, object] | None:
    rows = house.get("/api/pool_quota?pools=team")["node_sets"][0]["pools"]
    return next(each["drain"] for each in rows if each["name"] == name)


def test_a_create_names_what_it_strands_and_the_waiting_work_can_be_moved(divided):
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


def test_an_update_names_what_it_strands_and_what_it_delays(divided):
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


def test_an_update_of_a_whole_pool_names_what_it_strands_and_what_it_delays(team):
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


def test_replacing_a_pool_names_what_it_strands_and_what_it_delays(team):
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
