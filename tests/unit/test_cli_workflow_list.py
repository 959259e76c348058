"""`osmo workflow list` and `osmo task list` as people and programs see them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.answering import Answering
from tests.unit.conftest import Osmo

LIST = """\
User    Workflow ID   Submit Time              Status    Priority   Labels          Overview
===========================================================================================================================
alice   wf-1          Jan 05, 2026 10:00 UTC   RUNNING   NORMAL     team=robotics   https://osmo.example.com/workflows/wf-1
alice   wf-2          Jan 05, 2026 11:00 UTC   PENDING   LOW        -               https://osmo.example.com/workflows/wf-2
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


# Tasks


AMOUNTS = ("storage", "cpu", "memory", "gpu")
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
    line = {name: TASK[name] for name in ("user", "workflow_id", "pool", "priority", *AMOUNTS)}
    server.answer("GET", "/api/task", {"tasks": [TASK, TASK], "summaries": [line, line]})
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


@pytest.mark.parametrize("options", [(), ("--name", "wf")])
def test_an_empty_list_says_that_others_have_workflows(
    bough: Osmo, server: Answering, options: tuple[str, ...]
):
    server.answer("GET", "/api/workflow", {"workflows": [], "more_entries": False})
    server.answer("GET", "/api/workflow", {"workflows": [row(1)], "more_entries": True})
    server.answer("GET", "/api/workflow", {"workflows": [], "more_entries": False})

    expected = "You have no workflows to view; --all-users shows those of others.\n"
    assert (0, expected, "") == bough("workflow", "list", "--pool", "team", *options)
    wider = next(each.query for each in server.asked if each.query.get("limit") == ["1"])
    assert (["true"], ["team"]) == (wider["all_users"], wider["pools"])
    # Nor have others any now.
    assert "There are no workflows to view.\n" == bough("workflow", "list", *options).output
