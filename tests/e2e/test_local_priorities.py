"""Scenarios 143 to 155 and 170 to 174: priority, quota and preemption, seen on processes."""

from __future__ import annotations

from tests.e2e.local import FAIL, Attempt, Local, job

PREEMPTED = Attempt(0, "FAILED_PREEMPTED", 3006)


def test_scenarios_143_and_173_only_low_is_warned_that_it_may_be_preempted(small: Local):
    small.cluster(4, p=4)
    spec = small.write(job(1))
    told = [
        small.done("workflow", "submit", "--pool", "p", "--priority", priority, spec)
        for priority in ("HIGH", "NORMAL", "LOW")
    ]
    usual = small.json("workflow", "submit", "--pool", "p", spec)["name"]
    assert "NORMAL" == small.workflow(usual)["priority"]
    assert [False, False, True] == [
        "WARNING: LOW priority can be preempted during the run." in text for text in told
    ]


def test_scenarios_144_to_146_the_queue_is_by_priority_then_by_time(small: Local):
    small.cluster(2, p=2)
    running = [small.run("p", 1, "NORMAL"), small.run("p", 1, "NORMAL")]
    waiting = [small.submit("p", 1, each) for each in ("LOW", "NORMAL", "HIGH", "NORMAL")]
    small.left_waiting(*waiting)
    assert ["RUNNING", "RUNNING"] == small.statuses(*running)

    third, fourth, fifth, sixth = waiting
    for expected in (fifth, fourth, sixth, third):
        small.finish(running.pop(0))
        small.settle(RUNNING=[*running, expected])
        running.append(expected)
        waiting.remove(expected)
        assert ["PENDING"] * len(waiting) == small.statuses(*waiting)
        assert 2 == len(small.mains(*running))


def test_scenarios_147_and_148_quota_counts_although_gpus_are_idle_but_not_for_low(small: Local):
    small.cluster(4, p=2)
    low, normal = small.run("p", 2, "LOW"), small.run("p", 2, "NORMAL")
    (row,) = small.json("pool", "list", "--pool", "p")["node_sets"][0]["pools"]
    usage = row["resource_usage"]
    assert ("2", "4") == (usage["quota_used"], usage["total_usage"])
    assert [0, 1, 2, 3] == sorted(gpu for each in small.mains() for gpu in each.gpus)

    small.finish(low)
    waiting = [small.submit("p", 1, "NORMAL"), small.submit("p", 1, "HIGH")]
    small.left_waiting(*waiting)
    another = small.run("p", 1, "LOW")
    small.left_waiting(*waiting)
    assert [1, 2] == sorted(len(each.gpus) for each in small.mains(normal, another))


def test_scenarios_149_and_150_what_is_preempted_is_queued_in_its_old_place(small: Local):
    small.cluster(2, p=2)
    first, second = small.run("p", 1, "LOW"), small.run("p", 1, "NORMAL")
    third, fourth = small.submit("p", 1, "LOW"), small.submit("p", 1, "LOW")
    small.left_waiting(third, fourth)
    fifth = small.run("p", 1, "NORMAL")

    small.left_waiting(first, third, fourth)
    assert [] == small.processes(first, third, fourth)
    assert [PREEMPTED, Attempt(1, "SCHEDULING", None)] == small.attempts(first)
    assert ["told to end"] == small.endings(first)

    for ended, expected in ((fifth, first), (second, third), (first, fourth)):
        small.finish(ended)
        small.settle(RUNNING=[expected])
    assert [PREEMPTED, Attempt(1, "COMPLETED", 0)] == small.attempts(first)
    shown = small.done("workflow", "query", first, "--verbose")
    assert "FAILED_PREEMPTED" in shown
    assert "3006" in shown
    assert ["told to end", "finished"] == small.endings(first)


def test_scenario_151_all_three_conditions_of_preemption_are_needed(small: Local):
    small.cluster(3, p=2, q=2)
    low, normal = small.run("p", 1, "LOW"), small.run("p", 2, "NORMAL")
    # Its quota is reached, or it is LOW itself.
    beyond, another = small.submit("p", 1, "NORMAL"), small.submit("p", 1, "LOW")
    small.left_waiting(beyond, another)
    assert ["RUNNING", "RUNNING"] == small.statuses(low, normal)
    small.finish(low)
    small.settle(RUNNING=[normal, another])
    small.left_waiting(beyond)
    assert [Attempt(0, "COMPLETED", 0)] == small.attempts(low)
    # What is LOW gives way to quota; after that nothing LOW is left.
    first = small.run("q", 1, "NORMAL")
    small.left_waiting(another)
    second = small.submit("q", 1, "HIGH")
    small.left_waiting(beyond, another, second)
    assert ["RUNNING", "RUNNING"] == small.statuses(normal, first)


