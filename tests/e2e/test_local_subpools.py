"""Scenarios 79 to 98 and 176 to 180: the stories of subpools, with processes that run in them."""

from __future__ import annotations

import os
import signal

import pytest

from tests.e2e.local import FINISH, Attempt, Hosting, Local, job, resources, task

QUOTAS = {"a": 30, "b": 40, "c": 20}


@pytest.fixture
def divided(host: Hosting) -> Local:
    """`team` has all 100 GPUs; `a` has 30, `b` 40, `c` 20, and 10 are left."""
    local = host.start()
    local.pool("team", 100)
    divide(local)
    return local


def divide(local: Local) -> None:
    for name, quota in QUOTAS.items():
        local.done("pool", "subpool", "create", "team", name, "--quota", str(quota))


def row(local: Local, pool: str) -> list[str]:
    """What `pool list` says: state, quota, used, available; nothing if it is not listed."""
    for line in local.done("pool", "list").splitlines():
        words = line.replace("├─", "").replace("└─", "").split()
        if words[0] == pool:
            return words[2:]
    return []


def refusal(local: Local, pool: str, gpus: int, priority: str) -> str:
    """Why a submission is refused."""
    spec = local.write(job(gpus))
    ended = local.osmo("workflow", "submit", "--pool", pool, "--priority", priority, spec)
    assert ended.code in (1, 2), ended
    return ended.errors


def state(local: Local, name: str) -> str:
    return local.json("pool", "subpool", "show", "team", name)["subpool_state"]


def test_scenario_176_who_comes_first_no_longer_gets_all(host: Hosting):
    local = host.start()
    local.pool("team", 100)
    first, second = local.run("team", 80, "HIGH"), local.run("team", 20, "HIGH")
    before = local.mains()
    divide(local)
    assert before == local.mains()
    local.finish(first)
    assert "Pool team has 10 GPUs guaranteed for NORMAL/HIGH priority workflows" in refusal(
        local, "team", 80, "HIGH"
    )
    theirs = local.run("team--b", 40, "HIGH")
    assert [20, 40] == [len(each.gpus) for each in local.mains(second, theirs)]


def test_scenario_177_who_is_in_no_group_has_what_is_shared_and_low_beyond(divided: Local):
    high, low = divided.run("team", 10, "HIGH"), divided.run("team", 25, "LOW")
    assert [10, 25] == [len(each.gpus) for each in divided.mains(high, low)]
    assert "requires 11 GPUs" in refusal(divided, "team", 11, "HIGH")
    assert ["-", "10", "(Total:", "100)", "10", "0"] == row(divided, "team")


def test_scenarios_080_081_and_178_quotas_shrink_and_subpools_drain_while_work_goes_on(
    divided: Local,
):
    some, rest = divided.run("team--b", 15, "HIGH"), divided.run("team--b", 20, "HIGH")
    divided.done("pool", "subpool", "update", "team", "b", "--quota", "20")
    assert ["ACTIVE", "20", "35", "-15"] == row(divided, "team--b")
    assert ["-", "30", "(Total:", "100)", "0", "30"] == row(divided, "team")

    last = divided.run("team--a", 5, "HIGH")
    before = divided.mains()
    divided.done("pool", "subpool", "delete", "team", "a")
    assert ["DELETING", "0", "5", "-5"] == row(divided, "team--a")
    assert ["-", "60", "(Total:", "100)", "0", "60"] == row(divided, "team")
    assert before == divided.mains()
    quota = ("--quota", "1")
    for action, *more in (("update", *quota), ("create", *quota), ("delete",)):
        ended = divided.osmo("pool", "subpool", action, "team", "a", *more)
        assert "Error code: 409" in ended.errors, ended
    assert "DELETING" in refusal(divided, "team--a", 1, "HIGH")
    assert "DELETING" == state(divided, "a")

    divided.finish(some)
    assert ["ACTIVE", "20", "20", "0"] == row(divided, "team--b")
    divided.finish(rest, last)
    assert ["ACTIVE", "20", "0", "20"] == row(divided, "team--b")
    divided.until(lambda: "ARCHIVED" == state(divided, "a"))
    assert [] == row(divided, "team--a")
    assert [] == divided.mains()


def test_scenarios_030_090_and_179_a_subpool_pauses_and_its_history_stays(divided: Local):
    runs = divided.run("team--a", 5, "NORMAL")
    divided.done("pool", "subpool", "delete", "team", "a")
    for priority in ("HIGH", "LOW"):
        assert "DELETING" in refusal(divided, "team--a", 1, priority)
    divided.finish(runs)
    divided.until(lambda: "ARCHIVED" == state(divided, "a"))
    assert "ARCHIVED" in refusal(divided, "team--a", 1, "LOW")

    assert "[main] " in divided.done("workflow", "logs", runs)
    assert ["finished"] == divided.endings(runs)
    assert runs in divided.done("workflow", "list", "--pool", "team--a")
    divided.done("pool", "subpool", "create", "team", "a", "--quota", "12")
    divided.run("team--a", 12, "HIGH")
    assert ["ACTIVE", "12", "12", "0"] == row(divided, "team--a")
    history = divided.json("pool", "subpool", "history", "team", "a")
    assert [30, 30, 30, 12] == [each["data"]["quota"] for each in history]


