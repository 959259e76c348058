"""A state of a cluster is decided alike, read from the apiserver and read from files."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bough.core.cycle.plan import plan
from bough.formats.policy_file import read_policy
from bough.kube.watching import Relisted
from bough.model.snapshot import Snapshot
from bough.pod_scheduler import kinds
from bough.pod_scheduler.cluster import ClusterView
from bough.tools.plan import plan as plan_files
from tests.kubernetes.bed.objects import node
from tests.kubernetes.scheduler.scheduled import (
    NATIVE_VERSION,
    Scheduled,
    member,
    native_group,
    native_member,
    pod_group,
    queue,
)

#: Nodes and queues, and what runs and waits there: each in a namespace, and judged by itself.
FRAMES, STATES = 10, 30
SEED = 1_119
NOW_MS = 4_102_444_800_000
#: What is read: the kind in an object, its version, and what it is called here.
VERSIONS = {
    "Node": ("Node", "v1"),
    "Queue": ("Queue", "scheduling.run.ai/v2"),
    "Topology": ("Topology", "kai.scheduler/v1alpha1"),
    "PodGroup": ("PodGroup", "scheduling.run.ai/v2alpha2"),
    "NativePodGroup": ("PodGroup", NATIVE_VERSION),
    "Pod": ("Pod", "v1"),
}
PLURALS = {"Node": "nodes", "Queue": "queues", "Topology": "topologies"} | {
    "PodGroup": "podgroups",
    "Pod": "pods",
}
NAMESPACED = ("Pod", "PodGroup", "NativePodGroup")


def test_three_hundred_states_have_the_same_plan_byte_for_byte(
    cluster: Scheduled, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("preset: kai\n")
    chosen = read_policy(str(policy)).policy
    chance = random.Random(SEED)
    seen = {"binds": 0, "evictions": 0, "nominations": 0, "waits": 0}
    for _ in range(FRAMES):
        for each in frame(chance):
            cluster.create(each)
        for _ in range(STATES):
            where = cluster.namespace()
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(partial(cluster.create, where=where), work(chance)))
            listed = read_back(cluster, where)
            live = msgspec.structs.replace(plan(read_live(listed), chosen), version=0)
            file = tmp_path / "state.json"
            file.write_text("\n---\n".join(json.dumps(each) for each in listed))
            answer = plan_files([str(file)], policy=str(policy), now_ms=NOW_MS, lenient=True)
            assert answer.digest == live.digest, f"{listed}"
            for name in seen:
                seen[name] += len(getattr(live, name))
        cluster.clear()
    assert all(count > 50 for count in seen.values()), seen


def read_live(listed: list[dict[str, Any]]) -> Snapshot:
    """As the scheduler reads what the apiserver sends."""
    view = ClusterView("bough")
    for kind in kinds.WATCHED:
        version = kind.api.removeprefix("apis/").removeprefix("api/")
        items = [
            each
            for each in listed
            if each["apiVersion"] == version and PLURALS[each["kind"]] == kind.plural
        ]
        decoded = [msgspec.json.decode(json.dumps(each), type=kind.type) for each in items]
        view.hear(kind, Relisted(decoded, "1"))
    return view.take(NOW_MS)


def read_back(cluster: Scheduled, where: str) -> list[dict[str, Any]]:
    """All there is, as the apiserver sends it; once, as kubelets go on meanwhile."""
    return [
        {"apiVersion": version, "kind": kind, **each}
        for name, (kind, version) in VERSIONS.items()
        for each in cluster.list(name, where if name in NAMESPACED else "")
    ]


def frame(chance: random.Random) -> list[dict[str, Any]]:
    """Nodes in racks, queues below one another."""
    made: list[dict[str, Any]] = [
        {
            "apiVersion": "kai.scheduler/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": "t"},
            "spec": {"levels": [{"nodeLabel": "example.com/rack", "alias": "rack"}]},
        }
    ]
    for number in range(chance.randint(2, 3)):
        each = node(f"n{number}", chance.choice([4, 6]))
        each["metadata"]["labels"]["example.com/rack"] = chance.choice(["r1", "r2"])
        spec: dict[str, Any] = {"unschedulable": chance.random() < 0.05}
        each["spec"] = spec
        if chance.random() < 0.2:
            each["spec"]["taints"] = [{"key": "own", "value": "x", "effect": "NoSchedule"}]
        made.append(each)
    made.append(queue("org", chance.choice([-1, 4, 8])))
    for name, quotas in (("team", [4, 8]), ("other", [0, 2])):
        parent = chance.choice(["", "org", "org"])
        made.append(queue(name, chance.choice(quotas), parent))
    return made


def work(chance: random.Random) -> list[dict[str, Any]]:
    """Gangs that run, wait, or both, and pods on their own."""
    made: list[dict[str, Any]] = []
    nodes = ["n0", "n1"]
    for number in range(chance.randint(2, 6)):
        runs = chance.choice([0.0, 0.1, 1.0])
        name, forms = f"g{number}", chance.randint(0, 2)
        spec: dict[str, Any] = {"minMember": chance.randint(1, 3)}
        leaves = [""]
        if forms == 1:
            leaves = ["a", "b", "c"]
            subgroups = [{"name": leaf, "minMember": 1} for leaf in leaves]
            spec = {"minSubGroup": 2, "subGroups": subgroups}
        elif forms == 2:
            spec["topologyConstraint"] = {"requiredTopologyLevel": "rack"}
        # Mostly what runs borrows, and what waits has a right to more.
        lends = chance.random() < 0.8
        owner, guest = ("team", "other") if lends else ("other", "team")
        if runs < 1.0 or not lends:
            spec["priorityClassName"] = chance.choice(["train", "build", "inference"])
        door = guest if runs == 1.0 else chance.choice([owner] * 6 + ["none"])
        made.append(pod_group(name, door, **spec))
        for index in range(chance.randint(0, 4)):
            leaf = leaves[index % len(leaves)]
            each = member(f"{name}-{index}", name, chance.randint(1, 2), leaf)
            if chance.random() < runs:
                each["spec"]["nodeName"] = chance.choice(nodes)
            made.append(decorated(each, chance))
    for number in range(chance.randint(0, 2)):
        made += native_work(f"k{number}", chance)
    for number in range(chance.randint(0, 3)):
        made.append(decorated(member(f"p{number}"), chance))
    return made


def native_work(name: str, chance: random.Random) -> list[dict[str, Any]]:
    """A PodGroup of Kubernetes itself and its pods; sometimes one of KAI has its name."""
    spec: dict[str, Any] = {"disruptionMode": chance.choice(["Pod", "PodGroup"])}
    if chance.random() < 0.5:
        spec["schedulingConstraints"] = {"topology": [{"key": "example.com/rack"}]}
    group = native_group(name, chance.choice([None, 1, 2]), **spec)
    if chance.random() < 0.5:
        group["metadata"]["labels"] = {"kai.scheduler/queue": chance.choice(["team", "other"])}
    made = [group, *([pod_group(name, minMember=1)] if chance.random() < 0.2 else [])]
    runs = chance.choice([0.0, 0.5, 1.0])
    for index in range(chance.randint(1, 3)):
        each = native_member(f"{name}-{index}", name, chance.randint(1, 2))
        if chance.random() < runs:
            each["spec"]["nodeName"] = "n0"
        made.append(decorated(each, chance))
    return made


def decorated(each: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Some of what a pod may ask for."""
    spec = each["spec"]
    if chance.random() < 0.2:
        spec["nodeSelector"] = {"example.com/rack": chance.choice(["r1", "r2"])}
    if chance.random() < 0.3:
        spec["tolerations"] = [{"key": "own", "operator": "Exists"}]
    if chance.random() < 0.2:
        spec["initContainers"] = [
            {
                "name": "first",
                "image": "bed",
                "resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "1"}},
            }
        ]
    if chance.random() < 0.1:
        spec["schedulingGates"] = [] if "nodeName" in spec else [{"name": "example.com/wait"}]
    if chance.random() < 0.1:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "x"}},
            }
        ]
    return each
