"""Logs, events and specs of workflows, and how workflows are cancelled and tagged."""

from __future__ import annotations

import json

import pytest

from bough.api.common import STREAM_STOPPED
from bough.cli import workflow_watching
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
    server.answer("GET", "/api/workflow/wf-1/logs", b"")
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


def says(server: Answering, status: str, code: int | None = None, **group: object) -> None:
    task = {"name": "main", "status": status, "exit_code": code}
    body = {"name": "wf-1", "status": status, "groups": [{**group, "tasks": [task]}]}
    server.answer("GET", "/api/workflow/wf-1", body)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow_watching, "FIRST_PAUSE_S", 0)
    monkeypatch.setattr(workflow_watching, "LONGEST_PAUSE_S", 0)


@pytest.mark.usefixtures("no_pauses")
def test_a_followed_log_says_first_why_nothing_comes_and_ends_with_the_exit_code(
    bough: Osmo, server: Answering
):
    says(server, "PENDING", wait_message="4 GPUs are missing")
    says(server, "RUNNING")
    says(server, "FAILED", 7)
    server.answer("GET", "/api/workflow/wf-1/logs", b"2026/01/05 10:05:01 [main] hello\n")
    ended = bough("workflow", "logs", "wf-1", "--utc")
    assert (7, "wf-1: waits: 4 GPUs are missing\n") == (ended.code, ended.errors)
    expected = ["Workflow wf-1 has logs:", "2026/01/05 10:05:01 [main] hello"]
    assert expected == ended.output.splitlines()


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_a_log_goes_on_after_its_server_was_started_again(
    bough: Osmo, server: Answering, options: tuple[str, ...]
):
    first = [f"2026/01/05 10:05:0{second} [main] {text}\n" for second, text in ((1, "a"), (2, "b"))]
    rest = ["2026/01/05 10:05:02 [main] b\n", "2026/01/05 10:05:03 [main] c\n"]
    earlier = ["2026/01/05 10:05:00 [main] before the last two\n"] if options else []
    says(server, "RUNNING")
    says(server, "RUNNING")
    says(server, "COMPLETED", 0)
    server.answer("GET", "/api/workflow/wf-1/logs", "".join([*first, STREAM_STOPPED]).encode())
    server.answer("GET", "/api/workflow/wf-1/logs", "".join([*earlier, *first, *rest]).encode())
    ended = bough("workflow", "logs", "wf-1", "--utc", *options)
    # The same line twice in a second is two lines.
    assert (0, ["a", "b", "b", "c"]) == (
        ended.code,
        [line.split()[-1] for line in ended.output.splitlines()[1:]],
    )


@pytest.mark.usefixtures("no_pauses")
def test_the_log_of_a_task_waits_for_the_task(bough: Osmo, server: Answering):
    for status, code in (("WAITING", None), ("COMPLETED", 0)):
        tasks = [{"name": "later", "status": status, "exit_code": code}]
        group = {"name": "g", "remaining_upstream_groups": ["first"], "tasks": tasks}
        running = {"name": "wf-1", "status": "RUNNING", "groups": [group]}
        server.answer("GET", "/api/workflow/wf-1", running)
    server.answer("GET", "/api/workflow/wf-1/logs", b"")
    ended = bough("workflow", "logs", "wf-1", "--task", "later")
    assert (0, "wf-1: waits: for first\n") == (ended.code, ended.errors)


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("status", ["PENDING", "RUNNING", "COMPLETED"])
def test_the_log_of_a_task_that_does_not_exist_is_not_waited_for(
    bough: Osmo, server: Answering, status: str
):
    says(server, status)
    says(server, status)
    # Where it would be waited for, this ends it.
    says(server, "COMPLETED", 0)
    server.answer("GET", "/api/workflow/wf-1/logs", b"")

    ended = bough("workflow", "logs", "wf-1", "--task", "worker")

    said = "error: Workflow wf-1 has no task worker.\nhint: its only task is main\n"
    assert (2, "", said) == ended


def test_logs_that_do_not_exist_yet_say_why_and_have_no_heading(bough: Osmo, server: Answering):
    group = {"wait_message": "4 GPUs are missing", "tasks": [{"name": "main", "status": "WAITING"}]}
    server.answer("GET", "/api/workflow/wf-1", {"status": "PENDING", "groups": [group]})
    server.answer("GET", "/api/workflow/wf-1/logs", b"")

    ended = bough("workflow", "logs", "wf-1", "--no-follow")

    assert (0, "", "wf-1: has no logs yet; waits: 4 GPUs are missing\n") == ended


@pytest.mark.parametrize(("options", "code"), [(("--no-follow",), 0), ((), 1)])
def test_logs_of_a_refused_workflow_say_why_it_was_refused(
    bough: Osmo, server: Answering, options: tuple[str, ...], code: int
):
    refused = {"status": "FAILED_SUBMISSION", "failure_message": "Pool p has 1 GPU.", "groups": []}
    server.answer("GET", "/api/workflow/wf-1", refused)
    server.answer("GET", "/api/workflow/wf-1/logs", b"")

    ended = bough("workflow", "logs", "wf-1", *options)

    assert (code, "", "wf-1: has no logs: Pool p has 1 GPU.\n") == ended


def test_scripts_of_osmo_find_the_heading_where_there_are_no_logs(osmo: Osmo, server: Answering):
    says(server, "PENDING")
    server.answer("GET", "/api/workflow/wf-1/logs", b"")
    expected = (0, "Workflow wf-1 has logs:\n", "")
    assert expected == osmo("workflow", "logs", "wf-1", "--no-follow")


def test_a_task_that_was_silent_has_an_empty_log(bough: Osmo, server: Answering):
    says(server, "RUNNING")
    server.answer("GET", "/api/workflow/wf-1/logs", b"")
    expected = (0, "Workflow wf-1 has logs:\n", "")
    assert expected == bough("workflow", "logs", "wf-1", "--no-follow")


@pytest.mark.usefixtures("no_pauses")
def test_a_followed_log_that_is_refused_has_no_heading(bough: Osmo, server: Answering):
    says(server, "RUNNING")
    missing = {"message": "Workflow wf-1 has no retry 7."}
    server.answer("GET", "/api/workflow/wf-1/logs", missing, 404)
    ended = bough("workflow", "logs", "wf-1", "-r", "7")
    assert (2, "", "error: Workflow wf-1 has no retry 7.\n") == ended