def test_scenario_180_the_full_life_of_a_subpool(host: Hosting):
    local = host.start()
    local.pool("team", 100)
    local.done("pool", "subpool", "create", "team", "a", "--quota", "30")
    runs = local.run("team--a", 20, "HIGH")
    local.done("pool", "subpool", "update", "team", "a", "--quota", "10")
    assert ["ACTIVE", "10", "20", "-10"] == row(local, "team--a")
    local.done("pool", "subpool", "delete", "team", "a")
    assert ["DELETING", "0", "20", "-20"] == row(local, "team--a")
    assert [20] == [len(each.gpus) for each in local.mains(runs)]
    local.finish(runs)
    local.until(lambda: "ARCHIVED" == state(local, "a"))
    local.done("pool", "subpool", "create", "team", "a", "--quota", "25")
    again = local.run("team--a", 25, "HIGH")
    assert [25] == [len(each.gpus) for each in local.mains(again)]
    assert "requires 26 GPUs" in refusal(local, "team--a", 26, "HIGH")
    history = local.json("pool", "subpool", "history", "team", "a")
    assert [
        ("ACTIVE", 30),
        ("ACTIVE", 10),
        ("DELETING", 10),
        ("ARCHIVED", 10),
        ("ACTIVE", 25),
    ] == [(each["data"]["state"], each["data"]["quota"]) for each in history]


def test_scenarios_086_087_and_089_what_waits_and_what_is_low_keeps_a_subpool_open(host: Hosting):
    local = host.start()
    local.pool("team", 100)
    before = local.run("team", 95, "HIGH")
    divide(local)
    waiting, low = local.submit("team--a", 30, "HIGH"), local.run("team--b", 5, "LOW")
    local.left_waiting(waiting)
    local.done("pool", "subpool", "delete", "team", "a")
    local.done("pool", "subpool", "delete", "team", "b")
    # Nothing of a runs, and b uses nothing of its quota.
    assert [] == local.processes(waiting)
    assert ["DELETING", "0", "0", "0"] == row(local, "team--a")
    assert ["DELETING", "0", "0", "0"] == row(local, "team--b")
    local.finish(before)
    local.settle(RUNNING=[waiting, low])
    assert ["DELETING", "DELETING"] == [state(local, "a"), state(local, "b")]
    local.finish(waiting)
    local.done("workflow", "cancel", low, "--message", "enough")
    local.until(lambda: ["ARCHIVED"] * 2 == [state(local, "a"), state(local, "b")])


def test_scenario_088_what_is_preempted_or_still_to_come_keeps_a_subpool_open(divided: Local):
    steps = {
        "name": "steps",
        "resources": resources(5),
        "tasks": [task("first"), task("second", inputs=[{"task": "first"}])],
    }
    low = divided.run("team--a", 40, "LOW")
    serial = divided.send("team--b", "HIGH", steps)
    divided.settle(RUNNING=[serial])
    divided.done("pool", "subpool", "delete", "team", "a")
    divided.done("pool", "subpool", "delete", "team", "b")
    # 20 are promised to c, and 5 of b still run: so much is left for the pool's own work.
    wide = divided.run("team", 75, "HIGH")
    divided.left_waiting(low)
    assert [] == divided.processes(low)
    assert ["DELETING", "DELETING"] == [state(divided, "a"), state(divided, "b")]
    assert Attempt(0, "FAILED_PREEMPTED", 3006) == divided.attempts(low)[0]
    divided.finish(wide)
    divided.settle(RUNNING=[low])

    (first,) = divided.ready(serial)
    divided.signal(serial)
    divided.until(lambda: [first.pid] != [each.pid for each in divided.ready(serial)])
    divided.until(lambda: 1 == len(divided.ready(serial)))
    assert "DELETING" == state(divided, "b")
    divided.finish(serial, low)
    divided.until(lambda: ["ARCHIVED"] * 2 == [state(divided, "a"), state(divided, "b")])


def test_scenarios_079_and_091_to_095_what_is_refused_disturbs_nothing_that_runs(divided: Local):
    divided.run("team--b", 40, "HIGH")
    divided.run("team", 10, "LOW")
    before = divided.mains()
    divided.done("pool", "subpool", "delete", "team", "a")
    assert "ARCHIVED" == state(divided, "a")
    divided.done("pool", "subpool", "delete", "team", "b")
    for arguments, code in (
        (("subpool", "delete", "team", "a"), 409),
        (("subpool", "delete", "team", "b"), 409),
        (("subpool", "delete", "team", "none"), 404),
        (("delete", "team"), 409),
        (("rename", "team", "other"), 409),
    ):
        ended = divided.osmo("pool", *arguments)
        assert (2, True) == (ended.code, f"Error code: {code}" in ended.errors), ended
    assert before == divided.mains()


def test_scenario_096_a_drain_goes_on_after_the_server_was_killed(host: Hosting):
    local = host.start()
    local.pool("team", 100)
    divide(local)
    ends, stays = local.run("team--a", 30, "HIGH"), local.run("team--b", 40, "HIGH")
    for name in ("a", "b"):
        local.done("pool", "subpool", "delete", "team", name)
    (ending,), (staying,) = local.mains(ends), local.mains(stays)
    host.stop(signal.SIGKILL)
    os.kill(ending.pid, FINISH)
    local = host.start()
    local.until(lambda: "ARCHIVED" == state(local, "a"))
    assert ["DELETING", "0", "40", "-40"] == row(local, "team--b")
    assert "COMPLETED" == local.status(ends)
    assert [staying] == local.mains(stays)
    local.finish(stays)
    local.until(lambda: "ARCHIVED" == state(local, "b"))
    assert [Attempt(0, "COMPLETED", 0)] == local.attempts(stays)
