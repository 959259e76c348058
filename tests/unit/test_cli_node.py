"""`osmo node` as people and programs see it."""

from __future__ import annotations

import json
from typing import Any

from tests.answering import Answering
from tests.unit.conftest import Osmo

TABLE = """\
Node   Status     Tasks   GPU [#]   CPU [#]   Memory [Gi]   Pools       Backend
===============================================================================
n1     READY      2       3/8       7.5/64    96/511        pool1, ui   local
n2     CORDONED   0       0/8       0/64      0/512         -           local
"""


def line(name: str, **more: Any) -> Any:
    node = {
        "name": name,
        "backend": "local",
        "status": "CORDONED",
        "cordoned": True,
        "tasks": 0,
        "gpu": 8,
        "used_gpu": 0,
        "cpu": 64,
        "used_cpu": 0,
        "memory": "512Gi",
        "used_memory": "0Gi",
        "pools": [],
        "labels": {},
    }
    return {**node, **more}


BUSY = line(
    "n1",
    status="READY",
    cordoned=False,
    tasks=2,
    used_gpu=3,
    used_cpu=7.5,
    memory="524287Mi",
    used_memory="95.5Gi",
    pools=["pool1", "ui"],
)


def test_nodes_say_whether_they_take_work_and_what_is_used(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/node", {"nodes": [BUSY, line("n2")]})

    assert (0, TABLE, "") == osmo("node", "list")
    listed = json.loads(osmo("node", "list", "--format-type", "json").output)
    assert {"nodes": [BUSY, line("n2")]} == listed


def test_there_may_be_no_nodes(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/node", {"nodes": []})

    assert (0, "There are no nodes.\n", "") == osmo("node", "list")


def test_nodes_are_cordoned_and_let_in_again(osmo: Osmo, server: Answering):
    for verb in ("cordon", "uncordon"):
        for name in ("n1", "n2"):
            server.answer("POST", f"/api/node/{name}/{verb}", line(name))

    assert "Node n1 is cordoned.\nNode n2 is cordoned.\n" == osmo("node", "cordon", "n1", "n2")[1]
    assert (0, "Node n1 takes work.\n", "") == osmo("node", "uncordon", "n1")


def test_a_node_is_named_with_its_backend_where_several_have_one_of_its_name(
    osmo: Osmo, server: Answering
):
    for verb in ("cordon", "uncordon"):
        server.answer("POST", f"/api/node/n1/{verb}", line("n1", backend="cloud"))
    drained = {"node": line("n1", backend="cloud"), "told": 0, "left": 0}
    server.answer("POST", "/api/node/n1/drain", drained)

    assert (0, "Node cloud/n1 is cordoned.\n", "") == osmo("node", "cordon", "cloud/n1")
    assert (0, "Node cloud/n1 takes work.\n", "") == osmo("node", "uncordon", "cloud/n1")
    assert 0 == osmo("node", "drain", "cloud/n1")[0]
    assert [{"backend": ["cloud"]}] * 3 == [each.query for each in server.asked]


def test_a_drain_says_what_becomes_of_what_runs(osmo: Osmo, server: Answering):
    for told, left in ((2, 0), (0, 1), (1, 3), (0, 0)):
        body = {"node": line("n1"), "told": told, "left": left}
        server.answer("POST", "/api/node/n1/drain", body)

    for expected in (
        "2 tasks told to end.",
        "1 task left to run to the end.",
        "1 task told to end, 3 tasks left to run to the end.",
    ):
        ended = osmo("node", "drain", "n1")
        assert (0, f"Node n1 takes nothing new; {expected}\n", "") == ended
        assert {} == server.last.query
    ended = osmo("node", "drain", "n1", "--leave")
    assert (0, "Node n1 takes nothing new; nothing runs on it.\n", "") == ended
    assert {"leave": ["true"]} == server.last.query


def test_a_name_that_is_misspelled_does_not_keep_others_from_being_drained(
    osmo: Osmo, server: Answering
):
    server.answer("POST", "/api/node/n1/drain", {"node": line("n1"), "told": 0, "left": 0})
    ended = osmo("node", "drain", "m1", "n1")
    assert (2, "Node n1 takes nothing new; nothing runs on it.\n") == ended[:2]
    assert "Error code: 404" in ended.errors


def test_a_node_that_is_not_there_is_an_error(osmo: Osmo, server: Answering):
    body = {"message": "Node none not found.", "error_code": "USER", "workflow_id": None}
    server.answer("POST", "/api/node/none/cordon", body, status=404)

    ended = osmo("node", "cordon", "none")

    assert 2 == ended.code
    assert "Error message: Node none not found.\nError code: 404\n" in ended.errors


def test_a_machine_that_is_declared_lost_says_what_was_lost_with_it(osmo: Osmo, server: Answering):
    lost = {"backend": "default", "machine": "m1:/data/local", "nodes": ["n1", "n2"], "tasks": 3}
    server.answer("POST", "/api/node/n1/declare_lost", lost)

    expected = "Machine m1:/data/local with 2 nodes counts as dead; 3 tasks lost.\n"
    assert (0, expected, "") == osmo("node", "declare-lost", "n1")
    shown = json.loads(osmo("node", "declare-lost", "n1", "--format-type", "json").output)
    assert lost == shown
