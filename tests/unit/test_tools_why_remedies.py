"""`bough why --remedies`: what is told is a change of the objects in the files, and helps there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bough.tools.plan import plan
from bough.tools.why import why
from tests.worlds_yaml import GROUP, HOSTNAME, Object, changed, write

FREE = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def queue(name: str, **gpu: int) -> Object:
    resources = {"gpu": {**FREE, **gpu}, "cpu": FREE, "memory": FREE}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"resources": resources},
    }


def node(name: str, gpus: int, **fields: Any) -> Object:
    allocatable = {"nvidia.com/gpu": str(gpus), "cpu": "64", "memory": "256Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name}},
        "status": {"allocatable": allocatable, **fields.pop("status", {})},
        **fields,
    }


def pod(name: str, gpus: int = 1, on: str = "", **metadata: Any) -> Object:
    requests = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": str(gpus)}}
    spec: Object = {"containers": [{"name": "main", "image": "x", "resources": requests}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": spec | ({"nodeName": on} if on else {}),
        "status": {"phase": "Running" if on else "Pending"},
    }


def group(name: str, second: int, on: str = "", gpus: int = 1, **spec: Any) -> list[Object]:
    """A PodGroup of one pod that is not preemptible."""
    created = f"2026-01-01T00:00:0{second}Z"
    fields = {"queue": "q0", "minMember": 1, "priorityClassName": "build", **spec}
    made = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": fields,
    }
    return [made, pod(f"{name}-0", gpus, on, annotations={GROUP: name})]


def told(folder: Path, objects: list[Object], name: str = "b") -> dict[str, dict[str, Any]]:
    """The remedies by their sentence; each was written into the objects, and helps."""
    answer = why([write(folder, objects)], name, remedies=True)
    assert "waits" == answer["certificate"]["verdict"]
    for remedy in answer["remedies"]["found"]:
        decided = plan([write(folder, changed(objects, remedy["changes"]))])
        starts = {each["workload"] for each in (*decided["starts"], *decided["nominations"])}
        assert name in starts, remedy["sentence"]
    return {remedy["sentence"]: remedy for remedy in answer["remedies"]["found"]}


def test_a_limit_that_is_as_low_as_the_quota_is_raised_with_it(tmp_path: Path):
    objects = [queue("q0", quota=1, limit=1), node("n1", 4), *group("a", 1, "n1"), *group("b", 2)]

    found = told(tmp_path, objects)

    raised = "raise the quota of Queue q0 from 1 to 2 gpu and its limit from 1 to 2 gpu"
    assert ["wait until a ends", raised] == list(found)
    assert [
        ("Queue", "q0", "spec.resources.gpu.quota", 1, 2),
        ("Queue", "q0", "spec.resources.gpu.limit", 1, 2),
    ] == [
        (each["kind"], each["name"], each["field"], each["before"], each["after"])
        for each in found[raised]["changes"]
    ]


def test_a_limit_that_is_high_enough_is_left_alone(tmp_path: Path):
    objects = [queue("q0", quota=1, limit=9), node("n1", 4), *group("a", 1, "n1"), *group("b", 2)]

    assert "raise the quota of Queue q0 from 1 to 2 gpu" in told(tmp_path, objects)


def test_memory_is_raised_in_the_unit_in_which_it_is_written(tmp_path: Path):
    scarce = queue("q0")
    scarce["spec"]["resources"]["memory"] = {"quota": 1500, "limit": -1, "overQuotaWeight": 1}
    objects = [scarce, node("n1", 4), *group("a", 1, "n1"), *group("b", 2)]

    # Two pods of 1 GiB, in units of 10**6 bytes.
    assert "raise the quota of Queue q0 from 1500 to 2148 memory" in told(tmp_path, objects)


def test_a_cordoned_node_is_to_be_uncordoned(tmp_path: Path):
    closed = node("n2", 4, spec={"unschedulable": True})
    objects = [queue("q0"), node("n1", 1), closed, *group("a", 1, "n1"), *group("b", 2)]

    assert "uncordon node n2" in told(tmp_path, objects)


def test_a_node_that_is_not_ready_is_not_to_be_uncordoned(tmp_path: Path):
    closed = node("n2", 4, status={"conditions": [{"type": "Ready", "status": "False"}]})
    objects = [queue("q0"), node("n1", 1), closed, *group("a", 1, "n1"), *group("b", 2)]

    assert "uncordon node n2" not in told(tmp_path, objects)


def test_a_pod_that_is_on_its_own_is_changed_itself(tmp_path: Path):
    labels = {"kai.scheduler/queue": "q0", "priorityClassName": "build"}
    objects = [
        queue("q0", quota=0),
        queue("q1"),
        node("n1", 4),
        pod("b", labels=labels),
    ]

    found = told(tmp_path, objects)

    change = found["move it to queue q1"]["changes"][0]
    assert ("Pod", "b", 'metadata.labels["kai.scheduler/queue"]') == (
        change["kind"],
        change["name"],
        change["field"],
    )
    assert "make it preemptible (it may borrow, and be evicted)" in found


def test_a_gang_too_large_for_all_nodes_is_told_to_have_a_larger_one(tmp_path: Path):
    objects = [queue("q0"), node("n1", 1), *group("b", 1, gpus=3)]

    assert ["add 1 node like n1, but with 3 gpu"] == list(told(tmp_path, objects))
