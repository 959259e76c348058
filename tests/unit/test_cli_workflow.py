"""`osmo workflow` and `osmo task` as people and programs see them."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.answering import Answering
from tests.unit.conftest import Osmo

SPEC = "workflow:\n  name: hello\n"
SUBMIT = "/api/pool/team/workflow"
SUBMITTED = {
    "name": "hello-1",
    "overview": "http://host/workflows/hello-1",
    "logs": "http://host/logs",
    "spec": None,
    "dashboard_url": None,
    "warnings": [],
}
TOLD = """\
Workflow submit successful.
Workflow ID        - hello-1
Workflow Overview  - http://host/workflows/hello-1
"""
LIST = """\
User    Workflow ID   Submit Time              Status    Priority   Labels          Overview
===========================================================================================================================
alice   wf-1          Jan 05, 2026 10:00 UTC   RUNNING   NORMAL     team=robotics   https://osmo.example.com/workflows/wf-1
alice   wf-2          Jan 05, 2026 11:00 UTC   PENDING   LOW        -               https://osmo.example.com/workflows/wf-2
"""
QUERY = """\
--------------------------------------------------------------------

Workflow ID : wf-1
Status      : RUNNING
User        : alice
Submit Time : Jan 05, 2026 10:00 UTC
Labels      : team=robotics
Overview    : https://osmo.example.com/workflows/wf-1

