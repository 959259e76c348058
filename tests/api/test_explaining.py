"""What clients are told about preemption, waiting and running: query, events and `why`."""

from __future__ import annotations

from msgspec import convert

from bough.api.why import WhyAnswer
from bough.cli.text.why import render_why
from tests.api.house import House, spec

#: The reason of a line about something that waits.
WAITING = "FailedScheduling"


def lines_of(house: House, name: str, what: str, query: str = "") -> list[str]:
    """The events of one kind, without their times."""
    text = house.ask("GET", f"/api/workflow/{name}/events?follow=False{query}").text
    return [line.split(" ", 2)[2] for line in text.splitlines() if what in line]


def test_a_preemption_is_told_in_query_events_and_why(divided: House):
    low = divided.run(80, "team--a", "LOW")
    high = divided.submit(40, "team--b")
    divided.settle()

    phrase = (
        f"reclaim at pool team, for {high}/group-0 of admin (HIGH in pool team--b): "
        "pool team--a used 80 of its quota of 30 GPUs"
    )
    (group,) = divided.get(f"/api/workflow/{low}")["groups"]
    (preemption,) = group["preemptions"]
    expected = {
        "at": "2023-11-14T22:13:20.000",
        "tasks": ["task-0-0"],
        "rule": "reclaim",
        "message": phrase,
        "given_back": False,
        "preemptor": f"{high}/group-0",
        "preemptor_user": "admin",
        "preemptor_pool": "team--b",
        "preemptor_priority": "HIGH",
        "level": "pool team",
    }
    assert expected == preemption
    assert [f"[task-0-0] DisruptionTarget: {phrase}"] == lines_of(divided, low, "Disruption")
    why = divided.get(f"/api/workflow/{low}/why")
    assert [expected] == why["groups"][0]["preemptions"]
    (ended,) = [
        task
        for task in divided.get(f"/api/workflow/{low}?verbose=True")["groups"][0]["tasks"]
        if task["status"] == "FAILED_PREEMPTED"
    ]
    assert f"Task was preempted at 2023-11-14 22:13:20 UTC: {phrase}." in ended["failure_message"]


def test_low_that_is_within_its_quota_only_on_paper_is_told_what_others_use_of_it(divided: House):
    """The shared part has 40 on paper, but 30 of them are what b uses above its new quota."""
    divided.run(40, "team--b")
    divided.send("PATCH", "/api/configs/pool/team/subpool/b", {"quota": 10})
    low = [divided.run(10, "team", "LOW") for _ in range(4)]
    high = divided.submit(30, "team--a")
    divided.settle()

    phrase = (
        f"reclaim at pool team, for {high}/group-0 of admin (HIGH in pool team--a): "
        "pool team used 40 of its quota of 40 GPUs, 30 of which others use above theirs"
    )
    assert [f"[task-0-0] DisruptionTarget: {phrase}"] == lines_of(divided, low[3], "Disruption")
    (group,) = divided.get(f"/api/workflow/{low[3]}")["groups"]
    (explained,) = divided.get(f"/api/workflow/{low[3]}/why")["groups"]
    told = [*group["preemptions"], *explained["preemptions"]]
    assert [phrase, phrase] == [each["message"] for each in told]


ELASTIC = """\
workflow:
  name: elastic
  resources:
    default: {gpu: 10, cpu: 1, memory: 1Gi, storage: 1Gi}
  groups:
  - name: all
    minMember: 2
    tasks:
    - {name: a, image: i, lead: true}
    - {name: b, image: i}
    - {name: c, image: i}
    - {name: d, image: i}
"""


def test_an_elastic_group_is_told_what_it_wants_and_why_it_cannot_grow(team: House):
    team.run(60)
    path = "/api/pool/team/workflow"
    name = team.send("POST", path, {"file": ELASTIC})["name"]
    team.settle()
    full = team.get(f"/api/workflow/{name}/why")["running"][0]
    high = team.submit(20)
    team.settle()

    (runs,) = team.get(f"/api/workflow/{name}/why")["running"]

    assert (40, 0, None) == (full["guaranteed"] + full["preemptible"], 0, full["certificate"])
    assert ("RUNNING", 20, 0, 2) == (
        team.status(high),
        runs["guaranteed"],
        runs["preemptible"],
        runs["waiting_tasks"],
    )
    assert "waits" == runs["certificate"]["verdict"]
    assert "2 tasks wait: " in runs["message"]
    assert "it has 2 of 4" in runs["message"]
    assert "GPUs" in runs["certificate"]["sentence"]
    assert [(2, True)] == [(len(each["tasks"]), each["given_back"]) for each in runs["preemptions"]]


def test_an_elastic_group_grows_when_there_is_room_again(team: House):
    held = team.run(70)
    name = team.send("POST", "/api/pool/team/workflow", {"file": ELASTIC})["name"]
    team.settle()
    before = team.get(f"/api/workflow/{name}/why")["running"][0]
    team.finish(held)

    (after,) = team.get(f"/api/workflow/{name}/why")["running"]

    assert (1, 0) == (before["waiting_tasks"], after["waiting_tasks"])
    assert ("waits", None) == (before["certificate"]["verdict"], after["certificate"])


