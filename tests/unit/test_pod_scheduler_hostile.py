"""Objects that are made to harm: none of them stops the scheduler, or reaches another namespace."""

from __future__ import annotations

import base64
import json
import uuid
import zlib
from typing import Any

import msgspec
import pytest

from bough.core.cycle.plan import plan
from bough.kube.objects import Kind
from bough.kube.watching import Relisted
from bough.model.plan import Plan
from bough.model.policy import KAI
from bough.pod_scheduler import kinds
from bough.pod_scheduler.cluster import ClusterView, GangKey
from bough.pod_scheduler.decision_records import LONGEST_TEXT
from bough.pod_scheduler.decisions import (
    MOST_EXPANDED,
    PlacedPod,
    read_decisions,
    unfinished,
    write_decisions,
)


def hear(view: ClusterView, kind: Kind[Any], *written: dict[str, Any]) -> None:
    items = [msgspec.json.decode(json.dumps(each).encode(), type=kind.type) for each in written]
    view.hear(kind, Relisted(items, "1"))


def queue(name: str = "team", parent: str = "") -> dict[str, Any]:
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"gpu": free, "cpu": free, "memory": free}
    return {"metadata": {"name": name}, "spec": {"parentQueue": parent, "resources": resources}}


def node(name: str = "n", **allocatable: Any) -> dict[str, Any]:
    room = {"nvidia.com/gpu": "8", "cpu": "64", "memory": "512Gi", "pods": "110", **allocatable}
    return {"metadata": {"name": name}, "status": {"allocatable": room}}


