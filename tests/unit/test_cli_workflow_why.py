"""`osmo workflow why`, and what a query says about preemptions."""

from __future__ import annotations

from typing import Any

from tests.answering import Answering
from tests.unit.conftest import Osmo


def row(number: int, **more: Any) -> Any:
    name = f"wf-{number}"
    return {
        "name": name,
        "submit_time": f"2026-01-05T{9 + number}:00:00",
        "status": "RUNNING",
        "priority": "NORMAL",
        "labels": {},
        "overview": f"https://osmo.example.com/workflows/{name}",
        **more,
    }


def test_why_says_what_stands_against_each_group(osmo: Osmo, server: Answering):
    certificate = {
        "workload": "w-1/train",
        "verdict": "waits",
        "reason": "quota",
        "sentence": "13 > 10",
        "holders": [
            {
                "workload": "w-0/train",
                "queue": "q",
                "owner": "ann",
                "amount": 8,
                "guaranteed": 8,
                "borrowed": 0,
                "evictable": 0,
            }
        ],
        "missing": {"resource": "gpu", "amount": 3, "flavor": None},
        **{key: [] for key in ("shortages", "lacks", "options")},
    }
    found = [
        {"sentence": "run it as LOW", "exact": True},
        {"sentence": "raise the quota of pool q by 3", "exact": False},
    ]
    remedies = {"plans": 1, "found": found, "given_up": []}
    group = {
        "group": "train",
        "status": "SCHEDULING",
        "reason": "quota",
        "message": "13 > 10",
        "certificate": certificate,
        "remedies": remedies,
    }
    later = {"group": "eval", "status": "WAITING", "reason": None, "message": "it waits for train"}
    answer = {"workflow": "w-1", "status": "PENDING", "message": "x", "groups": [group, later]}
    server.answer("GET", "/api/workflow/w-1/why", answer)
    assert [
        "w-1/train waits (quota): 13 > 10",
        "",
        "who has gpu",
        "  WORKLOAD   POOL  OWNER  HAS  GUARANTEED  BORROWED  EVICTABLE",
        "  w-0/train  q     ann      8           8         -          -",
        "",
        "what would help, the cheapest first (1 plan)",
        "  1. run it as LOW",
        "  2. raise the quota of pool q by 3; perhaps less would do",
        "",
        "eval waits (WAITING): it waits for train",
    ] == osmo("workflow", "why", "w-1", "--remedies").output.splitlines()
    assert {"remedies": ["true"]} == server.last.query
    text = osmo("workflow", "why", "w-1", "--queues").output
    assert "  WORKLOAD   QUEUE  OWNER" in text
    assert {"queues": ["true"]} == server.last.query


def test_what_does_not_wait_is_said_in_words(osmo: Osmo, server: Answering):
    answer = {"workflow": "w-1", "status": "RUNNING", "message": "It runs.", "groups": []}
    server.answer("GET", "/api/workflow/w-1/why", answer)
    assert (0, "It runs.\n", "") == osmo("workflow", "why", "w-1")


def test_a_query_says_what_was_preempted_for_what(osmo: Osmo, server: Answering):
    task = {"name": "t", "retry_id": 1, "start_time": None, "status": "SCHEDULING"}
    document = {
        **row(1),
        "submitted_by": "alice",
        "groups": [{"name": "g", "tasks": [task], "preemptions": [PREEMPTION]}],
    }
    server.answer("GET", "/api/workflow/wf-1", document)
    assert [
        "Preempted:",
        f"  g: it was preempted at Jan 05, 2026 10:00 UTC: {PREEMPTION['message']}",
    ] == osmo("workflow", "query", "wf-1").output.splitlines()[-2:]


PREEMPTION = {
    "at": "2026-01-05T10:00:00",
    "tasks": ["t"],
    "rule": "reclaim",
    "message": "reclaim at pool team, for w-2/g of ann (HIGH in pool b)",
    "given_back": False,
}


def test_groups_that_wait_alike_are_told_once(osmo: Osmo, server: Answering):
    group = {
        "group": "t0",
        "status": "SCHEDULING",
        "reason": "quota",
        "message": "13 > 10",
        "alike": [f"t{number}" for number in range(1, 50)],
        "preemptions": [PREEMPTION, PREEMPTION],
    }
    runs = {"message": "eval runs since then", "preemptions": []}
    answer = {"workflow": "w-1", "status": "PENDING", "groups": [group], "running": [runs]}
    server.answer("GET", "/api/workflow/w-1/why", answer)
    assert [
        "each of 50 groups alike (t0, t1, t2 and 47 more) waits (quota): 13 > 10",
        "",
        f"  it was preempted at Jan 05, 2026 10:00 UTC (2 times in all): {PREEMPTION['message']}",
        "",
        "eval runs since then",
    ] == osmo("workflow", "why", "w-1").output.splitlines()


def test_what_runs_says_when_it_gave_something_back(osmo: Osmo, server: Answering):
    runs = {"message": "g runs", "preemptions": [{**PREEMPTION, "given_back": True}]}
    answer = {
        "workflow": "w-1",
        "message": "Nothing waits.\ng runs",
        "groups": [],
        "running": [runs],
    }
    server.answer("GET", "/api/workflow/w-1/why", answer)
    first, second, third = osmo("workflow", "why", "w-1").output.splitlines()
    assert ("Nothing waits.", "g runs") == (first, second)
    assert third.startswith("  it gave back tasks at ")


def test_why_takes_the_names_of_groups_that_it_prints(bough: Osmo, server: Answering):
    answer = {"workflow": "w-1", "status": "RUNNING", "message": "", "groups": []}
    server.answer("GET", "/api/workflow/w-1/why", answer)
    ended = bough("workflow", "why", "w-1/train")
    assert (0, "Workflow w-1 does not wait.\n", "") == ended


def test_why_without_files_names_the_command_for_workflows(bough: Osmo):
    ended = bough("why", "tracker-1")
    said = "Missing argument 'FILE...'. For a workflow of a server: `bough workflow why tracker-1`."
    assert (2, f"error: {said}") == (ended.code, ended.errors.splitlines()[0])
