"""`bough app`: what is asked of the server, and what is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.answering import Answering
from tests.unit.conftest import Osmo

TEXT = """\
workflow:
  name: {{ name }}
default-values:
  name: training   # what it is called

  sizes:
  - 1
# the end
"""
VERSION = {
    "version": 2,
    "created_by": "ann",
    "created_date": "2026-01-05T10:00:00",
    "status": "READY",
}
APP = {
    "uuid": "u",
    "name": "train",
    "description": "Trains a model",
    "created_date": "2026-01-05T10:00:00",
    "owner": "ann",
    "latest_version": 2,
    "versions": [VERSION, {**VERSION, "version": 1, "status": "DELETED"}],
}
MADE = {
    "uuid": "u",
    "version": 2,
    "name": "train",
    "created_by": "ann",
    "created_date": "2026-01-05T10:00:00",
}
PATH = "/api/app/user/train"


@pytest.fixture
def file(tmp_path: Path) -> str:
    found = tmp_path / "train.yaml"
    found.write_text(TEXT)
    return str(found)


def test_an_app_is_created_from_a_file(osmo: Osmo, server: Answering, file: str):
    server.answer("POST", PATH)
    server.answer("GET", PATH, APP)

    ended = osmo("app", "create", "train", "-d", "Trains a model", "-f", file)

    assert (0, "App train is created.\n", "") == ended
    sent = server.asked[0]
    assert ({"description": ["Trains a model"]}, TEXT) == (sent.query, sent.body)


def test_an_app_is_updated_from_a_file(osmo: Osmo, server: Answering, file: str):
    server.answer("PATCH", PATH, MADE)

    assert (0, "App train has version 2.\n", "") == osmo("app", "update", "train", "-f", file)
    assert TEXT == server.last.body


def test_a_version_is_edited(osmo: Osmo, server: Answering, monkeypatch: pytest.MonkeyPatch):
    server.answer("GET", f"{PATH}/spec", TEXT.encode())
    server.answer("PATCH", PATH, MADE)
    monkeypatch.setenv("EDITOR", "sed -i s/training/fitting/")

    assert (0, "App train has version 2.\n", "") == osmo("app", "update", "train:1")
    assert TEXT.replace("training", "fitting") == server.last.body


def test_nothing_is_sent_where_nothing_was_edited(
    osmo: Osmo, server: Answering, monkeypatch: pytest.MonkeyPatch
):
    server.answer("GET", f"{PATH}/spec", TEXT.encode())
    monkeypatch.setenv("EDITOR", "true")

    ended = osmo("app", "update", "train")

    assert 2 == ended.code
    assert "Nothing was changed in the editor, so nothing is sent." in ended.errors


def test_an_app_is_shown_with_its_versions(osmo: Osmo, server: Answering):
    server.answer("GET", PATH, APP)

    lines = osmo("app", "info", "train", "--utc").output.splitlines()

    assert "Name         : train" == lines[0].rstrip()
    assert ["1", "2"] == [line.split()[0] for line in lines[-2:]]
    assert {"order": ["DESC"], "limit": ["20"]} == server.last.query
    assert APP["uuid"] == json.loads(osmo("app", "info", "train", "-t", "json").output)["uuid"]


def test_the_values_that_can_be_set_are_shown_with_their_comments(osmo: Osmo, server: Answering):
    server.answer("GET", PATH, APP)
    server.answer("GET", f"{PATH}/spec", TEXT.encode())

    expected = """\
DESCRIPTION
    Trains a model

PARAMETERS
      name: training   # what it is called

      sizes:
      - 1
    # the end
"""
    assert (0, expected, "") == osmo("app", "show", "train")


def test_apps_are_listed(osmo: Osmo, server: Answering):
    line = {key: APP[key] for key in APP if key != "versions"}
    server.answer("GET", "/api/app", {"apps": [line], "more_entries": False})
    server.answer("GET", "/api/app", {"apps": [], "more_entries": False})

    shown = osmo("app", "list", "-n", "tra", "-a").output.splitlines()

    assert ["ann", "train", "Trains", "a", "model"] == shown[2].split()[:5]
    assert "There are no apps to view.\n" == osmo("app", "list").output
    assert 2 == osmo("app", "list", "-a", "-u", "ben").code


def test_a_version_is_deleted_once_that_is_confirmed(osmo: Osmo, server: Answering):
    server.answer("DELETE", PATH, {"versions": [2]})

    assert (0, "Deleted versions of app train: 2.\n", "") == osmo("app", "delete", "train:2", "-f")
    assert {"version": ["2"]} == server.last.query
    assert 0 == osmo("app", "delete", "train", "--all", "--force").code
    assert {"all_versions": ["true"]} == server.last.query
    assert 2 == osmo("app", "delete", "train").code
    assert 2 == osmo("app", "delete", "train:2", "--all").code


def test_an_app_is_renamed(osmo: Osmo, server: Answering):
    server.answer("POST", f"{PATH}/rename", "fit")

    ended = osmo("app", "rename", "train", "fit", "--force")

    assert (0, "App train is called fit now.\n", "") == ended
    assert "fit" == server.last.body


def test_a_workflow_is_submitted_from_the_latest_version(osmo: Osmo, server: Answering):
    server.answer("GET", PATH, APP)
    server.answer("GET", f"{PATH}/spec", TEXT.encode())
    server.answer(
        "POST", "/api/pool/team/workflow", {"name": "training-1", "overview": "o", "logs": "l"}
    )

    ended = osmo("app", "submit", "train", "--pool", "team", "--set", "name=x")

    assert (0, True) == (ended.code, "training-1" in ended.output)
    assert (["u"], ["2"]) == (server.last.query["app_uuid"], server.last.query["app_version"])
    assert (TEXT, ["name=x"]) == (server.last.body["file"], server.last.body["set_variables"])


@pytest.mark.parametrize("name", ["train:x", "train:", "train:0", "train:9999999999999999"])
def test_a_version_is_a_number(osmo: Osmo, name: str):
    ended = osmo("app", "spec", name)

    assert 2 == ended.code
    assert f"{name}: a version is a number from 1 on, as in train:3." in ended.errors
