"""`bough plan` of an exported tree decides as the site's own tree does by the same preset."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from bough.control.pools.pool_setup import PoolSetup
from bough.control.pools.quota_tree import QuotaForest
from bough.core.cycle.plan import plan
from bough.model.admission_rules import AdmissionRules
from bough.model.gang import Gang
from bough.model.names import exported_name
from bough.model.plan import Plan
from bough.model.policy import KAI, KUEUE, OSMO, Policy
from bough.model.snapshot import Snapshot
from bough.model.workload import LocalQueue
from bough.pod_scheduler.install import write_objects
from bough.tools.load_snapshot import Scene, load_scene
from tests.exported_trees import as_kai, as_kueue, names_of, setups

GPU = "nvidia.com/gpu"
#: Equal in both trees, so that no tie is broken otherwise.
NAMES = ("alpha", "beta", "gamma")
PRIORITIES = {"high": 125, "normal": 100, "low": 50}
_SPACE = "ml"


class Work(NamedTuple):
    """Some GPUs for a pool or a subpool."""

    door: str
    gpus: int
    priority: str
    runs: bool


@st.composite
def works(draw: st.DrawFn, forest: QuotaForest, room: int) -> list[Work]:
    """Work that runs, as long as there is room, and work that waits."""
    found: list[Work] = []
    doors = st.sampled_from(sorted(forest.leaves))
    for _ in range(draw(st.integers(1, 8))):
        gpus, priority = draw(st.integers(1, 9)), draw(st.sampled_from(sorted(PRIORITIES)))
        runs = draw(st.booleans()) and gpus <= room
        room -= gpus if runs else 0
        found.append(Work(draw(doors), gpus, priority, runs))
    return found


@given(setups(pool_names=NAMES), st.data())
def test_a_plan_of_the_export_for_kueue_is_that_of_the_sites_tree(config, data):
    forest, tree, text = as_kueue(config)
    assume(not any("debts" in each for each in tree.warnings))
    work = data.draw(works(forest, sum(node.gpus for node in config.nodes)))
    names = names_of(config)
    flavors = _flavors(forest)

    objects = [_workload(number, each, forest, names) for number, each in enumerate(work)]
    scene = _scene(text, objects)
    site = _site_snapshot(forest, scene, names, lambda gang: _site_gang(gang, flavors))
    policy = msgspec.structs.replace(KUEUE, preemption=OSMO.preemption)

    assert KUEUE == scene.policy
    assert _decisions(site, policy) == _decisions(scene.snapshot, scene.policy)


@given(setups(plain=True, pool_names=NAMES), st.data())
def test_a_plan_of_the_export_for_kai_is_that_of_the_sites_tree(config, data):
    forest, _, text = as_kai(config)
    work = data.draw(works(forest, config.nodes[0].gpus))
    names = names_of(config)

    objects = [_node(config)]
    for number, each in enumerate(work):
        objects += _pod_group(number, each, names[forest.leaves[each.door]])
    scene = _scene(text, objects)
    site = _site_snapshot(forest, scene, names, lambda gang: gang)

    # Queues of KAI are planned by the site's own preset, unless another one is named.
    assert OSMO == scene.policy
    for policy in (OSMO, KAI):
        assert _decisions(site, policy) == _decisions(scene.snapshot, policy)


def _scene(text: str, objects: list[dict[str, Any]]) -> Scene:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "export.yaml").write_text(text)
        Path(folder, "work.yaml").write_text(write_objects(objects))
        return load_scene([folder])


def _decisions(snapshot: Snapshot, policy: Policy) -> dict[str, object]:
    """What is decided, without the names of queues and resources."""
    found: Plan = plan(snapshot, policy)
    return {
        "admits": [each.workload for each in found.admits],
        "binds": [(each.workload, each.pod, each.node) for each in found.binds],
        "evictions": [(each.workload, each.rule, each.preemptor) for each in found.evictions],
        "nominations": [(each.workload, each.waits_for) for each in found.nominations],
        "waits": sorted((each.workload, each.reason) for each in found.waits),
    }


def _site_snapshot(
    forest: QuotaForest, scene: Scene, names: dict[str, str], change: Callable[[Gang], Gang]
) -> Snapshot:
    """The same work in the site's own tree."""
    ours = {exported: name for name, exported in names.items()}
    rules = AdmissionRules(namespaces=())
    gangs: dict[str, list[Gang]] = {}
    for row in scene.snapshot.gangs.values():
        for gang in row:
            queue = ours[gang.queue]
            gangs.setdefault(queue, []).append(change(msgspec.structs.replace(gang, queue=queue)))
    flavor = forest.flavors[0].name
    return msgspec.structs.replace(
        scene.snapshot,
        cohorts=forest.cohorts,
        queues=tuple(msgspec.structs.replace(each, rules=rules) for each in forest.queues),
        flavors=forest.flavors,
        nodes=tuple(msgspec.structs.replace(e, flavor=flavor) for e in scene.snapshot.nodes),
        local_queues=tuple(
            LocalQueue(exported_name(door), _SPACE, leaf) for door, leaf in forest.leaves.items()
        ),
        gangs={queue: tuple(row) for queue, row in gangs.items()},
    )