Task Name   Retry ID   Start Time               Status        Exit Code
=======================================================================
master      1          Jan 05, 2026 10:05 UTC   RUNNING       -
master      0          Jan 05, 2026 10:01 UTC   RESCHEDULED   3006
"""


def row(number: int, **more: Any) -> Any:
    name = f"wf-{number}"
    return {
        "user": "alice",
        "name": name,
        "submit_time": f"2026-01-05T{9 + number}:00:00",
        "status": "RUNNING",
        "priority": "NORMAL",
        "labels": {},
        "overview": f"https://osmo.example.com/workflows/{name}",
        **more,
    }


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(SPEC)
    return str(path)


# Submitting


def test_a_workflow_is_submitted(osmo: Osmo, server: Answering, spec: str):
    server.answer("POST", SUBMIT, SUBMITTED)
    assert (0, TOLD, "") == osmo("workflow", "submit", spec, "--pool", "team")
    assert (SPEC, {}) == (server.last.body["file"], server.last.query)


def test_low_priority_comes_with_a_warning(osmo: Osmo, server: Answering, spec: str):
    server.answer("POST", SUBMIT, SUBMITTED)
    warning = "WARNING: LOW priority can be preempted during the run.\n"
    ended = osmo("workflow", "submit", spec, "-p", "team", "--priority", "low")
    assert (0, f"{TOLD}\n{warning}", "") == ended
    assert {"priority": ["LOW"]} == server.last.query
    ended = osmo("workflow", "submit", spec, "-p", "team", "--priority", "LOW", "-t", "json")
    assert (SUBMITTED, warning) == (json.loads(ended.output), ended.errors)


def test_warnings_of_the_server_are_printed(osmo: Osmo, server: Answering, spec: str):
    server.answer("POST", SUBMIT, {**SUBMITTED, "warnings": ["Pool team is OFFLINE."]})
    output = osmo("workflow", "submit", spec, "-p", "team").output
    assert f"{TOLD}\nWARNING: Pool team is OFFLINE.\n" == output


def test_variables_labels_and_environment_are_sent(osmo: Osmo, server: Answering, spec: str):
    server.answer("POST", SUBMIT, SUBMITTED)
    osmo(
        *("workflow", "submit", spec, "-p", "team", "--set", "n=1", "--set", "m=2"),
        *("--set-string", "s=3", "--label", "a=b", "--set-env", "X=Y"),
    )
    body, query = server.last.body, server.last.query
    assert (["n=1", "m=2"], ["s=3"]) == (body["set_variables"], body["set_string_variables"])
    assert {"label": ["a=b"], "env_vars": ["X=Y"]} == query


@pytest.mark.parametrize("option", ["--set", "--set-string", "--label", "--set-env"])
def test_a_value_without_a_name_is_wrong_usage(
    osmo: Osmo, server: Answering, spec: str, option: str
):
    ended = osmo("workflow", "submit", spec, "-p", "team", option, "x")
    assert (2, []) == (ended.code, server.asked)
    assert "expected NAME=VALUE, not 'x'" in ended.errors


def test_standard_input_can_be_submitted(
    osmo: Osmo, server: Answering, monkeypatch: pytest.MonkeyPatch
):
    server.answer("POST", SUBMIT, SUBMITTED)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SPEC.encode())))
    assert 0 == osmo("workflow", "submit", "-", "-p", "team").code
    assert SPEC == server.last.body["file"]


def test_an_earlier_workflow_is_submitted_by_its_name(osmo: Osmo, server: Answering):
    server.answer("POST", SUBMIT, SUBMITTED)
    assert (0, TOLD, "") == osmo("workflow", "submit", "hello-7", "-p", "team")
    assert ({"workflow_id": ["hello-7"]}, None) == (server.last.query, server.last.body)


@pytest.mark.parametrize("command", ["submit", "validate"])
def test_a_file_that_is_not_there_is_named(osmo: Osmo, server: Answering, command: str):
    ended = osmo("workflow", command, "nowhere.yaml", "-p", "team")
    assert (2, "", []) == (ended.code, ended.output, server.asked)
    assert "There is no file nowhere.yaml" in ended.errors


def test_a_file_that_is_no_text_is_named(osmo: Osmo, tmp_path: Path):
    (tmp_path / "x.yaml").write_bytes(b"\xff")
    ended = osmo("workflow", "submit", str(tmp_path / "x.yaml"), "-p", "team")
    assert (2, True) == (ended.code, "is not UTF-8 text" in ended.errors)
    assert 2 == osmo("workflow", "submit", str(tmp_path), "-p", "team").code


def test_a_refused_workflow_ends_with_1(osmo: Osmo, server: Answering, spec: str):
    message = "Pool team has 10 GPUs guaranteed and group g requires 15 GPUs."
    refusal = {"message": message, "error_code": "USAGE", "workflow_id": "hello-2"}
    server.answer("POST", SUBMIT, refusal, 400)
    expected = f"Error message: Workflow hello-2 submit failed: {message}\nError code: 1\n"
    assert (1, "", expected) == osmo("workflow", "submit", spec, "-p", "team")


def test_a_dry_run_prints_the_spec(osmo: Osmo, server: Answering, spec: str):
    server.answer("POST", SUBMIT, {**SUBMITTED, "spec": SPEC})
    assert (0, SPEC, "") == osmo("workflow", "submit", spec, "-p", "team", "--dry-run")
    assert {"dry_run": ["true"]} == server.last.query


def test_a_workflow_is_only_checked(osmo: Osmo, server: Answering, spec: str):
    server.answer("POST", SUBMIT, {**SUBMITTED, "logs": "Workflow validation succeeded."})
    ended = osmo("workflow", "validate", spec, "-p", "team")
    assert (0, "Workflow validation succeeded.\n", "") == ended
    assert {"validation_only": ["true"]} == server.last.query


def test_a_failed_workflow_is_restarted_where_it_was(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/workflow/hello-1", {"pool": "team--a"})
    server.answer("POST", "/api/pool/team--a/workflow/hello-1/restart", SUBMITTED)
    assert (0, TOLD, "") == osmo("workflow", "restart", "hello-1")
    server.answer("POST", "/api/pool/team/workflow/hello-1/restart", SUBMITTED)
    assert (0, TOLD, "") == osmo("workflow", "restart", "hello-1", "-p", "team")
    assert 3 == len(server.asked)


# The default pool


def test_the_default_pool_is_the_one_of_the_profile(osmo: Osmo, server: Answering, spec: str):
    server.answer("GET", "/api/profile/settings", {"profile": {"pool": "team"}})
    server.answer("POST", SUBMIT, SUBMITTED)
    assert 0 == osmo("workflow", "submit", spec).code


def test_the_only_pool_is_the_default(osmo: Osmo, server: Answering, spec: str):
    server.answer("GET", "/api/profile/settings", {"profile": {"pool": None}})
    server.answer("GET", "/api/pool", {"pools": {"team": {}}})
    server.answer("POST", SUBMIT, SUBMITTED)
    assert 0 == osmo("workflow", "submit", spec).code


def test_without_a_default_one_must_choose(osmo: Osmo, server: Answering, spec: str):
    profile = {"profile": {"pool": None}, "pools": ["a", "b"]}
    server.answer("GET", "/api/profile/settings", profile)
    server.answer("GET", "/api/pool", {"pools": {"a": {}, "b": {}, "c": {}}})
    ended = osmo("workflow", "submit", spec)
    assert (2, True) == (ended.code, "No default pool set." in ended.errors)
    assert "Hint: you may submit to a, b\n" in ended.errors


def test_the_only_pool_that_one_reaches_is_the_default(osmo: Osmo, server: Answering, spec: str):
    profile = {"profile": {"pool": None}, "pools": ["team"]}
    server.answer("GET", "/api/profile/settings", profile)
    server.answer("GET", "/api/pool", {"pools": {"team": {}, "b": {}}})
    server.answer("POST", SUBMIT, SUBMITTED)
    assert 0 == osmo("workflow", "submit", spec).code


# Looking


def test_workflows_are_listed_with_the_newest_last(osmo: Osmo, server: Answering):
    newest = row(2, status="PENDING", priority="LOW")
    page = {"workflows": [newest, row(1, labels={"team": "robotics"})], "more_entries": False}
    server.answer("GET", "/api/workflow", page)
    assert (0, LIST, "") == osmo("workflow", "list")
    assert {
        "order": ["DESC"],
        "limit": ["20"],
        "offset": ["0"],
        "all_pools": ["true"],
        "all_users": ["false"],
    } == server.last.query
    first = json.loads(osmo("workflow", "list", "-o", "desc", "-t", "json").output)
    assert ["wf-2", "wf-1"] == [each["name"] for each in first["workflows"]]


def test_filters_are_the_servers_business(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/workflow", {"workflows": [], "more_entries": False})
    ended = osmo(
        *("workflow", "list", "-c", "5", "-f", "2", "-n", "hel", "-s", "running", "-p", "team"),
        *("-u", "ann", "-u", "bob", "--priority", "low", "--label", "a=b", "--no-label", "c"),
        *("--submitted-after", "2026-01-01", "--tags", "x"),
    )
    assert (0, "There are no workflows to view.\n", "") == ended
    assert {
        "order": ["DESC"],
        "limit": ["5"],
        "offset": ["2"],
        "name": ["hel"],
        "statuses": ["RUNNING"],
        "pools": ["team"],
        "users": ["ann", "bob"],
        "priority": ["LOW"],
        "label": ["a=b"],
        "no_label": ["c"],
        "submitted_after": ["2026-01-01"],
        "tags": ["x"],
    } == server.last.query
    assert 2 == osmo("workflow", "list", "-a", "-u", "ann").code


def test_more_than_a_page_is_asked_for_page_by_page(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/workflow", {"workflows": [row(2)], "more_entries": True})
    server.answer("GET", "/api/workflow", {"workflows": [row(1)], "more_entries": True})
    assert 4 == len(osmo("workflow", "list", "-a", "-c", "1500").output.splitlines())
    asked = [(each.query["limit"], each.query["offset"]) for each in server.asked]
    assert [(["1000"], ["0"]), (["500"], ["1000"])] == asked
    assert ["true"] == server.last.query["all_users"]


def test_a_workflow_is_shown_with_all_attempts(osmo: Osmo, server: Answering):
    tasks = [
        {"name": "master", "retry_id": 1, "start_time": "2026-01-05T10:05:00", "status": "RUNNING"},
        {
            "name": "master",
            "retry_id": 0,
            "start_time": "2026-01-05T10:01:00",
            "status": "RESCHEDULED",
            "exit_code": 3006,
        },
    ]
    document = {
        **row(1, labels={"team": "robotics"}),
        "submitted_by": "alice",
        "groups": [{"name": "g", "tasks": tasks}],
    }
    server.answer("GET", "/api/workflow/wf-1", document)
    assert (0, QUERY, "") == osmo("workflow", "query", "wf-1", "-v")
    assert {"verbose": ["true"]} == server.last.query
    assert "Retry ID" not in osmo("workflow", "query", "wf-1").output
    assert document == json.loads(osmo("workflow", "query", "wf-1", "-t", "json").output)


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


def test_a_query_says_what_was_preempted_for_whom(osmo: Osmo, server: Answering):
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


def test_logs_have_a_heading_and_come_as_they_are(osmo: Osmo, server: Answering):
    text = "2026/01/05 10:05:01 [master] hello\nno end"
    server.answer("GET", "/api/workflow/wf-1/logs", text.encode())
    ended = osmo("workflow", "logs", "wf-1", "-t", "master", "-r", "1", "-n", "10")
    assert (0, f"Workflow wf-1 has logs:\n{text}", "") == ended
    assert {"task_name": ["master"], "retry_id": ["1"], "last_n_lines": ["10"]} == server.last.query


def test_logs_of_errors_and_events_have_paths_of_their_own(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/workflow/wf-1/error_logs", b"")
    server.answer("GET", "/api/workflow/wf-1/events", b"a\nb\n")
    assert "Workflow wf-1 has logs:\n" == osmo("workflow", "logs", "wf-1", "--error").output
    assert "Workflow wf-1 has events:\na\nb\n" == osmo("workflow", "events", "wf-1").output
    assert {} == server.last.query
    osmo("workflow", "logs", "wf-1", "--no-follow")
    assert {"follow": ["false"]} == server.last.query
    ended = osmo("workflow", "events", "wf-1", "--format-type", "json")
    assert ["a", "b"] == json.loads(ended.output)


def test_logs_of_an_unknown_workflow_have_no_heading(osmo: Osmo):
    ended = osmo("workflow", "logs", "wf-1")
    assert (2, "") == ended[:2]


def test_the_spec_is_printed_as_it_is(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/workflow/wf-1/spec", SPEC.encode())
    assert (0, SPEC, "") == osmo("workflow", "spec", "wf-1", "--template")
    assert {"use_template": ["true"]} == server.last.query


# Ending


def test_workflows_are_cancelled_one_by_one(osmo: Osmo, server: Answering):
    server.answer("POST", "/api/workflow/wf-1/cancel", {"name": "wf-1"})
    server.answer("POST", "/api/workflow/wf-3/cancel", {"name": "wf-3"})
    finished = {"message": "Workflow wf-2 is already finished.", "error_code": "USER"}
    server.answer("POST", "/api/workflow/wf-2/cancel", finished, 400)
    ended = osmo("workflow", "cancel", "wf-1", "wf-2", "wf-3", "-m", "no longer")
    assert [
        "Cancel job for workflow wf-1 is submitted!",
        "Cancel job for workflow wf-3 is submitted!",
    ] == ended.output.splitlines()
    assert (
        "Workflow cancelation failed for workflow wf-2: Workflow wf-2 is already finished.\n"
        == ended.errors
    )
    assert (2, {"force": ["false"], "message": ["no longer"]}) == (ended.code, server.last.query)


def test_a_server_that_fails_ends_cancelling(osmo: Osmo, server: Answering):
    server.answer("POST", "/api/workflow/wf-1/cancel", {"message": "x", "error_code": "x"}, 503)
    assert 10 == osmo("workflow", "cancel", "wf-1", "wf-2").code
    assert 1 == len(server.asked)


def test_tags_are_set_on_all(osmo: Osmo, server: Answering):
    server.answer("POST", "/api/workflow/wf-1/tag")
    server.answer("POST", "/api/workflow/wf-2/tag")
    ended = osmo("workflow", "tag", "-w", "wf-1", "-w", "wf-2", "-a", "x", "-r", "y")
    assert (0, "Tags of wf-1, wf-2 are set.\n", "") == ended
    assert {"add": ["x"], "remove": ["y"]} == server.last.query


# Tasks


TASK = {
    "user": "alice",
    "workflow_id": "wf-1",
    "task_name": "master",
    "status": "RUNNING",
    "pool": "team",
    "priority": "NORMAL",
    "node": "n1",
    "start_time": None,
    "storage": 1.0,
    "cpu": 0.5,
    "memory": 2.0,
    "gpu": 8,
}


def test_tasks_that_wait_or_run_are_listed(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/task", {"tasks": [TASK]})
    lines = osmo("task", "list").output.splitlines()
    assert "alice   wf-1          master   RUNNING   team   NORMAL     n1     -" == lines[2]
    assert ["PROCESSING", "SCHEDULING", "INITIALIZING", "RUNNING"] == server.last.query["statuses"]
    assert (["ASC"], ["false"]) == (server.last.query["order"], server.last.query["all_users"])


def test_tasks_are_added_up(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/task", {"tasks": [TASK, TASK], "summaries": [TASK, TASK]})
    last = osmo("task", "list", "-v", "-a").output.splitlines()[-1]
    assert ["2", "1", "4", "16"] == last.split()
    lines = osmo("task", "list", "-W", "-n", "n1").output.splitlines()
    assert ["alice", "wf-1", "team", "NORMAL", "1", "0.5", "2", "8"] == lines[2].split()
    assert (["true"], ["n1"]) == (
        server.last.query["aggregate_by_workflow"],
        server.last.query["nodes"],
    )
    assert "Workflow ID" not in osmo("task", "list", "-S").output
    server.answers.clear()
    server.answer("GET", "/api/task", {"tasks": [], "summaries": []})
    assert "There are no tasks to view.\n" == osmo("task", "list").output
    assert "There are no tasks to view.\n" == osmo("task", "list", "--summary").output
    assert 2 == osmo("task", "list", "-a", "-u", "ann").code
