"""Objects of Kubernetes for each group of a pool: how they are configured."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from bough.model.backend import BackendAbilities
from tests.api.house import House

PATH = "/api/configs/group_template"
SHARED: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "shared-{{WF_GROUP_UUID}}"},
    "data": {"workflow": "{{WF_ID}}"},
}


@pytest.fixture
def pods(house: House) -> House:
    """A site whose backend makes pods, with pool `team`."""
    abilities = {"default": BackendAbilities(makes_pods=True)}
    house.authenticator.site = dataclasses.replace(house.site, abilities=abilities)
    house.pool("team", 10)
    return house


def use(*names: str) -> tuple[str, str, dict[str, Any]]:
    changes = {"configs_dict": {"common_group_templates": list(names)}}
    return "PATCH", "/api/configs/pool/team", changes


def test_templates_are_written_read_used_and_removed(pods: House):
    pods.send("PUT", PATH, {"configs": {"a": SHARED}, "description": "first"})
    pods.send("PUT", f"{PATH}/b", {"configs": {**SHARED, "kind": "Secret"}})

    assert ["a", "b"] == sorted(pods.get(PATH))
    assert SHARED == pods.get(f"{PATH}/a")
    pods.send(*use("a"))
    assert (409, "Group template a is used by pool team.") == pods.refused("DELETE", f"{PATH}/a")
    pods.send("DELETE", f"{PATH}/b")
    assert ["a"] == sorted(pods.get(PATH))
    assert (404, "Group template b not found.") == pods.refused("GET", f"{PATH}/b")
    history = pods.get("/api/configs/history?config_types=GROUP_TEMPLATE")["configs"]
    assert ["", "", "first"] == [each["description"] for each in history]
    pods.send("POST", "/api/configs/history/rollback", _to("GROUP_TEMPLATE", 2))
    assert ["a", "b"] == sorted(pods.get(PATH))
    entry = pods.get("/api/audit?subject=config/group_template")["entries"][0]
    assert (["a"], ["a", "b"]) == (sorted(entry["before"]), sorted(entry["after"]))


def _to(kind: str, revision: int) -> dict[str, Any]:
    return {"config_type": kind, "revision": revision}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"apiVersion": None}, ".apiVersion: must be a text like resource.nvidia.com/v1beta1, not"),
        ({"apiVersion": "../v1"}, ".apiVersion: must be a text like"),
        ({"kind": "config map"}, ".kind: must be a text like ConfigMap, not 'config map'."),
        ({"metadata": {"name": "shared"}}, ".metadata.name: must contain {{WF_GROUP_UUID}}, so"),
        (
            {"metadata": {"name": "{{WF_GROUP_UUID}}-{{WF_ID}}"}},
            ".metadata.name: has no variable but WF_GROUP_UUID, not WF_ID.",
        ),
        (
            {"metadata": {"name": "A {{WF_GROUP_UUID}}"}},
            "is not the name of an object of Kubernetes.",
        ),
        ({"metadata": None}, ".metadata: expected an object with a name, not None."),
        (
            {"metadata": {**SHARED["metadata"], "namespace": "kube-system"}},
            ".metadata.namespace: is decided by Bough.",
        ),
        (
            {"metadata": {**SHARED["metadata"], "finalizers": ["x"]}},
            ".metadata: there is no field 'finalizers' here.",
        ),
        ({"data": {"x": "{% for a in b %}"}}, ".data.x: '{% for a in b %}' is not understood;"),
    ],
)
def test_what_cannot_be_made_is_refused_by_its_field(house: House, change, message: str):
    body = {"configs": {"good": SHARED, "bad": {**SHARED, **change}}}

    status, text = house.refused("PUT", PATH, body)

    assert 400 == status
    assert text.startswith("Group template bad")
    assert message in text
    assert {} == house.get(PATH)


def test_a_pool_names_only_templates_that_there_are(pods: House):
    method, path, body = use("none")

    assert pods.refused(method, path, body) == (
        400,
        "Pool team: common_group_templates: group template 'none' not found; write it first.",
    )


def test_a_pool_whose_backend_makes_no_pods_names_no_templates(house: House):
    house.pool("team", 10)
    house.send("PUT", f"{PATH}/a", {"configs": SHARED})
    method, path, body = use("a")
    message = "Pool team: common_group_templates: backend default makes no pods, and so nothing of"

    assert (400, f"{message} 'a'.") == house.refused(method, path, body)
    assert [] == house.get("/api/configs/pool/team")["common_group_templates"]
