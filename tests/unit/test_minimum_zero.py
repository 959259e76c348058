"""A gang that needs none of its pods, or fewer, is refused in words by everything that reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bough.cli.main import run
from bough.control.workflows.specs import read_spec
from bough.errors import Invalid
from bough.pod_scheduler import kinds
from bough.pod_scheduler.cluster import ClusterView
from tests.unit.test_pod_scheduler_hostile import decided, group, hear, node, pod, queue

few = pytest.mark.parametrize("few", [0, -1])

#: By what is wrong: the spec of a PodGroup of KAI, and the field that is named.
KAI_SPECS: dict[str, tuple[dict[str, Any], str]] = {
    "all": ({"minMember": "FEW"}, "spec.minMember"),
    "leaf": ({"subGroups": [{"name": "a", "minMember": "FEW"}]}, "spec.subGroups[0].minMember"),
    "root": (
        {"minSubGroup": "FEW", "subGroups": [{"name": "a", "minMember": 1}]},
        "spec.minSubGroup",
    ),
    "inner": (
        {
            "subGroups": [
                {"name": "a", "minSubGroup": "FEW"},
                {"name": "b", "parent": "a", "minMember": 1},
            ]
        },
        "spec.subGroups[0].minSubGroup",
    ),
}
NATIVE = "spec.schedulingPolicy.gang.minCount"


def with_few(spec: dict[str, Any], few: int) -> dict[str, Any]:
    return json.loads(json.dumps(spec).replace('"FEW"', str(few)))


def documents(few: int) -> list[tuple[dict[str, Any], str]]:
    """Objects of files, and the field that is wrong in each."""
    found = [
        (
            {
                "apiVersion": "scheduling.run.ai/v2alpha2",
                "kind": "PodGroup",
                "metadata": {"name": "g", "namespace": "default"},
                "spec": {"queue": "team", **with_few(spec, few)},
            },
            field,
        )
        for spec, field in KAI_SPECS.values()
    ]
    native = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": few}}},
    }
    pods = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]}}
    workload = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {
            "queueName": "q",
            "podSets": [{"name": "main", "count": 2, "minCount": few, "template": pods}],
        },
    }
    return [*found, (native, NATIVE), (workload, "spec.podSets[0].minCount")]


@few
@pytest.mark.parametrize("command", ["plan", "why", "place", "gang"])
def test_files_are_refused_with_the_field_and_its_value(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str, few: int
) -> None:
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", **node()}))
    path = tmp_path / "objects.yaml"
    for written, field in documents(few):
        if written["kind"] == "Workload" and command in ("place", "gang"):
            continue  # These read no Workloads of Kueue.
        path.write_text(json.dumps(written))
        code = run(_arguments(command, str(path), str(nodes)))
        assert 2 == code
        assert f"{field}: is {few}, but must be" in capsys.readouterr().err


def _arguments(command: str, path: str, nodes: str) -> list[str]:
    return {
        "plan": ["plan", path, nodes],
        "why": ["why", path, nodes, "g"],
        "place": ["place", path, "--nodes", nodes],
        "gang": ["gang", "show", path],
    }[command]


@few
@pytest.mark.parametrize(("spec", "field"), KAI_SPECS.values(), ids=KAI_SPECS)
def test_live_groups_are_named_and_others_start(spec: dict[str, Any], field: str, few: int) -> None:
    view = ClusterView("bough")
    hear(view, kinds.QUEUES, queue())
    hear(view, kinds.NODES, node())
    hear(view, kinds.POD_GROUPS, group("none", **with_few(spec, few)), group("sound", minMember=1))
    hear(view, kinds.PODS, pod("none-0", "none"), pod("sound-0", "sound"))

    assert ["sound-0"] == [each.pod for each in decided(view).binds]
    assert f"{field}: is {few}, but must be" in view.broken["none"]


@few
def test_live_groups_of_kubernetes_are_named_and_others_start(few: int) -> None:
    view = ClusterView("bough")
    hear(view, kinds.QUEUES, queue())
    hear(view, kinds.NODES, node())
    policy = {"schedulingPolicy": {"gang": {"minCount": few}}}
    labels = {"kai.scheduler/queue": "team"}
    wrong = {"metadata": {"name": "none", "namespace": "default", "labels": labels}, "spec": policy}
    hear(view, kinds.NATIVE_POD_GROUPS, wrong)
    hear(view, kinds.PODS, pod("none-0", schedulingGroup={"podGroupName": "none"}), pod("sound-0"))

    assert ["sound-0"] == [each.pod for each in decided(view).binds]
    assert [f"{NATIVE}: is {few}, but must be at least 1"] == list(view.broken.values())


@few
@pytest.mark.parametrize(
    "fields",
    [
        "minMember: FEW, tasks: [{name: a, lead: true}, {name: b}]",
        "subGroups: [{name: s, minMember: FEW}], tasks: [{name: a, lead: true, subGroup: s}]",
        "minSubGroup: FEW, subGroups: [{name: s}], tasks: [{name: a, lead: true, subGroup: s}]",
        "tasks: [{name: a, lead: true, replicas: {min: FEW, max: 3}}]",
    ],
)
def test_workflow_files_are_refused_with_the_value(fields: str, few: int) -> None:
    groups = f"[{{name: g, {fields.replace('FEW', str(few))}}}]"
    with pytest.raises(Invalid) as refused:
        read_spec(f"workflow: {{name: x, resources: {{default: {{gpu: 1}}}}, groups: {groups}}}")
    assert f"is {few}, but must be" in "\n".join(refused.value.details)