def test_scenario_152_what_would_exceed_the_quota_preempts_nothing(small: Local):
    small.cluster(4, p=4)
    small.run("p", 3, "NORMAL")
    low = small.run("p", 1, "LOW")
    two = small.submit("p", 2, "NORMAL")
    small.left_waiting(two)
    assert "RUNNING" == small.status(low)
    small.done("workflow", "cancel", two)
    one = small.run("p", 1, "NORMAL")
    small.left_waiting(low)
    assert 1 == len(small.mains(one))
    assert [] == small.processes(low)


def test_scenario_153_nothing_is_preempted_in_vain_and_the_newest_goes_first(small: Local):
    small.cluster(4, p=4)
    lows = [small.run("p", 1, "LOW") for _ in range(3)]
    before = small.mains(*lows)
    small.run("p", 1, "NORMAL")
    assert before == small.mains(*lows)
    small.run("p", 1, "NORMAL")
    small.left_waiting(lows[2])
    assert before[:2] == small.mains(*lows)


def test_scenario_154_exit_actions_decide_what_follows_a_preemption(small: Local):
    small.cluster(1, p=1)
    for actions, expected, last in (
        ({"RESCHEDULE": "3006"}, "PENDING", Attempt(1, "SCHEDULING", None)),
        ({"FAIL": "3006"}, "FAILED_PREEMPTED", PREEMPTED),
        ({"COMPLETE": "3006"}, "COMPLETED", Attempt(0, "COMPLETED", 3006)),
    ):
        low = small.run("p", 1, "LOW", exitActions=actions)
        normal = small.run("p", 1, "NORMAL")
        small.settle(**{expected: [low]})
        assert last == small.attempts(low)[-1]
        assert [] == small.processes(low)
        small.done("workflow", "cancel", normal, *([low] if expected == "PENDING" else []))
        small.over(normal, low)


def test_scenario_155_preemptions_can_be_limited(small: Local):
    small.cluster(1, p=1)
    small.done("config", "set", "WORKFLOW", "max_preemption_retries=1")
    try:
        low = small.run("p", 1, "LOW")
        for _ in range(2):
            small.finish(small.run("p", 1, "NORMAL"))
            small.until(lambda: 1 == len(small.ready(low)) or small.status(low) != "PENDING")
        small.settle(FAILED_PREEMPTED=[low])
        assert [PREEMPTED, PREEMPTED._replace(retry=1)] == small.attempts(low)
        assert "No exit action applied due to retry limit 1." in small.message(low)
    finally:
        small.done("config", "set", "WORKFLOW", "max_preemption_retries=null")


def test_scenario_170_the_submit_time_is_kept_over_many_preemptions(small: Local):
    small.cluster(1, p=1)
    low = small.run("p", 1, "LOW")
    other = small.submit("p", 1, "LOW")
    submitted = small.workflow(low)["submit_time"]
    for retry in (1, 2):
        normal = small.run("p", 1, "NORMAL")
        small.left_waiting(low, other)
        small.finish(normal)
        small.settle(RUNNING=[low], PENDING=[other])
        assert [retry] == [int(each.attempt.split("/")[1]) for each in small.mains(low)]
        small.until(lambda: bool(small.ready(low)))
    assert submitted == small.workflow(low)["submit_time"]


def test_scenario_174_workflows_are_listed_by_priority_and_status(small: Local):
    small.cluster(1, listed=1)
    low = small.run("listed", 1, "LOW", exitActions={"FAIL": "3006"})
    normal = small.run("listed", 1, "NORMAL")
    small.settle(FAILED_PREEMPTED=[low])
    small.finish(normal, how=FAIL)

    def listed(*arguments: str) -> list[str]:
        found = small.json("workflow", "list", "--pool", "listed", *arguments)
        return [each["name"] for each in found["workflows"]]

    assert [low] == listed("--priority", "LOW")
    assert [low] == listed("--status", "FAILED_PREEMPTED")
    assert [normal] == listed("--status", "FAILED")
    assert [Attempt(0, "FAILED", 7)] == small.attempts(normal)