def _flavors(forest: QuotaForest) -> dict[str, str]:
    """By name in the export, the flavors of the site."""
    if len(forest.flavors) == 1:
        return {"default": "default"}
    return {exported_name(f"nodes-of-{each.name}"): each.name for each in forest.flavors}


def _site_gang(gang: Gang, flavors: dict[str, str]) -> Gang:
    """GPUs as the site's tree counts them."""
    replace = msgspec.structs.replace
    (pods,) = gang.pod_sets
    requests = {"gpu": pods.template.requests[GPU]}
    admission = gang.admission
    if admission is not None:
        (held,) = admission.assignments
        held = replace(
            held, flavors={"gpu": flavors[held.flavors[GPU]]}, usage={"gpu": held.usage[GPU]}
        )
        admission = replace(admission, queue=gang.queue, assignments=(held,))
    pod_sets = (replace(pods, template=replace(pods.template, requests=requests)),)
    return replace(gang, pod_sets=pod_sets, admission=admission)


def _workload(
    number: int, work: Work, forest: QuotaForest, names: dict[str, str]
) -> dict[str, Any]:
    leaf = forest.leaves[work.door]
    status: dict[str, Any] = {}
    if work.runs:
        queue = next(each for each in forest.queues if each.name == leaf)
        site = queue.resource_groups[0].flavors[0].name
        flavor = next(name for name, each in _flavors(forest).items() if each == site)
        held = {"name": "main", "count": 1, "flavors": {GPU: flavor}}
        held |= {"resourceUsage": {GPU: work.gpus}}
        status = {
            "conditions": [{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved"}],
            "admission": {"clusterQueue": names[leaf], "podSetAssignments": [held]},
        }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": f"work-{number}",
            "namespace": _SPACE,
            "creationTimestamp": _at(number),
        },
        "spec": {
            "queueName": exported_name(work.door),
            "priority": PRIORITIES[work.priority],
            "podSets": [{"name": "main", "count": 1, "template": {"spec": _pod_spec(work)}}],
        },
        "status": status,
    }


def _pod_group(number: int, work: Work, queue: str) -> list[dict[str, Any]]:
    name = f"work-{number}"
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "creationTimestamp": _at(number)},
        "spec": {
            "queue": queue,
            "minMember": 1,
            # The classes are those of the export.
            "priorityClassName": f"osmo-{work.priority}",
        },
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-0", "annotations": {"pod-group-name": name}},
        "spec": {**({"nodeName": "all"} if work.runs else {}), **_pod_spec(work)},
        "status": {"phase": "Running" if work.runs else "Pending"},
    }
    return [group, pod]


def _pod_spec(work: Work) -> dict[str, Any]:
    return {"containers": [{"name": "main", "resources": {"requests": {GPU: work.gpus}}}]}


def _node(config: PoolSetup) -> dict[str, Any]:
    gpus = config.nodes[0].gpus
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "all"},
        "status": {"allocatable": {GPU: gpus, "cpu": 64, "memory": "512Gi", "pods": 110}},
    }


def _at(number: int) -> str:
    return f"2026-01-01T00:00:{number:02}Z"
