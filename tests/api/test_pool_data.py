"""The data of pools over HTTP: who may name it in a workflow, its fields, and what is recorded."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from bough.api.pool_data import SentPart, write_part
from bough.backends.local.options import LocalOptions
from bough.backends.local.pool_data.pool_store import LocalPoolData
from bough.model.backend import BackendAbilities
from tests.api.house import House

DATA = "/api/pool/team/data"


@pytest.fixture
def kept(team: House, tmp_path: Path) -> House:
    """A house whose backend keeps the data of pools."""
    object.__setattr__(team.site, "abilities", {"default": BackendAbilities(keeps_pool_data=True)})
    vars(team.backend)["pool_data"] = LocalPoolData(LocalOptions(tmp_path))
    return team


def reading(url: str, field: str = "inputs") -> dict[str, str]:
    task = f"{{name: a, image: i, {field}: [{{url: '{url}'}}]}}"
    return {"file": f"workflow: {{name: x, tasks: [{task}]}}"}


def write(house: House, path: str, content: bytes, **options: Any) -> None:
    sha256 = hashlib.sha256(content).hexdigest()
    files = {"files": [{"path": path, "sha256": sha256, "size_bytes": len(content)}]}
    house.send("POST", f"{DATA}/draft/some-draft", files, **options)
    part = write_part(SentPart(sha256, len(content), 0, content))
    answer = house.ask("POST", f"{DATA}/contents", content=part, **options)
    assert 200 == answer.status_code, answer.text
    house.send("POST", f"{DATA}/draft/some-draft/publish", {}, **options)


@pytest.mark.parametrize(
    ("abilities", "said"),
    [
        (BackendAbilities(), "backend default keeps no data of pools; pass data between tasks"),
        (BackendAbilities(only_results=True), "reaches no URLs, only what other tasks left"),
        (BackendAbilities(keeps_data=False), "keeps no data of tasks, as it has no volume"),
    ],
)
def test_a_backend_that_keeps_no_data_of_pools_says_so_at_the_submission(
    team: House, abilities: BackendAbilities, said: str
):
    object.__setattr__(team.site, "abilities", {"default": abilities})
    code, message = team.refused("POST", "/api/pool/team/workflow", reading("bough://team/x"))
    assert (400, True) == (code, said in message), message


def test_where_nothing_keeps_data_the_routes_say_so(team: House):
    code, message = team.refused("GET", DATA)
    assert (409, "Backend default of pool team keeps no data of pools.") == (code, message)


def test_only_data_that_is_there_and_open_to_the_submitter_can_be_named(kept: House):
    submit = "/api/pool/team/workflow"
    kept.pool("other", 0)
    kept.user("ann", "osmo-team-user")
    assert [] == kept.send("POST", submit, reading("bough://team/x"), user="ann")["warnings"]
    for url, field, said in (
        ("bough://none/x", "inputs", "names pool 'none', which does not exist"),
        ("bough://{{workflow_id}}/x", "inputs", "does not exist"),
        ("bough://team/../x", "outputs", "leads upwards"),
        ("bough://team//x", "outputs", "is not possible"),
        ("bough:///x", "outputs", "names pool '', which does not exist"),
    ):
        code, message = kept.refused("POST", submit, reading(url, field), user="ann")
        assert (400, True) == (code, said in message), message
    for field, verb in (("inputs", "read"), ("outputs", "write")):
        code, message = kept.refused("POST", submit, reading("bough://other/x", field), user="ann")
        assert (403, f"Task a: {field}[0].url: ann may not {verb} the data of pool other.") == (
            code,
            message,
        )
    code, message = kept.refused("POST", f"{submit}?upload=s3://x/y", reading("bough://team/x"))
    assert (400, True) == (code, "is not a URL of a pool's data" in message)
    code, _ = kept.refused(
        "POST", f"{submit}?upload=bough://other/y", reading("bough://team/x"), user="ann"
    )
    assert 403 == code


def test_a_role_that_only_reads_data_cannot_write_it(kept: House):
    write(kept, "a", b"content")
    policy = {"effect": "Allow", "actions": ["data:Read"], "resources": ["pool/team"]}
    kept.send("PUT", "/api/configs/role/readers", {"policies": [policy]})
    kept.user("rea", "readers")
    assert ["a"] == [each["path"] for each in kept.get(DATA, user="rea")["files"]]
    assert 403 == kept.ask("DELETE", f"{DATA}?path=a", user="rea").status_code
    assert 403 == kept.ask("POST", f"{DATA}/contents", content=b"", user="rea").status_code


def test_writes_are_audited_and_survive_a_rename_but_not_another_pool_of_the_name(kept: House):
    kept.user("ann", "osmo-team-user")
    write(kept, "a/b", b"content", user="ann")
    kept.send("PUT", "/api/configs/pool/team/rename", {"new_name": "crew"})
    found = kept.get("/api/pool/crew/data")
    assert ("crew", ["a/b"]) == (found["pool"], [each["path"] for each in found["files"]])
    kept.pool("team", 0)
    assert [] == kept.get(DATA)["files"]
    kept.send("DELETE", "/api/pool/crew/data?path=a")
    entries = [each for each in kept.get("/api/audit")["entries"] if each["action"] == "data:Write"]
    assert [
        ("admin", "data/crew", {"path": "a", "deleted": 1}),
        ("ann", "data/team", {"path": "", "written": 1}),
    ] == [(each["actor"], each["subject"], each["after"]) for each in entries]


@pytest.mark.parametrize("body", [b"x", bytes(84), bytes(52) + b"\0\0\0\5" + bytes(28)])
def test_contents_of_another_form_are_refused(kept: House, body: bytes):
    answer = kept.ask("POST", f"{DATA}/contents", content=body)
    assert 400 == answer.status_code
    assert "The contents cannot be read" in answer.json()["message"]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("data_quota", "much", "data_quota"),
        ("data_quota", "-1Gi", "data_quota"),
        ("data_keep", "10m", "data_keep must be an hour or more"),
        ("data_keep", "soon", "data_keep"),
    ],
)
def test_the_bounds_of_a_pools_data_are_checked(team: House, field: str, value: str, said: str):
    body = {"configs_dict": {field: value}}
    code, message = team.refused("PATCH", "/api/configs/pool/team", body)
    assert (400, True) == (code, said in message), message


def test_the_bounds_of_a_pools_data_are_kept(kept: House):
    body = {"configs_dict": {"data_quota": "2Ti", "data_keep": "90d"}}
    kept.send("PATCH", "/api/configs/pool/team", body)
    assert 2 << 40 == kept.get(f"{DATA}/usage")["quota_bytes"]
    shown = kept.get("/api/configs/pool/team")
    assert ("2Ti", "90d") == (shown["data_quota"], shown["data_keep"])


def test_a_file_has_the_size_of_its_content_whatever_its_draft_says(kept: House):
    content = b"some bytes"
    sha256 = hashlib.sha256(content).hexdigest()
    write(kept, "true", content)
    wrong = {"files": [{"path": "wrong", "sha256": sha256, "size_bytes": 7_777}]}
    kept.send("POST", f"{DATA}/draft/wrong-draft", wrong)
    code, message = kept.refused("POST", f"{DATA}/draft/wrong-draft/publish", {})
    assert (400, "'wrong': its content has 10 bytes, not 7,777.") == (code, message)
    assert ["true"] == [each["path"] for each in kept.send("GET", DATA)["files"]]


def test_a_draft_with_a_wrong_size_keeps_no_one_from_sending_the_content(kept: House):
    kept.user("ann", "osmo-team-user")
    kept.user("eve", "osmo-team-user")
    content = b"some bytes"
    sha256 = hashlib.sha256(content).hexdigest()
    for number, size in enumerate((1, 3, 7_777)):
        wrong = {"files": [{"path": "wrong", "sha256": sha256, "size_bytes": size}]}
        kept.send("POST", f"{DATA}/draft/wrong-draft-{number}", wrong, user="eve")
    write(kept, "true", content, user="ann")
    assert ["true"] == [each["path"] for each in kept.send("GET", DATA)["files"]]
