"""`osmo pool` and `osmo pool subpool` as people and programs see them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.answer_types import complete
from tests.answering import Answering
from tests.unit.conftest import Osmo

TREE = """\
Pool            Status         Subpool State  GPU Quota        Used  Available
--------------  -------------  -------------  ---------------  ----  ---------
team            ONLINE         -              10 (Total: 100)  50    -40
├─ team--a      ONLINE         ACTIVE         30               5     25
├─ team--b      ONLINE         ACTIVE         40               10    30
└─ team--c      ONLINE         ACTIVE         20               0     20
"""
UNDIVIDED = """\
Pool            Status         Subpool State  GPU Quota  Used  Available
--------------  -------------  -------------  ---------  ----  ---------
team            ONLINE         -              100        50    50
"""
USED = """\
Pool    Description   Status        GPU [#]
                                    Quota Used   Quota Limit   Total Usage   Total Capacity
===========================================================================================
pool1   First pool    ONLINE        1            2             3             4
pool2   Second pool   ONLINE        1            2             1             4 (shared)
sim     Simulation    MAINTENANCE   0            8             0             8
===========================================================================================
                                    2            12            4             12
"""
FREE = """\
Pool    Description   Status        GPU [#]
                                    Quota Free   Total Free
===========================================================
pool1   First pool    ONLINE        1            0
pool2   Second pool   ONLINE        1            0 (shared)
sim     Simulation    MAINTENANCE   8            8
===========================================================
                                    10           8
"""


def usage(used: int, limit: int, total: int = 0, capacity: int = 0, free: int = 0) -> Any:
    return {
        "quota_used": str(used),
        "quota_limit": str(limit),
        "quota_free": str(limit - used),
        "total_usage": str(total),
        "total_capacity": str(capacity),
        "total_free": str(free),
    }


def pool(name: str, numbers: Any, status: str = "ONLINE", **more: Any) -> Any:
    return {"name": name, "status": status, "resource_usage": numbers, **more}


def subpool(name: str, numbers: Any, state: str = "ACTIVE") -> Any:
    parent, _, short = name.partition("--")
    return pool(name, numbers, parent_pool=parent, subpool_name=short, subpool_state=state)


def quotas(*node_sets: list[Any], total: Any = None) -> Any:
    return {"node_sets": [{"pools": each} for each in node_sets], "resource_sum": total}


T3 = quotas(
    [
        pool("team", usage(50, 10), quota_total="100", parent_pool=None, subpool_state=None),
        subpool("team--a", usage(5, 30)),
        subpool("team--c", usage(0, 20)),
        subpool("team--b", usage(10, 40)),
    ]
)
SHARED = quotas(
    [
        pool("pool1", usage(1, 2, 3, 4, 0), description="First pool"),
        pool("pool2", usage(1, 2, 1, 4, 0), description="Second pool"),
    ],
    [pool("sim", usage(0, 8, 0, 8, 8), "MAINTENANCE", description="Simulation")],
    total=usage(2, 12, 4, 12, 8),
)
SUBPOOL = {
    "name": "team--a",
    "parent_pool": "team",
    "subpool_name": "a",
    "subpool_state": "ACTIVE",
    "status": "ONLINE",
    "quota": 30,
    "backend": "virtual",
    "description": "",
}
ANSWERS = "/api/configs/pool/team/subpool"

#: What `osmo pool list` must not import: it would make every start slow.
FORBIDDEN = (
    "alembic",
    "asyncio",
    "base64",
    "bough.cli.commands.subpool",
    "bough.cli.text.change_history",
    "bough.cli.text.usage",
    "bough.client.ed25519",
    "bough.client.people",
    "bough.client.workflows",
    "bough.control",
    "bough.core",
    "bough.formats",
    "bough.model",
    "bough.server",
    "bough.store",
    "bough.tools",
    "concurrent",
    "email",
    "hashlib",
    "hmac",
    "http",
    "importlib.metadata",
    "litestar",
    "logging",
    "multiprocessing",
    "psycopg",
    "random",
    "secrets",
    "shutil",
    "sqlalchemy",
    "sqlite3",
    "ssl",
    "subprocess",
    "tempfile",
    "traceback",
    "typing_extensions",
    "urllib",
    "yaml",
)


# pool list


def test_scenario_110_pools_are_drawn_as_the_design_prints_them(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/pool_quota", T3)
    assert (0, TREE, "") == osmo("pool", "list")
    assert {"all_pools": ["true"]} == server.last.query


def test_scenario_111_an_undivided_pool_has_its_quota_alone(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/pool_quota", quotas([pool("team", usage(50, 100))]))
    assert UNDIVIDED == osmo("pool", "list").output


def test_scenarios_080_and_112_a_subpool_that_drains_has_less_than_nothing_available(
    osmo: Osmo, server: Answering
):
    rows = [
        pool("team", usage(0, 40), quota_total="100"),
        subpool("team--a", usage(5, 0), "DELETING"),
    ]
    server.answer("GET", "/api/pool_quota", quotas(rows))
    lines = osmo("pool", "list").output.splitlines()
    assert "team            ONLINE         -              40 (Total: 100)  0     40" == lines[2]
    assert "└─ team--a      ONLINE         DELETING       0                5     -5" == lines[3]


def test_scenario_116_pools_of_all_node_sets_are_sorted_by_name(osmo: Osmo, server: Answering):
    sets = [[pool("b", usage(0, 1))], [pool("a", usage(0, 1)), subpool("a--x", usage(0, 1))]]
    server.answer("GET", "/api/pool_quota", quotas(*sets))
    lines = osmo("pool", "list").output.splitlines()[2:]
    assert ["a ", "└─ a--x ", "b "] == [line[: line.index("  ") + 1] for line in lines]


def test_a_subpool_alone_stands_alone(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/pool_quota", quotas([subpool("team--a", usage(5, 30))]))
    output = osmo("pool", "list", "--pool", "team--a").output
    assert {"all_pools": ["false"], "pools": ["team--a"]} == server.last.query
    assert (
        "team--a         ONLINE         ACTIVE         30         5     25"
        == output.splitlines()[2]
    )


def test_scenario_117_a_pool_that_is_not_there_is_named(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/pool_quota", quotas())
    ended = osmo("pool", "list", "-p", "x", "-p", "y")
    assert (2, "") == ended[:2]
    assert "Error message: Pools x, y not found\n" in ended.errors


def test_no_pools_are_said_in_words(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/pool_quota", quotas())
    assert (0, "No pools available\n", "") == osmo("pool", "list")
    assert "No pools available\n" == osmo("pool", "list", "--mode", "free").output


def test_scenario_161_quota_and_nodes_are_a_table_with_sums(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/pool_quota", SHARED)
    assert USED == osmo("pool", "list", "--mode", "used").output
    assert FREE == osmo("pool", "list", "-m", "free").output


def test_scenario_120_old_scripts_may_say_quota(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/pool_quota", T3)
    assert TREE == osmo("pool", "list", "--quota").output


def test_programs_get_what_the_server_sent(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/pool_quota", T3)
    for option in ("-t", "--format-type"):
        ended = osmo("pool", "list", option, "json")
        assert complete("GET", "/api/pool_quota", T3) == json.loads(ended.output)
        assert ended.output.startswith('{\n  "node_sets"')


@pytest.mark.usefixtures("osmo")
def test_pool_list_imports_nothing_heavy(server: Answering):
    server.answer("GET", "/api/pool_quota", T3)
    code = (
        "import sys\nfrom bough.cli.main import run\n"
        "code = run(['pool', 'list'], 'osmo')\nprint(code, *sorted(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    *table, last = result.stdout.splitlines()
    exit_code, *modules = last.split()
    assert ("0", TREE) == (exit_code, "\n".join(table) + "\n")
    heavy = [
        name
        for name in modules
        if any(name == bad or name.startswith(f"{bad}.") for bad in FORBIDDEN)
    ]
    assert [] == heavy


# Other commands


def test_a_pool_is_created_with_what_was_given(osmo: Osmo, server: Answering):
    server.answer("POST", "/api/configs/pool", {}, 201)
    ended = osmo(
        *("pool", "create", "team", "--quota", "100", "--maximum", "120", "--backend", "virtual"),
        *("--lending-limit", "-1", "--borrowing-limit", "5"),
    )
    assert (0, "Pool team is created.\n", "") == ended
    assert {
        "name": "team",
        "configs": {
            "backend": "virtual",
            "borrowing_limit": 5,
            "lending_limit": None,
            "resources": {"gpu": {"guarantee": 100, "maximum": 120}},
        },
    } == server.last.body


def test_only_what_was_given_is_changed(osmo: Osmo, server: Answering):
    server.answer("PATCH", "/api/configs/pool/team", {})
    assert 0 == osmo("pool", "update", "team", "--quota", "90", "--cohort", "").code
    changes = {"resources": {"gpu": {"guarantee": 90}}, "cohort": None}
    assert {"configs_dict": changes} == server.last.body
    assert 2 == osmo("pool", "update", "team").code


def test_a_pool_is_renamed_and_deleted(osmo: Osmo, server: Answering):
    server.answer("PUT", "/api/configs/pool/team/rename")
    server.answer("GET", "/api/configs/pool/group", {})
    server.answer("DELETE", "/api/configs/pool/group")
    assert (0, "Pool team is now group.\n", "") == osmo("pool", "rename", "team", "group")
    assert (0, "Pool group is deleted.\n", "") == osmo("pool", "delete", "group")


def test_a_pool_that_is_not_there_is_not_said_to_be_deleted(osmo: Osmo, server: Answering):
    server.answer("DELETE", "/api/configs/pool/tema")
    assert 2 == osmo("pool", "delete", "tema").code


def test_the_commands_for_subpools_are_named_where_they_are_meant(osmo: Osmo, server: Answering):
    path = "/api/configs/pool/team--a"
    server.answer("GET", path, {})
    for method in ("PATCH", "DELETE"):
        server.answer(method, path, {"message": "It is a subpool.", "error_code": "USER"}, 400)
    updated = osmo("pool", "update", "team--a", "--quota", "3").errors
    assert updated.endswith("Hint: osmo pool subpool update team a --quota GPUS\n")
    deleted = osmo("pool", "delete", "team--a").errors
    assert deleted.endswith("Hint: osmo pool subpool delete team a\n")


def test_a_pool_is_shown(osmo: Osmo, server: Answering):
    document = {**SUBPOOL, "resources": {"gpu": {"guarantee": -1}}}
    del document["quota"], document["subpool_name"]
    server.answer("GET", "/api/configs/pool/team", document)
    document = complete("GET", "/api/configs/pool/team", document)
    assert "GPU Quota   : no limit" in osmo("pool", "show", "team").output
    assert document == json.loads(osmo("pool", "show", "team", "-t", "json").output)


def test_a_pool_is_shown_with_every_limit_that_is_set(osmo: Osmo, server: Answering):
    document = {
        **SUBPOOL,
        "resources": {"gpu": {"guarantee": 8, "maximum": 9, "weight": 2}},
        "lending_limit": 0,
        "max_exec_timeout": "8h",
        "default_exit_actions": {"FAIL": "3006"},
    }
    server.answer("GET", "/api/configs/pool/team", document)
    lines = osmo("pool", "show", "team").output.splitlines()
    shown = dict(line.split(" : ") for line in lines)
    found = {name.strip(): value for name, value in shown.items()}
    assert {
        "Maximum": "9",
        "Weight": "2",
        "Lends": "0",
        "Maximum Exec Timeout": "8h",
        "Exit Actions": "FAIL=3006",
    }.items() <= found.items()
    assert "Borrows" not in found


# Subpools


def test_a_subpool_is_created(osmo: Osmo, server: Answering):
    server.answer("POST", ANSWERS, SUBPOOL, 201)
    ended = osmo("pool", "subpool", "create", "team", "a", "--quota", "30")
    assert (0, "Subpool team--a is created: ACTIVE, quota 30 GPUs.\n", "") == ended
    assert {"name": "a", "quota": 30} == server.last.body


def test_a_fraction_is_left_for_the_server_to_round(osmo: Osmo, server: Answering):
    server.answer("POST", ANSWERS, SUBPOOL, 201)
    osmo("pool", "subpool", "create", "team", "a", "--quota", "30.9")
    assert {"name": "a", "quota": 30.9} == server.last.body


@pytest.mark.parametrize("quota", [["--quota", "abc"], ["--quota", "nan"], ["--quota", "inf"], []])
def test_scenario_055_a_quota_that_is_none_is_wrong_usage(
    osmo: Osmo, server: Answering, quota: list[str]
):
    ended = osmo("pool", "subpool", "create", "team", "a", *quota)
    assert (2, "", []) == (ended.code, ended.output, server.asked)
    assert "quota" in ended.errors


def test_scenario_142_a_refusal_is_printed_with_its_status(osmo: Osmo, server: Answering):
    message = "Subpool team--b requires 31 GPUs but pool team has only 30 unallocated GPUs."
    server.answer("POST", ANSWERS, {"message": message, "error_code": "USER"}, 409)
    ended = osmo("pool", "subpool", "create", "team", "b", "--quota", "31")
    assert (2, "", f"Error message: {message}\nError code: 409\n") == ended


def test_a_refusal_is_json_where_that_is_wanted(osmo: Osmo, server: Answering):
    server.answer("POST", ANSWERS, {"message": "No.", "error_code": "USER"}, 409)
    ended = osmo("pool", "subpool", "create", "team", "b", "--quota", "31", "-t", "json")
    assert (2, {"message": "No.", "code": 409}, "") == (
        ended.code,
        json.loads(ended.output),
        ended.errors,
    )


def test_a_quota_is_changed(osmo: Osmo, server: Answering):
    server.answer("PATCH", f"{ANSWERS}/a", {**SUBPOOL, "quota": 1})
    ended = osmo("pool", "subpool", "update", "team", "a", "--quota", "1")
    assert (0, "Subpool team--a is updated: ACTIVE, quota 1 GPU.\n", "") == ended
    assert {"quota": 1} == server.last.body


def test_deleting_says_whether_it_drains(osmo: Osmo, server: Answering):
    server.answer("DELETE", f"{ANSWERS}/a", {**SUBPOOL, "subpool_state": "DELETING"})
    server.answer("DELETE", f"{ANSWERS}/a", {**SUBPOOL, "subpool_state": "ARCHIVED"})
    text = "Subpool team--a is DELETING: it is archived when its workflows have ended.\n"
    assert (0, text, "") == osmo("pool", "subpool", "delete", "team", "a")
    assert "Subpool team--a is ARCHIVED.\n" == osmo("pool", "subpool", "delete", "team", "a").output


def test_subpools_are_listed_without_the_archived_ones(osmo: Osmo, server: Answering):
    server.answer("GET", ANSWERS, {"subpools": [SUBPOOL]})
    output = osmo("pool", "subpool", "list", "team").output
    assert ["Subpool   Status   State    GPU Quota", "team--a   ONLINE   ACTIVE   30"] == [
        line for line in output.splitlines() if not line.startswith("=")
    ]
    assert {} == server.last.query
    assert complete("GET", ANSWERS, {"subpools": [SUBPOOL]})["subpools"] == json.loads(
        osmo("pool", "subpool", "list", "team", "-a", "-t", "json").output
    )
    assert {"include_archived": ["true"]} == server.last.query


def test_a_subpool_is_shown_with_its_pool(osmo: Osmo, server: Answering):
    server.answer("GET", f"{ANSWERS}/a", SUBPOOL)
    lines = osmo("pool", "subpool", "show", "team", "a").output.splitlines()
    assert ["Pool        : team--a", "Parent      : team", "State       : ACTIVE"] == lines[:3]


def test_history_has_a_line_for_each_change(osmo: Osmo, server: Answering):
    change = {
        "revision": 3,
        "created_at": "2026-01-05T10:00:00.123",
        "username": "ann",
        "description": "",
        "data": {"state": "ACTIVE", "quota": 30},
    }
    server.answer("GET", f"{ANSWERS}/a/history", {"configs": [change]})
    output = osmo("pool", "subpool", "history", "team", "a").output
    assert (
        "3          Jan 05, 2026 10:00 UTC   ann    ACTIVE, quota 30   -" == output.splitlines()[2]
    )


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("any", "All its users can cancel all its workflows."),
        ("own", "Its users can cancel their own workflows, and its admins all of them."),
    ],
)
def test_who_may_cancel_is_said_when_a_pool_is_created(bough: Osmo, server: Answering, rule, said):
    server.answer("POST", "/api/configs/pool", {"cancel": rule}, 201)

    ended = bough("pool", "create", "team", "--cancel", rule)

    assert (0, f"Pool team is created. {said}\n", "") == ended
    assert {"name": "team", "configs": {"cancel": rule}} == server.last.body


# what a newcomer stumbles over


NO_QUOTA = "it has no quota, but what the quotas of other pools leave"
LESS = quotas(
    [
        pool("default", usage(0, 2), can_start="0", can_start_note=NO_QUOTA),
        pool("vision", usage(0, 2), can_start="2", can_start_note=""),
    ]
)


def test_a_list_says_below_it_where_less_can_start_than_it_shows(bough: Osmo, server: Answering):
    server.answer("GET", "/api/pool_quota", LESS)

    lines = bough("pool", "list").output.splitlines()

    assert ["default", "vision"] == [line.split()[0] for line in lines[1:3]]
    assert ["", f"default can start 0 now: {NO_QUOTA}"] == lines[3:]


def test_pools_with_the_same_reason_share_a_footnote(bough: Osmo, server: Answering):
    rows = [
        pool(name, usage(0, 2), can_start="1", can_start_note="the nodes have no more")
        for name in ("a", "b")
    ]
    offline = {**rows[0], "name": "c", "status": "OFFLINE", "offline": "nothing answers"}
    server.answer("GET", "/api/pool_quota", quotas([*rows, offline]))

    notes = bough("pool", "list").output.partition("\n\n")[2].splitlines()

    assert [
        "OFFLINE: c. nothing answers",
        "a, b can start less than is available now: the nodes have no more",
    ] == notes


def test_the_table_of_osmo_has_no_footnotes(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/pool_quota", LESS)

    assert NO_QUOTA not in osmo("pool", "list").output


def test_an_unknown_pool_gets_the_nearest_name(bough: Osmo, server: Answering):
    server.answer("GET", "/api/pool_quota", quotas())
    server.answer("GET", "/api/pool", {"pools": {"vision": {}, "language": {}}})

    ended = bough("pool", "list", "--pool", "vison")

    assert "error: Pools vison not found\nhint: did you mean vision?\n" == ended.errors
