"""Logs, events and specs of workflows, and how workflows are cancelled and tagged."""

from __future__ import annotations

import json

from tests.answering import Answering
from tests.unit.conftest import Osmo

SPEC = "workflow:\n  name: hello\n"


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