def pod(name: str, group: str = "", where: str = "default", **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": where, "uid": str(uuid.uuid4())}
    metadata["labels"] = {"kai.scheduler/queue": "team"}
    if group:
        metadata["annotations"] = {"pod-group-name": group}
    limits = {"nvidia.com/gpu": "1"}
    containers = [{"name": "main", "resources": {"limits": limits}}]
    return {
        "metadata": metadata,
        "spec": {"schedulerName": "bough", "containers": containers, **spec},
        "status": {"phase": "Pending"},
    }


def group(name: str, where: str = "default", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": where}, "spec": {"queue": "team", **spec}}


def decided(view: ClusterView) -> Plan:
    return plan(view.take(1_000), KAI)


def names(view: ClusterView, key: str) -> list[str]:
    gang = view.gangs.get(GangKey(False, key))
    return [] if gang is None else [each.name for each in gang.pods]


def test_a_pod_joins_no_gang_of_another_namespace_whatever_it_names() -> None:
    view = ClusterView("bough")
    hear(view, kinds.POD_GROUPS, group("train", "ml", minMember=1))
    native = {"schedulingPolicy": {"basic": {}}}
    written = {"metadata": {"name": "own", "namespace": "ml"}, "spec": native}
    hear(view, kinds.NATIVE_POD_GROUPS, written)
    hear(
        view,
        kinds.PODS,
        pod("a", "ml/train"),
        pod("b", "../ml/train", "team"),
        pod("c", "own (native)", "ml"),
        pod("d", "ml/own (native)"),
        pod("e", "train", "ml"),
    )
    view.take(1_000)
    assert ["ml/e"] == names(view, "ml/train")
    assert [] == names(view, "ml/own (native)")
    assert 4 == len(list(view.without_group()))


def test_a_gang_of_ten_thousand_pods_is_planned_and_its_decision_can_be_written() -> None:
    view = ClusterView("bough")
    count = 10_000
    hear(view, kinds.QUEUES, queue())
    hear(view, kinds.NODES, *(node(f"node-{number:04}") for number in range(count // 8)))
    hear(view, kinds.POD_GROUPS, group("large-training", "ml", minMember=count))
    pods = [pod(f"worker-{number}", "large-training", "ml") for number in range(count)]
    hear(view, kinds.PODS, *pods)
    binds = decided(view).binds
    assert count == len(binds)
    uid = {f"ml/{each['metadata']['name']}": each["metadata"]["uid"] for each in pods}
    placed = [PlacedPod(each.pod, uid[each.pod], each.node) for each in binds]
    text = write_decisions({"ml/large-training": tuple(placed)})
    assert len(text) < LONGEST_TEXT
    # The next leader finds out by it what is left, with all that it needs to bind it.
    first = placed[0]
    bound = next(each for each in pods if each["metadata"]["uid"] == first.uid)
    bound["spec"]["nodeName"] = first.node
    hear(view, kinds.PODS, *pods)
    decisions = read_decisions(text)
    assert decisions is not None
    (found,) = unfinished(view, view.take(1_000), decisions)
    assert "" == found.obstacle
    assert sorted(placed[1:]) == sorted(found.left)


@pytest.mark.parametrize(
    "text",
    [
        "zlib:",
        "zlib:####",
        "zlib:" + base64.b64encode(b"no").decode(),
        "[" * 100_000,
        '{"g": ' * 100_000,
    ],
    ids=["empty", "no base64", "not compressed", "deep", "deep and as expected"],
)
def test_decisions_that_we_did_not_write_say_nothing(text: str) -> None:
    assert read_decisions(text) is None


def test_little_that_becomes_far_too_much_says_nothing() -> None:
    packing, part = zlib.compressobj(level=1), b" " * (MOST_EXPANDED // 16)
    bomb = b"".join([*(packing.compress(part) for _ in range(4 * 16)), packing.flush()])

    assert read_decisions("zlib:" + base64.b64encode(bomb).decode()) is None


def test_parents_that_are_in_a_cycle_are_named_and_others_start() -> None:
    view = ClusterView("bough")
    hear(view, kinds.QUEUES, queue(), queue("x", "y"), queue("y", "x"), queue("z", "z"))
    hear(view, kinds.NODES, node())
    subgroups = [
        {"name": "a", "parent": "b", "minMember": 1},
        {"name": "b", "parent": "a", "minMember": 1},
    ]
    hear(
        view,
        kinds.POD_GROUPS,
        group("round", subGroups=subgroups),
        {"metadata": {"name": "lost"}, "spec": {"queue": "x", "minMember": 1}},
        {"metadata": {"name": "self"}, "spec": {"queue": "z", "minMember": 1}},
        group("sound", minMember=1),
    )
    members = [pod(f"{each}-0", each) for each in ("round", "lost", "self", "sound")]
    hear(view, kinds.PODS, *members)
    found = decided(view)
    assert ["sound-0"] == [each.pod for each in found.binds]
    assert "is in a cycle: a → b → a" in view.broken["round"]
    assert {"lost", "self"} <= {each.workload for each in found.waits}


@pytest.mark.parametrize(
    "capacity",
    [
        {"nvidia.com/gpu": "-8"},
        {"nvidia.com/gpu": "999999999999999999999"},
        {"nvidia.com/gpu": "many"},
        {"cpu": "-1", "memory": "-1Gi", "pods": "-1"},
        {"memory": "1E", "cpu": "9" * 300},
        {"nvidia.com/gpu": 1e308, "memory": "1e400"},
    ],
    ids=json.dumps,
)
def test_a_node_with_a_capacity_that_cannot_be_true_takes_no_pods_and_harms_no_others(
    capacity: dict[str, Any],
) -> None:
    view = ClusterView("bough")
    hear(view, kinds.QUEUES, queue())
    hear(view, kinds.NODES, node("a", **capacity), node("b"))
    asked = {"requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}}
    pods = [pod(f"p{number}") for number in range(8)]
    for each in pods:
        each["spec"]["containers"][0]["resources"] = asked
    hear(view, kinds.PODS, *pods)
    binds = decided(view).binds
    assert 8 == len(binds)
    wrong = capacity.keys() & {"nvidia.com/gpu", "pods"}
    assert not wrong or {"b"} == {each.node for each in binds}


def test_labels_and_names_of_any_size_are_read() -> None:
    view = ClusterView("bough")
    hear(view, kinds.QUEUES, queue())
    many = {f"example.com/label-{number}": "x" * 63 for number in range(20_000)}
    large = node()
    large["metadata"]["labels"] = many
    hear(view, kinds.NODES, large)
    each = pod("p", nodeSelector=many)
    each["metadata"]["labels"] |= many
    hear(view, kinds.PODS, each)
    assert ["p"] == [bind.pod for bind in decided(view).binds]
