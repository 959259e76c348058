"""`bough why --remedies`: what is told is a change of the objects in the files, and helps there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bough.tools import plan as plan_tool
from bough.tools import why as why_tool
from tests.printed import as_json
from tests.worlds_yaml import GROUP, HOSTNAME, Object, changed, write

plan, why = as_json(plan_tool.plan), as_json(why_tool.why)

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
    assert "raise the quota of Queue q0 from 1500 to 2148 MB of memory" in told(tmp_path, objects)


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


def cluster_queue(name: str, quota: int, preemption: str = "Never", **more: str) -> Object:
    amount = {"name": "gpu", "nominalQuota": str(quota), **more}
    flavors = [{"name": "f", "resources": [amount]}]
    spec = {
        "cohortName": "all",
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["gpu"], "flavors": flavors}],
        "preemption": {"withinClusterQueue": preemption},
    }
    return kueue("ClusterQueue", {"name": name}, spec)


def kueue(kind: str, metadata: Object, spec: Object) -> Object:
    version = "kueue.x-k8s.io/v1beta2"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def workload(name: str, gpus: int, *, priority: int = 0, holds: bool = False) -> Object:
    """A Workload of one pod in queue a, through the local queue of that name."""
    container = {"name": "m", "image": "x", "resources": {"requests": {"gpu": str(gpus)}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    spec = {"queueName": "a", "priority": priority, "podSets": [pod_set]}
    made = kueue("Workload", {"name": name, "namespace": "ns"}, spec)
    if holds:
        held = {"name": "main", "count": 1, "flavors": {"gpu": "f"}}
        held["resourceUsage"] = {"gpu": str(gpus)}
        made["status"] = {
            "admission": {"clusterQueue": "a", "podSetAssignments": [held]},
            "conditions": [{"type": "QuotaReserved", "status": "True", "reason": "Admitted"}],
        }
    return made


LOCAL = [
    kueue("ResourceFlavor", {"name": "f"}, {}),
    kueue("LocalQueue", {"name": "a", "namespace": "ns"}, {"clusterQueue": "a"}),
]


def test_a_lending_limit_that_keeps_back_what_is_idle_is_raised_by_what_is_lacking(tmp_path: Path):
    objects = [*LOCAL, cluster_queue("a", 1), cluster_queue("b", 4, lendingLimit="1")]
    found = told(tmp_path, [*objects, workload("b", 4)], "ns/b")

    raised = "raise lendingLimit of ClusterQueue b from 1 to 3 f/gpu"
    assert raised in found
    path = "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit"
    assert [("ClusterQueue", "b", path, "1", "3")] == [
        (each["kind"], each["name"], each["field"], each["before"], each["after"])
        for each in found[raised]["changes"]
    ]


def test_of_several_lending_limits_those_are_raised_that_are_needed(tmp_path: Path):
    lenders = [cluster_queue(name, 2, lendingLimit="0") for name in "bcd"]
    objects = [*LOCAL, cluster_queue("a", 1), *lenders, workload("b", 4)]

    (raised,) = [each for each in told(tmp_path, objects, "ns/b") if "lending" in each]
    assert "raise lendingLimit of ClusterQueue b from 0 to 2 f/gpu" in raised
    assert 2 == raised.count("lendingLimit")


def test_a_workload_may_have_the_lowest_priority_that_preempts_enough(tmp_path: Path):
    running = [workload(f"r{at}", 1, priority=at, holds=True) for at in (1, 2, 7)]
    objects = [*LOCAL, cluster_queue("a", 3, "LowerPriority"), *running, workload("b", 2)]
    found = told(tmp_path, objects, "ns/b")

    raised = found["raise its priority from 0 to 3"]
    assert [("Workload", "ns/b", "spec.priority", 0, 3)] == [
        (each["kind"], each["name"], each["field"], each["before"], each["after"])
        for each in raised["changes"]
    ]


def test_where_queues_preempt_nothing_no_priority_is_told(tmp_path: Path):
    running = [workload("r", 3, priority=1, holds=True)]
    objects = [*LOCAL, cluster_queue("a", 3), *running, workload("b", 2)]

    assert [] == [each for each in told(tmp_path, objects, "ns/b") if "priority" in each]


def test_a_pod_group_names_the_class_of_a_higher_priority(tmp_path: Path):
    objects = [queue("q0", quota=4), node("n1", 1), *group("a", 1, "n1", priorityClassName="train")]
    found = told(tmp_path, [*objects, *group("b", 2, priorityClassName="train")])

    raised = found["raise its priority from train to build"]
    assert [("PodGroup", "b", "spec.priorityClassName", "train", "build")] == [
        (each["kind"], each["name"], each["field"], each["before"], each["after"])
        for each in raised["changes"]
    ]