def test_why_something_waits_is_among_its_events(divided: House):
    divided.run(30, "team--a")
    name = divided.submit(30, "team--a")
    for _ in range(3):
        divided.time.ms += 60_000
        divided.settle()

    (line,) = lines_of(divided, name, WAITING)

    assert line.startswith("[task-0-0] FailedScheduling: quota: pool team--a is short of 30 GPUs")
    assert [line] == lines_of(divided, name, WAITING, "&task_name=task-0-0")
    assert [] == lines_of(divided, name, WAITING, "&task_name=other")


def test_what_waits_alike_is_told_once_to_clients(team: House):
    team.run(100)
    name = team.submit(0, text=spec(10, groups=6))
    team.settle()

    found = team.get(f"/api/workflow/{name}/why")["groups"]

    # The first in line is told apart from those behind it, unless these wait for the same.
    assert len(found) <= 2
    assert [f"group-{number}" for number in range(6)] == [
        each for group in found for each in (group["group"], *group["alike"])
    ]
    assert 6 == sum(group["tasks"] for group in found)


def test_what_runs_is_told_in_a_sentence(team: House):
    name = team.run(10, priority="LOW")

    answer = team.get(f"/api/workflow/{name}/why")

    sentence = (
        "group-0 runs since 2023-11-14 22:13:20 UTC on node-0 (1): 10 GPUs that may be preempted"
    )
    assert f"Nothing of {name} waits; it is RUNNING.\n{sentence}" == answer["message"]
    (runs,) = answer["running"]
    assert (["group-0"], "RUNNING", {"node-0": 1}, 0, 10) == (
        runs["groups"],
        runs["status"],
        runs["nodes"],
        runs["guaranteed"],
        runs["preemptible"],
    )
    assert ("2023-11-14T22:13:20.000", sentence) == (runs["since"], runs["message"])


def test_a_limit_on_one_users_gpus_is_told_in_query_events_and_why(team: House):
    team.pool("team", 100, user_gpu_limit=1)
    first = team.run(1)
    second = team.submit(1)
    team.settle()

    (group,) = team.get(f"/api/workflow/{second}")["groups"]
    sentence = "admin holds 1 of 1 GPU that one user may have in pool team; it asks for 1"
    assert ("owner_limit", sentence) == (group["wait_reason"], group["wait_message"])
    assert [f"[task-0-0] FailedScheduling: owner_limit: {sentence}"] == lines_of(
        team, second, WAITING
    )
    answer = team.get(f"/api/workflow/{second}/why?remedies=True")
    (why,) = answer["groups"]
    assert ("owner_limit", sentence) == (why["reason"], why["message"])
    assert ("waits", "owner_limit") == (
        why["certificate"]["verdict"],
        why["certificate"]["reason"],
    )
    text = render_why(second, convert(answer, WhyAnswer))
    assert text.startswith(f"{second}/group-0 waits (owner_limit): {sentence}")

    team.finish(first)

    assert "RUNNING" == team.status(second)


def helpful(
    house: House, name: str, user: str = "admin"
) -> list[tuple[str, list[tuple[str, ...]]]]:
    """What would help a workflow of one group, with what each changes."""
    (group,) = house.get(f"/api/workflow/{name}/why?remedies=true", user)["groups"]
    return [
        (each["kind"], [(c["name"], c["field"], c["before"], c["after"]) for c in each["changes"]])
        for each in group["remedies"]["found"]
    ]


def test_another_pool_helps_those_that_may_use_it(divided: House):
    """Of a remedy that is told, the workflow starts once it is carried out."""
    divided.pool("other", 0)
    divided.send("PATCH", "/api/configs/pool/other", {"configs_dict": {"resources": TEN}})
    divided.send("PATCH", "/api/configs/pool/team", {"configs_dict": {"resources": NINETY}})
    divided.user("ann", "osmo-team-user")
    for pool, gpus in (("team--a", 30), ("team--b", 40), ("team--c", 20)):
        divided.run(gpus, pool)
    name = divided.submit(10, "team--a", user="ann")
    divided.settle()

    moved = ("move", [(name, "pool", "team--a", "other")])
    assert moved in helpful(divided, name)
    assert moved not in helpful(divided, name, "ann")
    divided.send("PATCH", f"/api/workflow/{name}", {"pool": "other"})
    divided.settle()
    assert "RUNNING" == divided.status(name)


TEN = {"gpu": {"guarantee": 10}}
NINETY = {"gpu": {"guarantee": 90}}


def test_a_higher_priority_is_told_as_people_say_it(team: House):
    low = team.run(100, priority="LOW")
    name = team.submit(10, priority="LOW")
    team.settle()

    raised = ("raise_priority", [(name, "priority", "LOW", "NORMAL")])
    assert raised in helpful(team, name)
    team.send("PATCH", f"/api/workflow/{name}", {"priority": "NORMAL"})
    team.settle()
    assert ("RUNNING", "PENDING") == (team.status(name), team.status(low))
