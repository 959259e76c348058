"""Scenarios 163 to 167 and 175: a hundred GPUs, weights, elastic gangs, many that wait."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.local import Attempt, Local, gang, job, task

PREEMPTED = Attempt(0, "FAILED_PREEMPTED", 3006)
#: How many LOW workflows wait while something more urgent comes.
CROWD = 1_000


def two_pools(local: Local) -> None:
    """A has 30 and may use 70; B has 50 and three times the weight."""
    local.pool("A", 30, maximum=70, weight=1)
    local.pool("B", 50, weight=3)


def test_scenario_163_guaranteed_work_takes_back_just_what_it_needs(large: Local):
    two_pools(large)
    guaranteed = large.run("A", 30, "NORMAL")
    lows = [large.submit("A", 4, "LOW") for _ in range(10)]
    large.settle(RUNNING=lows)
    large.run("B", 30, "NORMAL")
    more = large.run("B", 4, "NORMAL")
    large.until(lambda: 1 == large.statuses(*lows).count("PENDING"))
    large.left_waiting(lows[-1])
    assert 9 == len(large.mains(*lows))
    assert [4, 30] == sorted(len(each.gpus) for each in large.mains(guaranteed, more))


def test_scenarios_164_and_165_low_waits_and_normal_preempts_its_own_pools_low(large: Local):
    two_pools(large)
    large.run("A", 25, "NORMAL")
    lows = [large.submit("A", 5, "LOW") for _ in range(8)]
    large.run("B", 35, "NORMAL")
    large.settle(RUNNING=lows)
    waiting = large.submit("A", 5, "LOW")
    large.left_waiting(waiting)
    assert 8 == len(large.mains(*lows))

    large.run("A", 5, "NORMAL")
    large.left_waiting(lows[-1], waiting)
    assert 7 == len(large.mains(*lows))
    rows = large.done("pool", "list", "--pool", "A").splitlines()
    assert ["A", "ONLINE", "-", "30", "30", "0"] == rows[2].split()


def test_scenario_166_idle_gpus_are_shared_by_weight(large: Local):
    two_pools(large)
    large.pool("elsewhere", 20)
    leaving = large.run("elsewhere", 20, "HIGH")
    guaranteed = [large.run("A", 30, "NORMAL"), large.run("B", 50, "NORMAL")]
    lows = {pool: crowd(large, pool, 20) for pool in ("A", "B")}
    large.left_waiting(*lows["A"], *lows["B"])
    large.finish(leaving)
    large.until(lambda: 20 == len(large.mains(*lows["A"], *lows["B"])))
    assert (5, 15) == (len(large.mains(*lows["A"])), len(large.mains(*lows["B"])))
    assert ["RUNNING", "RUNNING"] == large.statuses(*guaranteed)
    gpus = [gpu for each in large.mains() for gpu in each.gpus]
    assert list(range(100)) == sorted(gpus)


def crowd(local: Local, pool: str, count: int) -> list[str]:
    """Submit many LOW workflows of one GPU each, fast."""
    text = Path(local.write(job(1))).read_text()
    return [local.client.workflows.submit(pool, text, priority="LOW").name for _ in range(count)]


def divide(local: Local, pool: str) -> None:
    """A pool has all 100 GPUs; `a` of it has 30, `b` 40, `c` 20, and 10 are left."""
    local.pool(pool, 100)
    for name, quota in (("a", 30), ("b", 40), ("c", 20)):
        local.done("pool", "subpool", "create", pool, name, "--quota", str(quota))


def test_scenario_167_a_subpools_guarantee_is_reclaimed_from_a_whole_gang(large: Local):
    divide(large, "team")
    low = large.send("team", "LOW", gang([task(f"worker-{n}") for n in range(3)], gpus=5))
    large.settle(RUNNING=[low])
    large.run("team--b", 40, "HIGH")
    large.run("team--c", 20, "HIGH")
    assert 3 == len(large.mains(low))
    high = large.run("team--a", 30, "HIGH")
    large.left_waiting(low)
    assert [] == large.processes(low)
    assert {(PREEMPTED, Attempt(1, "SCHEDULING", None))} == set(
        map(tuple, large.tasks(low).values())
    )
    large.finish(high)
    large.settle(RUNNING=[low])
    large.until(lambda: 3 == len(large.ready(low)))


def test_scenario_167_an_elastic_gang_gives_back_only_what_it_can_spare(large: Local):
    divide(large, "elastic")
    worker = task("worker", replicas={"min": 10, "max": 15})
    low = large.send("elastic", "LOW", gang([worker]))
    large.settle(RUNNING=[low])
    large.until(lambda: 15 == len(large.ready(low)))
    before = {each.attempt: each.pid for each in large.mains(low)}
    large.run("elastic--b", 40, "HIGH")
    large.run("elastic--c", 20, "HIGH")
    assert 15 == len(large.mains(low))

    high = large.run("elastic--a", 30, "HIGH")
    large.until(lambda: 10 == len(large.mains(low)), lambda: large.shown(low))
    after = {each.attempt: each.pid for each in large.mains(low)}
    assert after.items() <= before.items()
    assert "RUNNING" == large.status(low)
    assert ["RESCHEDULED"] * 5 == [
        attempts[0].status for attempts in large.tasks(low).values() if len(attempts) == 2
    ]
    large.until(lambda: ["told to end"] * 5 == large.endings(low), lambda: large.endings(low))

    large.finish(high)
    large.until(lambda: 15 == len(large.ready(low)), lambda: large.shown(low))
    assert after.items() <= {each.attempt: each.pid for each in large.mains(low)}.items()


def test_scenario_175_any_number_of_low_never_delays_what_is_guaranteed(large: Local):
    large.cluster(4, p=2)
    lows = crowd(large, "p", CROWD)
    large.until(lambda: 4 == len(large.mains(*lows[:4])))
    normal = large.run("p", 1, "NORMAL")
    assert 1 == len(large.mains(normal))
    large.left_waiting(lows[3])
    assert ["RUNNING"] * 3 == large.statuses(*lows[:3])
