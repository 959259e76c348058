"""`osmo resource`, `osmo queue` and `osmo cohort` as people and programs see them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.answer_types import complete
from tests.answering import Answering
from tests.unit.conftest import Osmo

RESOURCES = """\
Node   Pool    Platform   Type     Storage [Gi]   CPU [#]   Memory [Gi]   GPU [#]
=================================================================================
n1     pool1   h100       SHARED   10/1000        8/64      64/512        3/8
       pool2   h100                10/1000        8/64      64/512        3/8
=================================================================================
                                   10/1000        8/64      64/512        3/8
"""
NODE = {
    "exposed_fields": {"node": "n1", "pool/platform": ["pool1/h100", "pool2/h100"]},
    "resource_type": "SHARED",
    "allocatable_fields": {"storage": "1000Gi", "cpu": 64, "memory": "512Gi", "gpu": 8},
    "usage_fields": {"storage": "9.5Gi", "cpu": 7.5, "memory": str(63 * 2**30 + 1), "gpu": 3},
}
QUEUES = [
    {"name": "osmo-default-ns", "parent": None, "leaf": False, "quota": None, "used": 5},
    {"name": "osmo-pool-ns-team", "parent": "osmo-default-ns", "leaf": False, "quota": 100},
    {
        "name": "osmo-pool-ns-team--_shared",
        "parent": "osmo-pool-ns-team",
        "leaf": True,
        "quota": 70,
        "used": 5,
        "used_guaranteed": 3,
        "pool": "team",
        "state": None,
        "limit": None,
        "weight": 2,
        "share": "0.4",
        "deserved": 70,
        "fair": 72.5,
    },
]


def cohort(name: str, parent: str | None = None, **more: Any) -> Any:
    fields = {"quota": 0, "borrowing_limit": None, "lending_limit": None, "weight": 1}
    return {"name": name, "parent": parent, **fields, "description": "", **more}


def changed(**more: Any) -> Any:
    effects = {"debts": [], "relieved": [], "tangled": [], "untangled": []}
    return {"cohort": cohort("x"), "planned": False, "effects": effects, **more}


# Nodes


def test_nodes_have_a_line_for_each_pool(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/resources", {"resources": [NODE]})
    assert (0, RESOURCES, "") == osmo("resource", "list")
    assert {"all_pools": ["true"]} == server.last.query
    expected = complete("GET", "/api/resources", {"resources": [NODE]})
    assert expected == json.loads(osmo("resource", "list", "-t", "json").output)


def test_nodes_show_what_is_left(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/resources", {"resources": [NODE]})
    ended = osmo("resource", "list", "-p", "pool2", "--platform", "h100", "-m", "free")
    lines = ended.output.splitlines()
    assert ["n1", "pool2", "h100", "SHARED", "990", "56", "448", "5"] == lines[2].split()
    assert {"all_pools": ["false"], "pools": ["pool2"], "platforms": ["h100"]} == server.last.query
    assert 2 == osmo("resource", "list", "-p", "pool2", "--all").code


def test_a_subpool_has_the_nodes_of_its_pool(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/resources", {"resources": [NODE]})
    assert "n1     pool1   h100" in osmo("resource", "list", "-p", "pool1--a").output


def test_a_platform_has_sizes_of_its_own(osmo: Osmo, server: Answering):
    sizes = {"pool1": {"h100": {"gpu": 4, "cpu": 2, "memory": "1Ti", "storage": "2048Mi"}}}
    server.answer(
        "GET", "/api/resources", {"resources": [{**NODE, "platform_allocatable_fields": sizes}]}
    )
    line = osmo("resource", "list", "-p", "pool1").output.splitlines()[2]
    assert ["10/2", "8/2", "64/1024", "3/4"] == line.split()[4:]


def test_no_nodes_are_said_in_words(osmo: Osmo, server: Answering):
    unused = {**NODE, "exposed_fields": {"node": "n2"}}
    server.answer("GET", "/api/resources", {"resources": [unused]})
    assert "There are no resources to view.\n" == osmo("resource", "list").output


def test_one_node_is_shown(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/resources/n1", {"resources": [{**NODE, "label_fields": {"a": "b"}}]})
    output = osmo("resource", "info", "n1").output
    assert "pool2/h100 : Storage 10/1000, CPU 8/64, Memory 64/512, GPU 3/8" in output
    assert "Labels     : a=b" in output


def test_one_node_is_shown_as_one_of_a_pool_or_platform(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/resources/n1", {"resources": [NODE]})
    output = osmo("resource", "info", "n1", "-p", "pool2", "-pl", "h100").output
    assert "pool2/h100 : " in output
    assert "pool1/" not in output
    assert "pool2/" not in osmo("resource", "info", "n1", "--platform", "l40").output


# Queues


def test_queues_are_a_list_of_what_scripts_rely_on(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/queues", QUEUES)
    answer = json.loads(osmo("queue", "list", "--format-type", "json").output)
    keys = ["name", "parent", "leaf", "quota", "used", "used_guaranteed", "pool", "state"]
    assert 3 == len(answer)
    expected = ["osmo-pool-ns-team--_shared", "osmo-pool-ns-team", True, 70, 5, 3, "team", None]
    assert expected == [answer[2][key] for key in keys]


def test_queues_are_drawn_as_a_tree(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/queues", QUEUES)
    lines = [line.split() for line in osmo("queue", "list").output.splitlines()[2:]]
    root = ["osmo-default-ns", "-", "no", "limit", "5", "0", "0", "0", "0", "-", "-"]
    leaf = ["leaf", "70", "5", "3", "2", "0.4", "72.5", "team", "-"]
    assert root == lines[0]
    assert ["└─", "osmo-pool-ns-team--_shared", *leaf] == lines[2]


def test_what_hangs_on_a_cycle_or_nowhere_is_drawn_all_the_same(osmo: Osmo, server: Answering):
    nodes = [cohort("a", "b"), cohort("b", "a"), cohort("c", "gone"), cohort("d", "c")]
    server.answer("GET", "/api/configs/cohort", nodes)

    lines = osmo("cohort", "list").output.splitlines()[2:]

    assert ["c", "└─ d", "a", "└─ b"] == [line[:5].strip() for line in lines]


# Cohorts


def test_cohorts_are_drawn_as_a_tree(osmo: Osmo, server: Answering):
    tree = [cohort("all", quota=4, lending_limit=2), cohort("research", "all", borrowing_limit=0)]
    server.answer("GET", "/api/configs/cohort", tree)
    lines = osmo("cohort", "list").output.splitlines()
    assert "all           4       no limit   2          1        -" == lines[2]
    assert "└─ research   0       0          no limit   1        -" == lines[3]
    assert tree == json.loads(osmo("cohort", "list", "-t", "json").output)


def test_a_cohort_is_declared_and_shown(osmo: Osmo, server: Answering):
    server.answer("POST", "/api/configs/cohort", changed(), 201)
    server.answer("GET", "/api/configs/cohort/x", cohort("x", quota=3))
    ended = osmo(
        *("cohort", "create", "x", "--parent", "all", "--quota", "3"),
        *("--borrowing-limit", "-1", "--lending-limit", "2"),
    )
    assert (0, "Cohort x is created.\n", "") == ended
    body = {"name": "x", "parent": "all", "quota": 3, "borrowing_limit": None, "lending_limit": 2}
    assert body == server.last.body
    assert "Quota       : 3" in osmo("cohort", "show", "x").output


def test_a_change_says_what_it_does(osmo: Osmo, server: Answering):
    node = ["queue", "q"]
    effects = {
        "debts": [{"node": node, "before": 0, "after": 4}],
        "relieved": [{"node": ["cohort", "p"], "before": 3, "after": 1}],
        "tangled": [node],
        "untangled": [["cohort", "r"]],
    }
    server.answer("PATCH", "/api/configs/cohort/x", changed(planned=True, effects=effects))
    ended = osmo("cohort", "move", "x", "y", "--plan")
    assert ({"parent": "y"}, {"plan": ["true"]}) == (server.last.body, server.last.query)
    assert [
        "Cohort x would be moved.",
        "  queue q owes 4 GPUs more than it has (before: 0)",
        "  cohort p owes 1 GPU (before: 3)",
        "  queue q stops: its cohorts form a cycle",
        "  cohort r is free of the cycle",
    ] == ended.output.splitlines()


@pytest.mark.parametrize(
    ("arguments", "method", "text"),
    [
        (("move", "x"), "PATCH", "moved"),
        (("update", "x", "--weight", "2"), "PATCH", "updated"),
        (("delete", "x"), "DELETE", "deleted"),
    ],
)
def test_a_cohort_is_changed(
    osmo: Osmo, server: Answering, arguments: tuple[str, ...], method: str, text: str
):
    server.answer(method, "/api/configs/cohort/x", changed())
    assert (0, f"Cohort x is {text}.\n", "") == osmo("cohort", *arguments)


def test_a_change_of_nothing_is_wrong_usage(osmo: Osmo, server: Answering):
    assert (2, []) == (osmo("cohort", "update", "x").code, server.asked)
    server.answer("GET", "/api/configs/cohort", [])
    assert "There are no cohorts.\n" == osmo("cohort", "list").output


def test_a_cohort_without_a_parent_is_below_the_node_above_all(osmo: Osmo, server: Answering):
    server.answer("PATCH", "/api/configs/cohort/x", changed())
    for parent in ((), ("",)):
        assert 0 == osmo("cohort", "move", "x", *parent).code
        assert {"parent": None} == server.last.body
