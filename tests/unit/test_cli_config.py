"""`osmo config` and `osmo audit` as people and programs see them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.answer_types import complete
from tests.answering import Answering
from tests.unit.conftest import Osmo

HISTORY = "/api/configs/history"
WORKFLOW = "/api/configs/workflow"
ENTRY = {
    "number": 7,
    "at": "2026-01-05T10:00:00",
    "actor": "ann",
    "action": "subpool:Create",
    "subject": "pool/team--a",
    "origin": "127.0.0.1",
    "before": None,
    "after": {"quota": 30},
}


def revision(kind: str, number: int, **more: Any) -> Any:
    return {
        "config_type": kind,
        "revision": number,
        "name": "team",
        "username": "ann",
        "created_at": "2026-01-05T10:00:00",
        "description": "why",
        "tags": [],
        "data": None,
        **more,
    }


def test_the_latest_revision_of_each_kind_is_listed(osmo: Osmo, server: Answering):
    found = [revision("POOL", 2), revision("POOL", 1), revision("COHORT", 1)]
    server.answer("GET", HISTORY, {"configs": found})
    lines = osmo("config", "list").output.splitlines()
    assert [["COHORT", "1"], ["POOL", "2"]] == [line.split()[:2] for line in lines[2:]]


def test_configuration_is_shown_as_it_is(osmo: Osmo, server: Answering):
    settings = complete("GET", WORKFLOW, {"subpool_drain_check_interval": "15m"})
    server.answer("GET", WORKFLOW, settings)
    assert settings == json.loads(osmo("config", "show", "workflow").output)


def test_names_lead_into_the_answer(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/configs/pool", {"pools": {"team": {"backend": "virtual"}}})
    server.answer("GET", "/api/configs/role", [{"name": "r", "policies": []}])
    assert '"virtual"\n' == osmo("config", "show", "POOL", "team", "backend").output
    assert "[]\n" == osmo("config", "show", "ROLE", "r", "policies").output
    assert 2 == osmo("config", "show", "POOL", "nothing").code


def test_an_old_revision_is_shown(osmo: Osmo, server: Answering):
    server.answer("GET", HISTORY, {"configs": [revision("POOL", 3, data={"a": 1})]})
    server.answer("GET", HISTORY, {"configs": []})
    assert {"a": 1} == json.loads(osmo("config", "show", "POOL:3").output)
    assert (["POOL"], ["3"], ["false"]) == tuple(
        server.last.query[key] for key in ("config_types", "revision", "omit_data")
    )
    assert "POOL has no revision 4." in osmo("config", "show", "POOL:4").errors
    assert 2 == osmo("config", "show", "POOL:x").code


def test_single_fields_are_set_as_json_where_they_are(osmo: Osmo, server: Answering):
    server.answer("PATCH", WORKFLOW, {})
    ended = osmo("config", "set", "WORKFLOW", "max_num_tasks=5", "interval=1m", "-d", "why")
    assert (0, "WORKFLOW is updated.\n", "") == ended
    changes = {"max_num_tasks": 5, "interval": "1m"}
    assert {"configs_dict": changes, "description": "why"} == server.last.body
    assert 2 == osmo("config", "set", "WORKFLOW", "nothing").code


def test_fields_come_from_a_file(osmo: Osmo, server: Answering, tmp_path: Path):
    server.answer("PATCH", "/api/configs/pool/team", {})
    file = tmp_path / "changes.json"
    file.write_text('{"description": "x"}')
    ended = osmo("config", "update", "POOL", "team", "-f", str(file))
    assert (0, "POOL team is updated.\n", "") == ended
    assert {"configs_dict": {"description": "x"}} == server.last.body


def test_fields_come_from_yaml_just_as_well(osmo: Osmo, server: Answering, tmp_path: Path):
    server.answer("PATCH", "/api/configs/pool/team", {})
    file = tmp_path / "changes.yaml"
    file.write_text(
        "# why\ndescription: x\nresources: {gpu: {guarantee: 8, weight: 1.5}}\nl: [1.0]\n"
    )
    ended = osmo("config", "update", "POOL", "team", "-f", str(file))
    assert (0, "POOL team is updated.\n", "") == ended
    gpu = {"guarantee": 8, "weight": 1.5}
    changes = {"description": "x", "resources": {"gpu": gpu}, "l": [1]}
    assert {"configs_dict": changes} == server.last.body


@pytest.mark.parametrize("text", [None, "{", "[]", "a: [", "- x", "", "a: 1\n---\nb: 2", "\x00"])
def test_a_file_that_has_no_fields_is_named(osmo: Osmo, tmp_path: Path, text: str | None):
    file = tmp_path / "changes.json"
    if text is not None:
        file.write_text(text)
    ended = osmo("config", "update", "POOL", "team", "-f", str(file))
    assert (2, True) == (ended.code, str(file) in ended.errors)


def test_an_object_is_deleted(osmo: Osmo, server: Answering):
    server.answer("DELETE", "/api/configs/role/r")
    assert (0, "ROLE r is deleted.\n", "") == osmo("config", "delete", "ROLE", "r")


def test_a_pool_that_is_not_there_is_not_said_to_be_deleted(osmo: Osmo, server: Answering):
    server.answer("DELETE", "/api/configs/pool/tema")
    assert 2 == osmo("config", "delete", "POOL", "tema").code


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "SUBPOOL"),
        ("set", "SUBPOOL", "--name", "team--a", "quota=3"),
        ("update", "SUBPOOL", "team--a", "-f", "-"),
        ("delete", "SUBPOOL", "team--a"),
    ],
)
def test_subpools_are_left_to_their_own_commands(
    osmo: Osmo, server: Answering, arguments: tuple[str, ...]
):
    ended = osmo("config", *arguments)
    assert 2 == ended.code
    assert "osmo pool subpool" in ended.errors
    assert [] == server.asked


def test_a_name_that_is_not_configured_is_named(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/configs/pool", {"pools": {}})
    assert "Error message: POOL has no tema.\n" in osmo("config", "show", "POOL", "tema").errors


def test_changes_are_listed(osmo: Osmo, server: Answering):
    server.answer("GET", HISTORY, {"configs": [revision("POOL", 3)]})
    server.answer("GET", HISTORY, {"configs": []})
    line = osmo("config", "history", "POOL", "-c", "5").output.splitlines()[2]
    assert "POOL          3          team   ann        Jan 05, 2026 10:00 UTC   why" == line
    assert (["5"], ["true"]) == (server.last.query["limit"], server.last.query["omit_data"])
    assert "There are no revisions.\n" == osmo("config", "history").output


def test_revisions_are_compared(osmo: Osmo, server: Answering):
    long = {"field": "x", "before": None, "after": "y" * 61}
    found = [{"field": "team.quota", "before": 1, "after": {"a": 2}}, long]
    server.answer("GET", "/api/configs/diff", {"differences": found})
    server.answer("GET", "/api/configs/diff", {"differences": []})
    lines = osmo("config", "diff", "POOL:1", "2").output.splitlines()[2:]
    assert ['team.quota   1        {"a": 2}', f"x            -        {'y' * 59}…"] == lines
    assert {
        "config_type": ["POOL"],
        "first_revision": ["1"],
        "second_revision": ["2"],
    } == server.last.query
    assert "There is no difference.\n" == osmo("config", "diff", "POOL:1", "2").output
    assert 2 == osmo("config", "diff", "POOL", "2").code


def test_a_revision_is_returned_to(osmo: Osmo, server: Answering):
    server.answer("POST", "/api/configs/history/rollback")
    ended = osmo("config", "rollback", "POOL:3")
    assert (0, "POOL is as it was at revision 3.\n", "") == ended
    assert {"config_type": "POOL", "revision": 3} == server.last.body
    assert 2 == osmo("config", "rollback", "POOL").code


def test_the_audit_says_who_changed_what(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/audit", {"entries": [ENTRY]})
    server.answer("GET", "/api/audit", {"entries": [ENTRY]})
    server.answer("GET", "/api/audit", {"entries": []})
    output = osmo("audit", "list", "-s", "pool/team--a", "-u", "ann", "--before", "9").output
    expected = ["ann", "subpool:Create", "pool/team--a", "127.0.0.1"]
    assert expected == output.splitlines()[2].split()[-4:]
    query = {"limit": ["20"], "subject": ["pool/team--a"], "user": ["ann"], "before": ["9"]}
    assert query == server.last.query
    expected = complete("GET", "/api/audit", {"entries": [ENTRY]})
    assert expected == json.loads(osmo("audit", "list", "-t", "json").output)
    assert "There are no entries.\n" == osmo("audit", "list").output


def test_a_policy_file_is_sent_as_it_is_written(osmo: Osmo, server: Answering, tmp_path: Path):
    server.answer("PATCH", "/api/configs/policy", {"preset": "osmo"})
    path = tmp_path / "ours.yaml"
    path.write_text("preset: osmo  # ours\n")

    ended = osmo("config", "update", "policy", "--file", str(path), "-d", "why")

    assert (0, "POLICY is updated.\n", "") == ended
    expected = {"file": "preset: osmo  # ours\n", "file_name": str(path), "description": "why"}
    assert expected == server.last.body
