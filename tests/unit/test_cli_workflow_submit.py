"""`osmo workflow submit`, `validate` and `restart` as people, programs and servers see them."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import yaml

from tests.answering import Answering
from tests.unit.conftest import Osmo

SUBMIT = "/api/pool/team/workflow"
ANSWER = {"name": "x-1", "overview": "o", "logs": "l", "spec": None, "warnings": []}
PLAIN = "workflow: {name: x, tasks: [{name: a, files: [{path: f, localpath: scripts/run.sh}]}]}\n"
TEMPLATE = PLAIN.replace("name: x", "name: {{ name }}") + "default-values: {name: x}\n"
SPEC = "workflow:\n  name: hello\n"
SUBMITTED = {
    "name": "hello-1",
    "overview": "http://host/workflows/hello-1",
    "logs": "http://host/logs",
    "spec": None,
    "dashboard_url": None,
    "default_limits": None,
    "elements": None,
    "warnings": [],
}
TOLD = """\
Workflow submit successful.
Workflow ID        - hello-1
Workflow Overview  - http://host/workflows/hello-1
"""


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


def test_limits_of_tasks_that_ask_for_none_are_shown(
    osmo: Osmo, bough: Osmo, server: Answering, spec: str
):
    limits = {"memory": "3Gi", "storage": "30Gi"}
    server.answer("POST", SUBMIT, {**SUBMITTED, "default_limits": limits})
    ended = osmo("workflow", "submit", spec, "-p", "team", "-t", "json")
    assert limits == json.loads(ended.output)["default_limits"]
    # Under the name `osmo` the text keeps its form.
    assert TOLD == osmo("workflow", "submit", spec, "-p", "team").output
    shown = bough("workflow", "submit", spec, "-p", "team").output
    line = "Default Limits     - 3Gi of memory and 30Gi of disk for each GPU of a task\n"
    assert line in shown


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


# Files that are sent along


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "run.sh").write_text("echo hi\n")
    (tmp_path / "plain.yaml").write_text(PLAIN)
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    return tmp_path


def contents(text: str) -> str:
    return yaml.safe_load(text)["workflow"]["tasks"][0]["files"][0]["contents"]


@pytest.mark.parametrize("command", ["submit", "validate"])
def test_files_are_sent_along(osmo: Osmo, server: Answering, folder: Path, command: str):
    server.answer("POST", SUBMIT, ANSWER)
    ended = osmo("workflow", command, str(folder / "plain.yaml"), "-p", "team")

    assert 0 == ended.code
    assert 1 == len(server.asked)
    assert "echo hi\n" == contents(server.last.body["file"])
    assert None is server.last.body["uploaded_templated_spec"]


@pytest.mark.parametrize("command", ["submit", "validate"])
def test_a_template_with_files_is_rendered_first(
    osmo: Osmo, server: Answering, folder: Path, command: str
):
    server.answer("POST", SUBMIT, {**ANSWER, "spec": PLAIN})
    path = str(folder / "template.yaml")
    ended = osmo("workflow", command, path, "-p", "team", "--set", "name=y", "--label", "a=b")

    first, second = server.asked
    assert 0 == ended.code
    assert (TEMPLATE, ["name=y"]) == (first.body["file"], first.body["set_variables"])
    assert {"dry_run": ["true"]} == first.query
    assert "echo hi\n" == contents(second.body["file"])
    assert (TEMPLATE, []) == (second.body["uploaded_templated_spec"], second.body["set_variables"])
    assert ["a=b"] == second.query["label"]


def test_a_dry_run_sends_what_is_written(osmo: Osmo, server: Answering, folder: Path):
    server.answer("POST", SUBMIT, {**ANSWER, "spec": PLAIN})
    ended = osmo("workflow", "submit", str(folder / "template.yaml"), "-p", "team", "--dry-run")

    assert (0, PLAIN) == (ended.code, ended.output)
    assert [TEMPLATE] == [each.body["file"] for each in server.asked]


def test_a_template_without_files_is_sent_once(osmo: Osmo, server: Answering, tmp_path: Path):
    server.answer("POST", SUBMIT, ANSWER)
    (tmp_path / "t.yaml").write_text("workflow: {name: {{ x }}}")
    osmo("workflow", "submit", str(tmp_path / "t.yaml"), "-p", "team", "--set", "x=1")

    assert [("workflow: {name: {{ x }}}", ["x=1"])] == [
        (each.body["file"], each.body["set_variables"]) for each in server.asked
    ]


def test_a_file_that_is_not_there_is_named_and_nothing_sent(
    osmo: Osmo, server: Answering, folder: Path
):
    (folder / "scripts" / "run.sh").unlink()
    ended = osmo("workflow", "submit", str(folder / "plain.yaml"), "-p", "team")

    assert (2, []) == (ended.code, server.asked)
    assert "localpath 'scripts/run.sh': there is no file" in ended.errors


def test_a_workflow_that_is_no_yaml_is_named(osmo: Osmo, server: Answering, folder: Path):
    (folder / "plain.yaml").write_text("localpath: [")
    ended = osmo("workflow", "submit", str(folder / "plain.yaml"), "-p", "team")

    assert (2, []) == (ended.code, server.asked)
    assert "no valid YAML" in ended.errors


def test_an_earlier_workflow_is_submitted_again_with_additions(osmo: Osmo, server: Answering):
    server.answer("POST", SUBMIT, {**ANSWER, "spec": PLAIN})
    again = ("workflow", "submit", "x-7", "-p", "team", "--label", "a=b", "--set-env", "C=d")

    assert 0 == osmo(*again).code
    asked = {"workflow_id": ["x-7"], "label": ["a=b"], "env_vars": ["C=d"]}
    assert (asked, None) == (server.last.query, server.last.body)

    assert (0, PLAIN) == osmo(*again, "--dry-run")[:2]
    assert ["true"] == server.last.query["dry_run"]


@pytest.mark.parametrize("option", ["--set", "--set-string"])
def test_nothing_can_be_set_in_an_earlier_workflow(osmo: Osmo, server: Answering, option: str):
    ended = osmo("workflow", "submit", "x-7", "-p", "team", option, "a=1")

    assert (2, []) == (ended.code, server.asked)
    assert "x-7 is submitted again as it was rendered" in ended.errors
