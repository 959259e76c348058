"""Random worlds as people write them, in objects of KAI or of Kueue; and changes made in them."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

Object = dict[str, Any]
RACK = "example.com/rack"
HOSTNAME = "kubernetes.io/hostname"
GROUP = "pod-group-name"
_STEPS = re.compile(r'\["(?P<quoted>[^"]+)"\]|\[(?P<index>\d+)\]|(?P<name>[^.\[\]]+)')


def write(folder: Path, objects: Iterable[Object]) -> str:
    """Write objects to a file; JSON is YAML."""
    path = folder / "world.yaml"
    path.write_text("\n---\n".join(json.dumps(each) for each in objects))
    return str(path)


# Changes


def changed(objects: list[Object], changes: Iterable[dict[str, Any]]) -> list[Object]:
    """The objects with some changes made exactly as they are told."""
    objects = copy.deepcopy(objects)
    for change in changes:
        if change["field"]:
            _assign(
                _find(objects, change["kind"], change["name"]), change["field"], change["after"]
            )
        elif change["after"] is None:
            objects = [each for each in objects if not _belongs(each, change)]
        else:
            objects.append(_copied(_find(objects, change["kind"], change["after"]), change["name"]))
    return objects


def name_of(each: Object) -> str:
    """The name as Bough tells it."""
    namespace = each["metadata"].get("namespace")
    name = each["metadata"]["name"]
    return f"{namespace}/{name}" if namespace else name


def _find(objects: list[Object], kind: str, name: str) -> Object:
    return next(each for each in objects if (each["kind"], name_of(each)) == (kind, name))


def _belongs(each: Object, change: dict[str, Any]) -> bool:
    """Whether it is the object that is gone, or a pod of it."""
    metadata = each["metadata"]
    group = {**metadata, "name": metadata.get("annotations", {}).get(GROUP)}
    of_group = change["kind"] == "PodGroup" and name_of({"metadata": group}) == change["name"]
    return of_group or (each["kind"], name_of(each)) == (change["kind"], change["name"])


def _copied(model: Object, name: str) -> Object:
    node = copy.deepcopy(model)
    node["metadata"]["name"] = name
    if HOSTNAME in node["metadata"].get("labels", {}):
        node["metadata"]["labels"][HOSTNAME] = name
    node.pop("spec", None)
    if "taints" in model.get("spec", {}):
        node["spec"] = {"taints": model["spec"]["taints"]}
    node["status"].pop("conditions", None)
    return node


def _assign(each: Object, field: str, value: object) -> None:
    path = [
        int(found["index"]) if found["index"] else found["quoted"] or found["name"]
        for found in _STEPS.finditer(field)
    ]
    place: Any = each
    for part, below in pairwise(path):
        empty: Any = [] if isinstance(below, int) else {}
        place = place[part] if isinstance(part, int) else place.setdefault(part, empty)
    if value is None:
        place.pop(path[-1], None)
    elif isinstance(place, list) and path[-1] == len(place):
        place.append(value)
    else:
        place[path[-1]] = value


# KAI


_TOPOLOGY: Object = {
    "apiVersion": "kai.scheduler/v1alpha1",
    "kind": "Topology",
    "metadata": {"name": "wires"},
    "spec": {"levels": [{"nodeLabel": RACK, "alias": "rack"}]},
}


def kai_world(random: Random) -> list[Object]:
    """Nodes in two racks, queues on two levels, gangs that run and gangs that wait."""
    nodes = [_node(random, number) for number in range(random.randint(1, 3))]
    free = {
        node["metadata"]["name"]: int(node["status"]["allocatable"]["nvidia.com/gpu"])
        for node in nodes
    }
    queues = _kai_queues(random)
    leaves = [queue["metadata"]["name"] for queue in queues if queue["spec"].get("parentQueue")]
    objects = [_TOPOLOGY, *nodes, *queues]
    for number in range(random.randint(2, 7)):
        objects += _gang(random, number, leaves, free)
    return objects


def _node(random: Random, number: int) -> Object:
    name = f"n{number}"
    node: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {RACK: f"r{number % 2}", HOSTNAME: name}},
        "status": {
            "allocatable": {
                "nvidia.com/gpu": str(random.randint(1, 4)),
                "cpu": "16",
                "memory": "64Gi",
                "pods": "110",
            }
        },
    }
    if random.random() < 0.15:
        node["spec"] = {"unschedulable": True}
    elif random.random() < 0.1:
        node["spec"] = {"taints": [{"key": "kept", "value": "yes", "effect": "NoSchedule"}]}
    return node


def _kai_queues(random: Random) -> list[Object]:
    def amount(most: int, unit: int = 1) -> dict[str, int]:
        quota = random.choice((-1, *[random.randint(0, most) * unit for _ in range(4)]))
        limit = random.choice((-1, max(quota, 0) + random.randint(0, 2) * unit))
        return {"quota": quota, "limit": limit, "overQuotaWeight": 1}

    def queue(name: str, parent: str | None) -> Object:
        free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
        resources = {
            "gpu": amount(4 if parent else 8),
            "cpu": amount(6, 1000) if random.random() < 0.1 else free,
            "memory": amount(6, 1000) if random.random() < 0.1 else free,
        }
        spec = {"resources": resources} | ({"parentQueue": parent} if parent else {})
        metadata = {"name": name}
        return {
            "apiVersion": "scheduling.run.ai/v2",
            "kind": "Queue",
            "metadata": metadata,
            "spec": spec,
        }

    tops = [queue(name, None) for name in ("east", "west")]
    return [*tops, *(queue(name, random.choice(("east", "west"))) for name in ("a", "b", "c"))]


def _gang(random: Random, number: int, leaves: list[str], free: dict[str, int]) -> list[Object]:
    name, count = f"g{number}", random.randint(1, 4)
    queue = random.choice((*leaves * 3, "nowhere"))
    if random.random() < 0.1:
        return [_pod(random, name, number, free, {"kai.scheduler/queue": queue}, {})]
    spec: Object = {
        "queue": queue,
        "minMember": random.randint(1, count + (random.random() < 0.1)),
        "priorityClassName": random.choice(("train", "build", "inference")),
    }
    parts: list[str] = []
    if random.random() < 0.25 and count > 1:
        parts = ["x", "y"]
        spec["subGroups"] = [{"name": part, "minMember": random.randint(1, 2)} for part in parts]
        spec["minMember"] = random.randint(1, 2)
        if random.random() < 0.5:
            spec["minSubGroup"] = spec.pop("minMember")
    if random.random() < 0.2:
        spec["preemptibility"] = random.choice(("preemptible", "non-preemptible"))
    if random.random() < 0.15:
        spec["topologyConstraint"] = {"topology": "wires", "requiredTopologyLevel": "rack"}
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "creationTimestamp": f"2026-01-01T00:00:0{number}Z"},
        "spec": spec,
    }
    gpus, choosy = random.randint(1, 2), random.random() < 0.15
    runs = queue != "nowhere" and random.random() < 0.5
    pods: list[Object] = []
    for at in range(count):
        labels = {"kai.scheduler/subgroup-name": parts[at % 2]} if parts else {}
        where = free if runs else {}
        pod = _pod(random, f"{name}-{at}", number, where, labels, {GROUP: name}, gpus)
        if choosy:
            pod["spec"]["nodeSelector"] = {RACK: "r0"}
        pods.append(pod)
    return [group, *pods]


def _pod(
    random: Random,
    name: str,
    number: int,
    free: dict[str, int],
    labels: dict[str, str],
    annotations: dict[str, str],
    gpus: int = 1,
) -> Object:
    """A pod, which runs where there is room for it."""
    requests = {"cpu": str(random.randint(1, 2)), "memory": "1Gi"}
    container = {
        "name": "main",
        "image": "x",
        "resources": {"requests": requests, "limits": {"nvidia.com/gpu": str(gpus)}},
    }
    spec: Object = {"schedulerName": "kai-scheduler", "containers": [container]}
    node = next((each for each, left in free.items() if left >= gpus), None)
    if node is not None:
        free[node] -= gpus
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": annotations,
            "creationTimestamp": f"2026-01-01T00:00:0{number}Z",
        },
        "spec": spec,
        "status": {"phase": "Running" if node else "Pending"},
    }


# Kueue

_FLAVORS = {"red": {"color": "red"}, "blue": {"color": "blue"}}
_VERSION = "kueue.x-k8s.io/v1beta2"


def kueue_world(random: Random) -> list[Object]:
    """Two flavors, a chain of cohorts, queues with limits; workloads that hold quota or wait."""
    objects = [
        _kueue("ResourceFlavor", name, {"nodeLabels": labels}) for name, labels in _FLAVORS.items()
    ]
    objects.append(_kueue("Cohort", "root", {}))
    team: Object = {"parentName": "root"}
    if random.random() < 0.4:
        team["resourceGroups"] = _groups(random, inner=True)
    objects.append(_kueue("Cohort", "team", team))
    queues = ["a", "b", "c"][: random.randint(2, 3)]
    used: dict[str, tuple[str, int]] = {}
    for name in queues:
        queue = _cluster_queue(random, name)
        first = queue["spec"]["resourceGroups"][0]["flavors"][0]
        used[name] = (first["name"], int(first["resources"][0]["nominalQuota"]))
        objects.append(queue)
        door: Object = {"clusterQueue": name}
        if random.random() < 0.1:
            door["stopPolicy"] = "Hold"
        objects.append(_kueue("LocalQueue", f"to-{name}", door, "ns"))
    for number in range(random.randint(2, 6)):
        objects.append(_workload(random, number, queues, used))
    return objects


def _kueue(kind: str, name: str, spec: Object, namespace: str | None = None) -> Object:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": _VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def _groups(random: Random, *, inner: bool = False) -> list[Object]:
    def amount() -> Object:
        found: Object = {"name": "nvidia.com/gpu", "nominalQuota": str(random.randint(0, 4))}
        if random.random() < 0.3:
            found["borrowingLimit"] = str(random.randint(0, 2))
        if random.random() < 0.3 and not inner:
            found["lendingLimit"] = str(random.randint(0, int(found["nominalQuota"])))
        return found

    names = random.sample(list(_FLAVORS), random.randint(1, 2))
    flavors = [{"name": name, "resources": [amount()]} for name in names]
    return [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]


def _cluster_queue(random: Random, name: str) -> Object:
    spec: Object = {
        "cohortName": random.choice(("team", "root")),
        "namespaceSelector": {},
        "resourceGroups": _groups(random),
        "preemption": {
            "withinClusterQueue": random.choice(("Never", "LowerPriority")),
            "reclaimWithinCohort": random.choice(("Never", "Any")),
        },
        "queueingStrategy": random.choice(("BestEffortFIFO", "StrictFIFO")),
    }
    if random.random() < 0.1:
        spec["stopPolicy"] = "Hold"
    return _kueue("ClusterQueue", name, spec)


def _workload(
    random: Random, number: int, queues: list[str], used: dict[str, tuple[str, int]]
) -> Object:
    queue, count = random.choice(queues), random.randint(1, 3)
    gpus = random.randint(1, 2)
    template: Object = {
        "containers": [
            {
                "name": "main",
                "image": "x",
                "resources": {"requests": {"nvidia.com/gpu": str(gpus)}},
            }
        ]
    }
    if random.random() < 0.15:
        template["nodeSelector"] = {"color": random.choice(("red", "blue"))}
    pod_set: Object = {"name": "main", "count": count, "template": {"spec": template}}
    if random.random() < 0.3:
        pod_set["minCount"] = random.randint(1, count)
    spec: Object = {
        "queueName": random.choice((*[f"to-{queue}"] * 9, "nowhere")),
        "priority": random.randint(0, 2),
        "podSets": [pod_set],
    }
    if random.random() < 0.05:
        spec["active"] = False
    made = _kueue("Workload", f"w{number}", spec, "ns")
    made["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{number}Z"
    flavor, left = used[queue]
    fits = template.get("nodeSelector", _FLAVORS[flavor]) == _FLAVORS[flavor]
    if random.random() < 0.6 and left >= gpus * count and fits and spec.get("active", True):
        used[queue] = (flavor, left - gpus * count)
        made["status"] = _held(queue, flavor, gpus, count)
        spec["queueName"] = f"to-{queue}"
    return made


def _held(queue: str, flavor: str, gpus: int, count: int) -> Object:
    assignment = {
        "name": "main",
        "flavors": {"nvidia.com/gpu": flavor},
        "resourceUsage": {"nvidia.com/gpu": str(gpus * count)},
        "count": count,
    }
    reserved = {
        "type": "QuotaReserved",
        "status": "True",
        "reason": "QuotaReserved",
        "message": "",
        "lastTransitionTime": "2026-01-01T01:00:00Z",
    }
    return {
        "admission": {"clusterQueue": queue, "podSetAssignments": [assignment]},
        "conditions": [reserved],
    }


# Both


def mixed_world(random: Random) -> list[Object]:
    """Kueue's tree with Workloads, and PodGroups in its queues, on nodes of its flavors."""
    objects = kueue_world(random)
    queues = [each["metadata"]["name"] for each in objects if each["kind"] == "ClusterQueue"]
    nodes = [_node(random, number) for number in range(random.randint(1, 3))]
    for node in nodes:
        node["metadata"]["labels"] |= random.choice(list(_FLAVORS.values()))
    free = {
        node["metadata"]["name"]: int(node["status"]["allocatable"]["nvidia.com/gpu"])
        for node in nodes
    }
    objects += [_TOPOLOGY, *nodes]
    for number in range(random.randint(1, 4)):
        where = free if random.random() < 0.5 else {}
        for each in _gang(random, number, queues, where):
            each["metadata"]["namespace"] = "ns"
            objects.append(each)
    return objects
