"""Effects of a division on waiting workflows, drains, and moving work, as people see them."""

from __future__ import annotations

from typing import Any

from tests.answering import Answering
from tests.unit.conftest import Osmo
from tests.unit.test_cli_pool import SUBPOOL, pool, quotas, subpool, usage

SUBPOOLS = "/api/configs/pool/team/subpool"
DRAIN = {
    "workflow_count": 2,
    "stranded_count": 1,
    "workflows": [
        {
            "workflow_id": "train-1",
            "status": "RUNNING",
            "priority": "HIGH",
            "submitted_by": "alice",
            "gpus": 30,
            "message": "runs",
        },
        {
            "workflow_id": "train-2",
            "status": "PENDING",
            "priority": "NORMAL",
            "submitted_by": "bob",
            "gpus": 1,
            "message": "all needs 1 GPU and cannot start: team has a quota of 0 GPUs",
        },
    ],
}
VERBOSE = """\
Pool            Status         Subpool State  GPU Quota       Used  Available  Can Start
--------------  -------------  -------------  --------------  ----  ---------  ---------
team            ONLINE         -              40 (Total: 40)  0     40         10
└─ team--a      ONLINE         DELETING       0               30    -30        10

team can start 10: work of subpools that are being deleted counts here
team--a is kept open by 2 workflows:
  train-1 (RUNNING, HIGH, 30 GPUs, alice) runs
  train-2 (PENDING, NORMAL, 1 GPU, bob) all needs 1 GPU and cannot start: team has a quota of 0 GPUs
"""


def affected(name: str, message: str) -> Any:
    return {
        "workflow_id": name,
        "group": "all",
        "pool": "team--a",
        "priority": "HIGH",
        "gpus": 30,
        "message": message,
    }


def change(planned: bool, **more: Any) -> Any:
    nothing = {"stranded": [], "delayed": [], "stranded_count": 0, "delayed_count": 0}
    return {**SUBPOOL, "reactivated": False, "planned": planned, **nothing, **more}


def test_a_planned_update_of_a_pool_names_what_it_would_strand(osmo: Osmo, server: Answering):
    answer = change(
        True,
        stranded=[affected("train-2", "cannot start: team has a quota of 20 GPUs")],
        stranded_count=1,
    )
    del answer["reactivated"]
    server.answer("PATCH", "/api/configs/pool/team", answer)

    ended = osmo("pool", "update", "team", "--quota", "20", "--plan")

    assert (
        "Pool team would be updated.\n"
        "  train-2 (HIGH, 30 GPUs, in team--a) cannot start: team has a quota of 20 GPUs\n"
    ) == ended.output
    assert {"plan": ["true"]} == server.last.query


def test_a_planned_create_names_what_it_would_strand_and_delay(osmo: Osmo, server: Answering):
    answer = change(
        True,
        stranded=[affected("train-2", "cannot start: team has a quota of 0 GPUs")],
        delayed=[affected("train-3", "waits until 40 GPUs more are free in team, not 10")],
        stranded_count=1,
        delayed_count=12,
    )
    server.answer("POST", SUBPOOLS, answer)

    ended = osmo("pool", "subpool", "create", "team", "a", "--quota", "30", "--plan")

    assert (
        "Subpool team--a would be created: ACTIVE, quota 30 GPUs.\n"
        "  train-2 (HIGH, 30 GPUs, in team--a) cannot start: team has a quota of 0 GPUs\n"
        "  train-3 (HIGH, 30 GPUs, in team--a) waits until 40 GPUs more are free in team, not 10\n"
        "  and 11 more\n"
    ) == ended.output
    assert ["True"] == [each.capitalize() for each in server.last.query["plan"]]


def test_updates_and_deletes_can_be_planned_too(osmo: Osmo, server: Answering):
    server.answer("PATCH", f"{SUBPOOLS}/a", change(True))
    server.answer("DELETE", f"{SUBPOOLS}/a", change(True, subpool_state="DELETING"))

    ended = osmo("pool", "subpool", "update", "team", "a", "--quota", "30", "--plan")
    assert "Subpool team--a would be updated: ACTIVE, quota 30 GPUs.\n" == ended.output
    ended = osmo("pool", "subpool", "delete", "team", "a", "--plan")
    assert (
        "Subpool team--a would be DELETING: it is archived when its workflows have ended.\n"
    ) == ended.output


def test_a_verbose_list_says_what_can_start_and_what_keeps_a_drain_open(
    osmo: Osmo, server: Answering
):
    team = pool(
        "team",
        usage(0, 40),
        quota_total="40",
        can_start="10",
        can_start_note="work of subpools that are being deleted counts here",
        drain=None,
    )
    draining = subpool("team--a", usage(30, 0), "DELETING")
    draining.update(can_start="10", can_start_note="", drain=DRAIN)
    server.answer("GET", "/api/pool_quota", quotas([team, draining]))

    assert VERBOSE == osmo("pool", "list", "--verbose").output
    assert "Can Start" not in osmo("pool", "list").output


def test_a_subpool_that_drains_is_shown_with_what_keeps_it_open(osmo: Osmo, server: Answering):
    server.answer("GET", f"{SUBPOOLS}/a", {**SUBPOOL, "subpool_state": "DELETING", "drain": DRAIN})

    lines = osmo("pool", "subpool", "show", "team", "a").output.splitlines()

    assert "It is kept open by 2 workflows:" == lines[-3]
    assert "  train-1 (RUNNING, HIGH, 30 GPUs, alice) runs" == lines[-2]


def test_a_workflow_is_moved(osmo: Osmo, server: Answering):
    moved = {"name": "train-2", "pool": "team--d", "priority": "LOW"}
    server.answer("PATCH", "/api/workflow/train-2", moved)

    ended = osmo("workflow", "update", "train-2", "--pool", "team--d", "--priority", "low")

    assert "Workflow train-2 waits in pool team--d with priority LOW.\n" == ended.output
    assert {"pool": "team--d", "priority": "LOW"} == server.last.body


def test_an_update_that_is_refused_is_not_called_a_submit(bough: Osmo, server: Answering):
    refusal = {"message": "Pool team has 1 GPU.", "error_code": "USAGE"}
    server.answer("PATCH", "/api/workflow/train-2", refusal, 400)
    ended = bough("workflow", "update", "train-2", "--priority", "normal")
    assert (1, "", "error: Workflow train-2 update failed: Pool team has 1 GPU.\n") == ended


def test_a_move_to_nowhere_is_wrong_usage(osmo: Osmo):
    ended = osmo("workflow", "update", "train-2")

    assert 2 == ended.code
    assert "--pool, --priority, or both" in ended.errors
