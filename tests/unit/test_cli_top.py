"""`bough top`: who has which GPU, and what waits."""

from __future__ import annotations

import json

import pytest

from bough.cli.text.top import GpuHolder, NodeHolders, Top, render_top
from tests.answering import Answering
from tests.unit.conftest import Osmo


def node(name: str, gpus: int, used: int, status: str = "READY") -> dict[str, object]:
    return {"name": name, "backend": "b", "status": status, "gpu": gpus, "used_gpu": used}


def task(workflow: str, gpus: int, **fields: object) -> dict[str, object]:
    made = {"workflow_id": workflow, "task_name": "main", "user": "ann", "priority": "LOW"}
    return {**made, "node": "n1", "backend": "b", "gpu": gpus, "start_time": None, **fields}


@pytest.fixture
def busy(server: Answering) -> Answering:
    server.answer("GET", "/api/node", {"nodes": [node("n1", 8, 6), node("n2", 2, 0, "CORDONED")]})
    tasks = [task("a-1", 4), task("b-1", 1), task("c-1", 0), task("d-1", 2, node="gone")]
    server.answer("GET", "/api/task", {"tasks": tasks, "summaries": []})
    waits = [{"name": "w-1", "status": "PENDING", "wait_reason": "limit", "gpus": 8}]
    server.answer("GET", "/api/workflow", {"workflows": waits, "more_entries": True})
    return server


def test_each_gpu_has_a_holder_or_is_free(bough: Osmo, busy: Answering):
    ended = bough("top", "--once")
    assert (0, "") == (ended.code, ended.errors)
    lines = [line.split() for line in ended.output.splitlines() if line]
    assert "6 of 10 GPUs in use, 1 or more waiting" == " ".join(lines[0])
    assert [
        ["NODE", "GPU", "WORKFLOW", "TASK", "USER", "PRIORITY", "TIME"],
        ["n1", "0-3", "a-1", "main", "ann", "LOW", "starts"],
        ["n1", "4", "b-1", "main", "ann", "LOW", "starts"],
        ["n1", "5", "(others)"],
        ["n1", "6-7", "(free)"],
        ["n2", "0-1", "(cordoned)"],
    ] == lines[1:7]
    assert ("w-1", "limit") == (lines[8][0], lines[8][-1])
    assert {"statuses": ["PENDING", "WAITING"], "order": ["ASC"]}.items() <= {
        name: each
        for asked in busy.asked
        if asked.path == "/api/workflow"
        for name, each in asked.query.items()
    }.items()


def test_programs_get_the_same_as_json(bough: Osmo, busy: Answering):
    del busy
    found = json.loads(bough("top", "-t", "json").output)
    assert ["n1", "n2"] == [each["node"] for each in found["nodes"]]
    holder = found["nodes"][0]["holders"][0]
    assert (0, 3, "a-1") == (holder["first"], holder["last"], holder["workflow"])
    assert ["w-1"] == [each["name"] for each in found["waiting"]]


@pytest.mark.parametrize("width", [64, 80, 260])
def test_no_line_is_longer_than_the_terminal(width: int):
    long = GpuHolder(0, 7, "w" * 60, "t" * 63, "someone@example.com", "p", "NORMAL", None)
    found = Top([NodeHolders("n" * 40, "READY", 8, 8, [long])], [], more_waiting=False)
    assert max(map(len, render_top(found, width).split("\n"))) <= width
    assert ("w" * 60 in render_top(found, width)) is (width == 260)


def test_nothing_of_what_users_name_reaches_the_terminal_as_it_is():
    odd = GpuHolder(0, 0, "a\x1b[2J", "t\n", "u\x07", "p", "LOW", None)
    text = render_top(Top([NodeHolders("n", "READY", 1, 1, [odd])], [], more_waiting=False))
    assert not {"\x1b", "\x07"} & set(text)
    assert 4 == len(text.split("\n"))
