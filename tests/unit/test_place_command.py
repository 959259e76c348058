"""`bough place`, as it is typed."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from bough.cli.main import run

EXAMPLES = files("bough") / "examples"
NODES = str(EXAMPLES / "placement" / "nodes.yaml")
GANGS = str(EXAMPLES / "gangs")
CLUSTER = str(EXAMPLES / "gangs" / "cluster.yaml")

LARGE = """\
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: large}
spec:
  queue: serving
  minMember: 3
  topologyConstraint: {requiredTopologyLevel: rack}
"""
POD = """\
---
apiVersion: v1
kind: Pod
metadata: {name: POD, annotations: {pod-group-name: large}}
spec:
  containers: [{name: main, resources: {requests: {nvidia.com/gpu: 4, cpu: 4, memory: 16Gi}}}]
"""


@pytest.fixture
def large(tmp_path: Path) -> str:
    path = tmp_path / "large.yaml"
    pods = "".join(POD.replace("POD", f"p{number}") for number in range(3))
    path.write_text(LARGE + pods, encoding="utf-8")
    return str(path)


def test_the_picture_shows_where_pods_go(capsys):
    assert 0 == run(["place", "--nodes", NODES, GANGS])
    assert [
        "cluster: 8 nodes, 14 of 32 GPUs free",
        "├─ block-a: 4 nodes, 3 of 16 GPUs free",
        "│  ├─ rack-1: 2 nodes, 1 of 8 GPUs free",
        "│  │  ├─ node-1  ###A",
        "│  │  └─ node-2  ##A.",
        "│  └─ rack-2: 2 nodes, 2 of 8 GPUs free",
        "│     ├─ node-3  BBBB",
        "│     └─ node-4  BB..",
        "└─ block-b: 4 nodes, 11 of 16 GPUs free",
        "   ├─ rack-1: 2 nodes, 7 of 8 GPUs free",
        "   │  ├─ node-5  B...",
        "   │  └─ 1 more node: 4 of 4 GPUs free",
        "   └─ rack-2: 2 nodes, 4 of 8 GPUs free",
        "      ├─ node-7  BBBB",
        "      └─ 1 more node: 4 of 4 GPUs free",
        "",
        "A inference: 2 pods placed, 5 running, 1 left waiting",
        "B training-job: 11 pods placed, 1 beyond the minimum",
        "",
        "a letter is a GPU of a gang that starts, # in use, . free",
    ] == capsys.readouterr().out.splitlines()


def test_a_gang_without_a_place_says_why_and_the_answer_is_no(large, capsys):
    assert 1 == run(["place", "--nodes", NODES, CLUSTER, large])
    nodes = "1 take no new pods, 1 have a taint that is not tolerated"
    racks = "block-a.rack-1 holds 2, block-a.rack-2 holds 2, block-b.rack-1 holds 1"
    assert [
        "cluster: 8 nodes, 32 of 32 GPUs free",
        "└─ 2 blocks: 8 nodes, 32 of 32 GPUs free",
        "",
        "  large: has no place",
        "    large: 1 of 3 pods (4 GPUs, 4 CPU, 16 GiB each) have no place",
        f"      3 pods must be in one rack: {racks}, block-b.rack-2 holds 1",
        f"      of the nodes: {nodes}, 6 would take one, but not enough of them",
        "",
        ". free",
    ] == capsys.readouterr().out.splitlines()


def test_json_has_assignments_nodes_and_reasons(large, capsys):
    assert 1 == run(["place", "--format-type", "json", "--nodes", NODES, GANGS, large])
    answer = json.loads(capsys.readouterr().out)
    gangs = {gang["name"]: gang for gang in answer["gangs"]}
    assert not answer["placed"]
    assert {"pod": "prefill-2-0", "subgroup": "prefill-2", "node": "node-1"} == {
        key: gangs["inference"]["started"][0][key] for key in ("pod", "subgroup", "node")
    }
    (lack,) = gangs["large"]["refusal"]["lacks"]
    assert (3, "rack") == (lack["needed"], lack["together"]["level"])
    assert ["block-a", "rack-1"] == answer["nodes"][0]["domain"]


def test_spreading_takes_emptier_nodes(capsys):
    run(["place", "--format-type", "json", "--spread", "--nodes", NODES, GANGS])
    answer = json.loads(capsys.readouterr().out)
    used = {each["node"] for gang in answer["gangs"] for each in gang["started"]}
    assert {"node-1", "node-2", "node-3", "node-4", "node-5", "node-7"} == used


def test_every_node_can_be_drawn(capsys):
    run(["place", "--all", "--nodes", NODES, GANGS])
    assert "node-6  ....  takes no new pods" in capsys.readouterr().out


def test_pods_that_wait_and_pods_that_end_are_drawn(tmp_path, capsys):
    ending = POD.replace("POD", "old").replace(
        "annotations: {pod-group-name: large}", 'deletionTimestamp: "2026-01-01T00:00:00Z"'
    )
    (tmp_path / "gangs.yaml").write_text(
        ending.replace("spec:", "spec:\n  nodeName: n")
        + POD.replace("POD", "new").replace(", annotations: {pod-group-name: large}", ""),
        encoding="utf-8",
    )
    (tmp_path / "nodes.yaml").write_text(
        "{apiVersion: v1, kind: Node, metadata: {name: n}, "
        "status: {allocatable: {nvidia.com/gpu: 6, cpu: 64, memory: 512Gi}}}",
        encoding="utf-8",
    )
    assert 0 == run(["place", "--nodes", str(tmp_path / "nodes.yaml"), str(tmp_path)])
    out = capsys.readouterr().out
    assert "└─ n  aaaa~~" in out
    assert "  old: nothing to place" in out
    assert "A new: 1 pod placed, 1 wait for others to end" in out


def test_files_without_nodes_are_an_error(capsys):
    assert 2 == run(["place", "--nodes", CLUSTER, GANGS])
    assert f"error: there is no Node in {CLUSTER}" in capsys.readouterr().err


def test_an_unknown_topology_is_an_error_that_suggests_another(capsys):
    assert 2 == run(["place", "--topology", "clutser", "--nodes", NODES, GANGS])
    expected = "error: there is no topology called clutser; did you mean cluster?"
    assert expected in capsys.readouterr().err


def test_errors_in_files_are_listed_with_their_place(tmp_path, capsys):
    path = tmp_path / "bad.yaml"
    path.write_text("{apiVersion: v1, kind: Node, metadata: {}, status: {}}", encoding="utf-8")
    assert 2 == run(["place", "--nodes", str(path), GANGS])
    assert f"{path}:1: Node: metadata.name: is missing" in capsys.readouterr().err
