"""`bough run`, `workflow wait` and `submit --wait` as people and servers see them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bough.cli import workflow_watching
from tests.answering import Answering
from tests.unit.conftest import Osmo

SUBMIT = "/api/pool/team/workflow"
RUN = ("run", "--pool", "team")
LOG = b"2026/01/05 10:05:01 [main] hello [x] y\n2026/01/05 10:05:02 [main]   indented\n"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workflow_watching, "FIRST_PAUSE_S", 0)
    monkeypatch.setattr(workflow_watching, "LONGEST_PAUSE_S", 0)


@pytest.fixture
def accepting(server: Answering) -> Answering:
    server.answer("POST", SUBMIT, {"name": "x-1", "overview": "o"})
    return server


def tells(server: Answering, *statuses: str, code: int | None = None, **group: Any) -> None:
    """Let the workflow have one status after the other; the last one stays."""
    for status in statuses:
        task = {"name": "main", "status": status, "exit_code": code}
        body = {"name": "x-1", "status": status, "groups": [{**group, "tasks": [task]}]}
        server.answer("GET", "/api/workflow/x-1", body)


def test_the_output_is_the_commands_own_and_so_is_the_exit_code(bough: Osmo, accepting: Answering):
    tells(accepting, "RUNNING", "FAILED", code=7)
    accepting.answer("GET", "/api/workflow/x-1/logs", LOG)
    ended = bough(*RUN, "--", "sh", "-c", "exit 7")
    assert (7, "hello [x] y\n  indented\n", "x-1: submitted\n") == ended


def test_while_it_waits_the_reason_is_told_once(bough: Osmo, accepting: Answering):
    tells(accepting, "PENDING", "PENDING", wait_message="4 GPUs are missing")
    tells(accepting, "COMPLETED", code=0)
    accepting.answer("GET", "/api/workflow/x-1/logs", b"")
    ended = bough(*RUN, "true")
    assert (0, "", "x-1: submitted\nx-1: waits: 4 GPUs are missing\n") == ended
    tells(accepting, "COMPLETED")
    assert (0, "", "") == bough(*RUN, "--quiet", "true")


def test_a_warning_that_it_may_never_start_is_told_to_the_quiet_too(bough: Osmo, server: Answering):
    server.answer(
        "POST", SUBMIT, {"name": "x-1", "overview": "o", "warnings": ["no node has 3 GPUs."]}
    )
    tells(server, "COMPLETED")
    server.answer("GET", "/api/workflow/x-1/logs", b"")
    assert (0, "", "WARNING: no node has 3 GPUs.\n") == bough(*RUN, "--quiet", "true")


def test_what_is_submitted_is_what_was_asked_for(bough: Osmo, accepting: Answering, tmp_path: Path):
    tells(accepting, "COMPLETED")
    accepting.answer("GET", "/api/workflow/x-1/logs", b"")
    sizes = ("--gpus", "2", "--cpus", "4", "--memory", "16Gi", "--storage", "10Gi")
    options = (*sizes, "--image", "i", "--env", "A=1", "--env", "HOME")
    more = ("--priority", "low", "--label", "a=b", "--timeout", "8h", "--name", "n")
    saved = tmp_path / "saved.yaml"
    ended = bough(*RUN, *options, *more, "--save", str(saved), "python", "train.py", "--gpus", "1")
    assert 0 == ended.code, ended
    (asked,) = [each for each in accepting.asked if each.method == "POST"]
    assert {"priority": ["LOW"], "label": ["a=b"]} == asked.query
    assert saved.read_text() == asked.body["file"]
    (task,) = (workflow := yaml.safe_load(saved.read_text())["workflow"])["tasks"]
    assert ["python", "train.py", "--gpus", "1"] == task["command"]
    assert ("1", "i") == (task["environment"]["A"], task["image"])
    assert {"A", "HOME"} == set(task["environment"])
    expected = {"gpu": 2, "cpu": "4", "memory": "16Gi", "storage": "10Gi"}
    assert expected == workflow["resources"]["default"]
    assert ("n", {"exec_timeout": "8h"}) == (workflow["name"], workflow["timeout"])


@pytest.mark.parametrize(
    ("status", "code"),
    [("FAILED_START_ERROR", 3003), ("FAILED_CANCELED", None), ("FAILED", 0), ("FAILED", 256)],
)
def test_what_no_command_failed_of_ends_with_125(
    bough: Osmo, accepting: Answering, status: str, code: int | None
):
    tells(accepting, status, code=code)
    accepting.answer("GET", "/api/workflow/x-1/logs", b"")
    ended = bough(*RUN, "true")
    assert (125, "") == ended[:2]
    assert f"x-1: {status}: its command was not run" == ended.errors.splitlines()[-1]


def test_what_goes_wrong_before_ends_with_125(bough: Osmo, server: Answering, tmp_path: Path):
    refusal = {"message": "too much", "error_code": "USAGE", "workflow_id": "x-1"}
    server.answer("POST", SUBMIT, refusal, 400)
    assert 125 == bough(*RUN, "true").code
    assert (125, "") == bough("run", "--no-such-option", "true")[:2]
    assert 125 == bough("run").code
    assert "NO_SUCH_VARIABLE" in (ended := bough(*RUN, "--env", "NO_SUCH_VARIABLE", "true")).errors
    assert 125 == ended.code
    asked = len(server.asked)
    kept = tmp_path / "kept"
    kept.write_text("mine")
    ended = bough(*RUN, "--save", str(kept), "true")
    assert (125, "mine", asked) == (ended.code, kept.read_text(), len(server.asked))


def test_detached_it_only_submits(bough: Osmo, accepting: Answering):
    ended = bough(*RUN, "--detach", "-t", "json", "true")
    assert "x-1" == json.loads(ended.output)["name"]
    assert 1 == len(accepting.asked)


def test_a_dry_run_asks_no_server(bough: Osmo, server: Answering):
    ended = bough("run", "--dry-run", "echo", "{{ x }}")
    assert ["echo", "{{ x }}"] == yaml.safe_load(ended.output)["workflow"]["tasks"][0]["command"]
    assert (0, []) == (ended.code, server.asked)


def test_a_broken_log_goes_on_where_it_was(bough: Osmo, accepting: Answering):
    tells(accepting, "RUNNING", "RUNNING", "COMPLETED")
    first, second = LOG.splitlines(keepends=True)
    accepting.answer("GET", "/api/workflow/x-1/logs", first)
    accepting.answer("GET", "/api/workflow/x-1/logs", first + second)
    assert "hello [x] y\n  indented\n" == bough(*RUN, "true").output


def test_an_interrupted_run_goes_on_unless_it_is_told_to_end(
    bough: Osmo, accepting: Answering, monkeypatch: pytest.MonkeyPatch
):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(workflow_watching.Watch, "until_started", interrupt)
    ended = bough(*RUN, "true")
    assert 130 == ended.code
    assert "x-1 goes on." in ended.errors
    assert "bough workflow cancel x-1" in ended.errors
    assert not [each for each in accepting.asked if each.path.endswith("cancel")]


def test_workflows_are_waited_for(bough: Osmo, server: Answering):
    tells(server, "PENDING", "RUNNING", "COMPLETED")
    other = {"name": "y-1", "status": "FAILED", "failure_message": "exit code 3", "groups": []}
    server.answer("GET", "/api/workflow/y-1", other)
    assert (0, "x-1 COMPLETED\n", "") == bough("workflow", "wait", "x-1")
    ended = bough("workflow", "wait", "x-1", "y-1")
    assert (1, "x-1 COMPLETED\ny-1 FAILED: exit code 3\n", "") == ended
    found = json.loads(bough("workflow", "wait", "x-1", "-t", "json").output)["workflows"]
    assert ["COMPLETED"] == [each["status"] for each in found]


def test_waiting_can_be_given_up(bough: Osmo, server: Answering):
    tells(server, "RUNNING")
    ended = bough("workflow", "wait", "x-1", "--timeout", "0")
    assert (1, "x-1 RUNNING\n", "not all have ended after 0 seconds\n") == ended


def test_a_submission_can_wait_for_its_end(bough: Osmo, accepting: Answering, tmp_path: Path):
    spec = tmp_path / "job.yaml"
    spec.write_text("workflow: {name: x}\n")
    tells(accepting, "RUNNING", "FAILED")
    ended = bough("workflow", "submit", str(spec), "--pool", "team", "--wait")
    assert (1, "x-1 FAILED\n", "") == ended


def test_a_server_that_comes_back_is_waited_for(bough: Osmo, server: Answering):
    away = {"message": "The server is being stopped.", "error_code": "unavailable"}
    server.answer("GET", "/api/workflow/x-1", away, 503)
    tells(server, "COMPLETED")
    ended = bough("workflow", "wait", "x-1")
    assert (0, "x-1 COMPLETED\n") == ended[:2]
    assert "the server does not answer, trying again" in ended.errors


def test_the_list_can_show_what_waits(bough: Osmo, server: Answering):
    server.answer("GET", "/api/workflow", {"workflows": [], "more_entries": False})
    server.answer("GET", "/api/array", {"arrays": [], "more_entries": False})
    bough("workflow", "list", "--mine", "--waiting")
    (query,) = [each.query for each in server.asked if each.path == "/api/workflow"]
    assert (["PENDING", "WAITING"], ["false"]) == (query["statuses"], query["all_users"])
    for wrong in (("--waiting", "-s", "RUNNING"), ("--mine", "-a"), ("--mine", "-u", "x")):
        assert 2 == bough("workflow", "list", *wrong).code


def array(server: Answering, status: str, **statuses: int) -> None:
    body = {"name": "x-1", "status": status, "elements": 3, "statuses": statuses, "archived": 0}
    server.answer("GET", "/api/array/x-1", body)


def test_an_array_tells_how_far_it_is_and_ends_with_success_if_all_completed(
    bough: Osmo, server: Answering
):
    server.answer("POST", SUBMIT, {"name": "x-1", "overview": "o", "elements": 3})
    array(server, "RUNNING", PENDING=2, RUNNING=1)
    array(server, "COMPLETED", COMPLETED=3)
    ended = bough(
        *RUN, "--array", "0-2%1", "--afterok", "y-1", "--retries", "2", "echo", "{{array}}"
    )
    told = ["x-1: of 3: 2 PENDING, 1 RUNNING", "x-1: of 3: 3 COMPLETED"]
    assert (0, "", told) == (ended.code, ended.output, ended.errors.splitlines())
    (asked,) = [each for each in server.asked if each.method == "POST"]
    workflow = yaml.safe_load(asked.body["file"])["workflow"]
    assert ("0-2%1", ["y-1"]) == (workflow["array"], workflow["afterok"])
    (task,) = workflow["tasks"]
    assert (["echo", "{{array}}"], 2) == (task["command"], task["retries"])
    server.answers.pop(("GET", "/api/array/x-1"))
    array(server, "FAILED", FAILED=1, COMPLETED=2)
    assert 1 == bough(*RUN, "--array", "0-2", "true").code
    ended = bough("workflow", "wait", "x-1")
    assert (1, "x-1 FAILED\n") == (ended.code, ended.output)


def test_a_list_and_a_query_tell_an_array_as_one(bough: Osmo, server: Answering):
    server.answer("GET", "/api/workflow", {"workflows": [], "more_entries": False})
    line = {"name": "x-1", "status": "RUNNING", "pool": "team", "priority": "LOW", "elements": 9}
    line |= {"statuses": {"PENDING": 4, "RUNNING": 3, "FAILED": 2}}
    server.answer("GET", "/api/array", {"arrays": [line], "more_entries": False})
    ended = bough("workflow", "list", "--waiting")
    assert [
        ["ARRAY", "STATUS", "POOL", "PRIORITY", "ELEMENTS", "WAITING", "RUNNING", "FAILED"],
        ["x-1", "RUNNING", "team", "LOW", "9", "4", "3", "2"],
    ] == [each.split() for each in ended.output.splitlines()]
    found = json.loads(bough("workflow", "list", "-t", "json").output)
    assert (["x-1"], []) == ([each["name"] for each in found["arrays"]], found["workflows"])
    assert "elements" in server.asked[-2].query
    # By status its elements are looked for, each of which has its own.
    bough("workflow", "list", "--status", "FAILED")
    assert "elements" not in server.last.query
    array(server, "RUNNING", PENDING=2, RUNNING=1)
    ended = bough("workflow", "query", "x-1")
    assert ["PENDING", "2"] in [each.split() for each in ended.output.splitlines()]
    assert 2 == bough("workflow", "query", "y-1").code
