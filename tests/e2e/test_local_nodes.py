"""Nodes that take work, that take none, and that are emptied; and what was used of them."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator

import pytest

from tests.e2e.local import Attempt, Local, gang, hosting, task

NODES = """\
apiVersion: v1
kind: Node
metadata: {name: north}
status: {allocatable: {nvidia.com/gpu: "4", cpu: "64", memory: 64Gi, pods: "50"}}
---
apiVersion: v1
kind: Node
metadata: {name: south}
status: {allocatable: {nvidia.com/gpu: "4", cpu: "64", memory: 64Gi, pods: "50"}}
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    folder = tmp_path_factory.mktemp("nodes")
    (folder / "nodes.yaml").write_text(NODES)
    with hosting(folder, None, "--nodes", str(folder / "nodes.yaml")) as found:
        yield found.start()


@pytest.fixture
def local(host: Local) -> Iterator[Local]:
    """A pool `p` of two nodes with four GPUs each."""
    host.pool("p", 8)
    yield host
    host.done("node", "uncordon", "north", "south")
    host.clear()


def places(local: Local, *names: str) -> list[str]:
    """The nodes on which workflows are."""
    return [
        each.node_name
        for name in names
        for group in local.client.workflows.get(name).groups
        for each in group.tasks
    ]


def states(local: Local) -> dict[str, tuple[str, int, int]]:
    """The status of each node, its tasks and its GPUs in use."""
    return {
        each["name"]: (each["status"], each["tasks"], each["used_gpu"])
        for each in local.json("node", "list")["nodes"]
    }


def test_a_cordoned_node_keeps_what_it_has_and_takes_nothing_new(local: Local):
    stays = local.run("p", 2, "NORMAL")
    (node,) = places(local, stays)
    other = {"north": "south", "south": "north"}[node]
    before = local.mains(stays)
    local.done("node", "cordon", node)
    more = local.run("p", 4, "NORMAL")
    waits = local.submit("p", 2, "NORMAL")
    local.left_waiting(waits)
    assert [other] == places(local, more)
    assert {node: ("CORDONED", 1, 2), other: ("READY", 1, 4)} == states(local)
    assert before == local.mains(stays)
    local.done("node", "uncordon", node)
    local.settle(RUNNING=[waits])
    assert [node] == places(local, waits)


def test_what_was_on_a_drained_node_goes_on_elsewhere(local: Local):
    stays, moves = local.run("p", 4, "NORMAL"), local.run("p", 3, "NORMAL")
    (node,) = places(local, moves)
    local.finish(stays)
    local.done("node", "drain", node)
    local.until(lambda: 2 == len(local.attempts(moves)), lambda: local.shown(moves))
    local.settle(RUNNING=[moves])
    assert Attempt(0, "FAILED_EVICTED", 3004) == local.attempts(moves)[0]
    assert {"north", "south"} - {node} == set(places(local, moves))
    assert ("CORDONED", 0, 0) == states(local)[node]
    assert "[main] told to end" in local.log(moves)
    (main,) = local.mains(moves)
    assert main.attempt.endswith("/1")


def test_what_was_on_a_drained_node_may_be_left_there(local: Local):
    name = local.run("p", 3, "LOW")
    (node,) = places(local, name)
    before = local.mains(name)
    local.done("node", "drain", node, "--leave")
    after = local.run("p", 4, "NORMAL")
    assert [node] != places(local, after)
    assert before == local.mains(name)
    local.finish(name)
    assert [Attempt(0, "COMPLETED", 0)] == local.attempts(name)
    assert ("CORDONED", 0, 0) == states(local)[node]


@pytest.mark.parametrize("ignore", [True, False])
def test_a_gang_that_loses_a_node_starts_again_with_all_tasks_that_count(
    local: Local, ignore: bool
):
    tasks = [task(f"worker-{number}") for number in range(2)]
    name = local.send("p", "NORMAL", gang(tasks, gpus=3, ignoreNonleadStatus=ignore))
    local.until(lambda: 2 == len(local.ready(name)), lambda: local.shown(name))
    assert ["north", "south"] == sorted(places(local, name))
    before = local.mains(name)
    lost = dict(zip(("worker-0", "worker-1"), places(local, name), strict=True))["worker-1"]
    local.done("node", "drain", lost)
    left = 1 if ignore else 0
    local.until(lambda: left == len(local.mains(name)), lambda: local.shown(name))
    local.done("node", "uncordon", lost)
    local.until(lambda: 2 == len(local.ready(name)), lambda: local.shown(name))
    after = local.mains(name)
    assert left == len({each.pid for each in before} & {each.pid for each in after})
    assert Attempt(0, "FAILED_EVICTED", 3004) == local.tasks(name)["worker-1"][0]
    retries = {"worker-0": 1 - left, "worker-1": 1}
    assert retries == {task: attempts[-1].retry for task, attempts in local.tasks(name).items()}


def test_what_was_used_is_told_by_pool_and_by_user(local: Local):
    local.pool("lent", 0)
    local.pool("owned", 4)
    names = [local.run("owned", 4, "NORMAL"), local.run("lent", 2, "LOW")]
    time.sleep(1.5)
    local.finish(*names)
    answer = local.json("usage", "--since", "1h", "--by", "pool")
    rows = {each["name"]: each for each in answer["rows"]}
    assert rows["owned"]["guaranteed"] >= 4 * 1.5 / 3_600
    assert (0, 0) == (rows["owned"]["preemptible"], rows["owned"]["borrowed"])
    assert rows["lent"]["borrowed"] >= 2 * 1.5 / 3_600
    assert (0, rows["lent"]["borrowed"]) == (
        rows["lent"]["guaranteed"],
        rows["lent"]["preemptible"],
    )
    (row,) = local.json("usage", "--since", "1h", "--by", "user")["rows"]
    assert ("admin", answer["total"]["gpu_hours"]) == (row["name"], row["gpu_hours"])
    assert "Guaranteed" in local.done("usage")
    text = local.done("usage", "--since", "1h", "--format-type", "csv")
    assert {"lent", "owned"} <= {each["pool"] for each in csv.DictReader(io.StringIO(text))}
