"""`osmo workflow submit` and `validate` with files of one's own, as servers see them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.answering import Answering
from tests.unit.conftest import Osmo

SUBMIT = "/api/pool/team/workflow"
ANSWER = {"name": "x-1", "overview": "o", "logs": "l", "spec": None, "warnings": []}
PLAIN = "workflow: {name: x, tasks: [{name: a, files: [{path: f, localpath: scripts/run.sh}]}]}\n"
TEMPLATE = PLAIN.replace("name: x", "name: {{ name }}") + "default-values: {name: x}\n"


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
