"""What `osmo workflow` says about workflows that wait or have failed."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Any

import pytest

from bough.model.workflow import TaskStatus, WorkflowStatus
from tests.answer_types import complete
from tests.answering import Answering
from tests.unit.conftest import Osmo

WORKFLOW = {
    "name": "wf-1",
    "submit_time": "2026-01-05T10:00:00",
    "status": "PENDING",
    "overview": "http://host/workflows/wf-1",
}
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
        "name": name,
        "submit_time": f"2026-01-05T{9 + number}:00:00",
        "status": "RUNNING",
        "priority": "NORMAL",
        "labels": {},
        "overview": f"https://osmo.example.com/workflows/{name}",
        **more,
    }


def test_a_failed_workflow_says_what_is_wrong_with_each_task(osmo: Osmo, server: Answering):
    def task(name: str, message: str | None, retry: int = 0) -> Any:
        return {
            "name": name,
            "retry_id": retry,
            "start_time": None,
            "status": "FAILED",
            "failure_message": message,
        }

    workers = [task(f"w{number}", "The lead has failed.") for number in range(5)]
    document = {
        **WORKFLOW,
        "submitted_by": "alice",
        "failure_message": "It ended with 7.",
        "groups": [{"name": "g", "tasks": [task("lead", "It ended with 7.", 1), *workers]}],
    }
    server.answer("GET", "/api/workflow/wf-1", document)
    expected = [
        "Failure: It ended with 7.",
        "",
        "Messages:",
        "  lead: It ended with 7.",
        "  w0, w1, w2 and 2 more: The lead has failed.",
    ]
    assert expected == osmo("workflow", "query", "wf-1").output.splitlines()[-5:]
    assert "  lead (retry 1): It ended with 7." in osmo("workflow", "query", "wf-1", "-v").output
    document["groups"] = [{"name": "g", "tasks": [task("lead", "It ended with 7.")]}]
    server.answers.clear()
    server.answer("GET", "/api/workflow/wf-1", document)
    assert "Messages" not in osmo("workflow", "query", "wf-1").output


def test_a_workflow_that_waits_says_why(osmo: Osmo, server: Answering):
    group = {"name": "g", "tasks": [], "wait_reason": "quota", "wait_message": "it needs 2 GPUs"}
    document = {**WORKFLOW, "submitted_by": "alice", "groups": [group]}
    server.answer("GET", "/api/workflow/wf-1", document)
    shown = osmo("workflow", "query", "wf-1").output.splitlines()
    more = "Waiting (more: osmo workflow why wf-1):"
    assert ["", more, "  g: it needs 2 GPUs (quota)"] == shown[-3:]


@pytest.mark.parametrize("command", ["workflow", "task"])
def test_a_status_that_does_not_exist_is_answered_with_those_that_do(osmo: Osmo, command: str):
    ended = osmo(command, "list", "--status", "done")
    assert 2 == ended.code
    assert "'DONE' is not one of" in ended.errors
    assert "'COMPLETED'" in ended.errors


@pytest.mark.parametrize(
    ("command", "statuses"), [("workflow", WorkflowStatus), ("task", TaskStatus)]
)
def test_the_statuses_are_those_of_the_model(osmo: Osmo, command: str, statuses: type[StrEnum]):
    ended = osmo(command, "list", "--status", "none")

    named = ended.errors.partition("is not one of")[2].partition("\n")[0]
    assert (2, set(statuses)) == (ended.code, set(re.findall(r"'(\w+)'", named)))


def test_programs_are_told_what_could_not_be_cancelled(osmo: Osmo, server: Answering):
    server.answer("POST", "/api/workflow/wf-1/cancel", {"message": "It is over."}, 400)
    ended = osmo("workflow", "cancel", "wf-1", "-t", "json")
    assert (2, "") == (ended.code, ended.errors)
    message = "Workflow cancelation failed for workflow wf-1: It is over."
    assert {"message": message, "code": 400} == json.loads(ended.output)


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
    document = complete("GET", "/api/workflow/wf-1", document)
    server.answer("GET", "/api/workflow/wf-1", document)
    assert (0, QUERY, "") == osmo("workflow", "query", "wf-1", "-v")
    assert {"verbose": ["true"]} == server.last.query
    assert "Retry ID" not in osmo("workflow", "query", "wf-1").output
    sent = complete("GET", "/api/workflow/wf-1", document)
    assert sent == json.loads(osmo("workflow", "query", "wf-1", "-t", "json").output)
