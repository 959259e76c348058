"""What PodGroups and Workloads of Kubernetes itself mean, read from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bough.core.cycle.plan import plan
from bough.model.gang import Gang
from bough.tools.load_gangs import gather
from bough.tools.load_organisation import read_texts
from bough.tools.load_snapshot import load_scene
from bough.tools.why import why

VERSION = "scheduling.k8s.io/v1alpha2"


def group(name: str = "g", min_count: int | None = 2, **more: Any) -> dict[str, Any]:
    policy = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    labels = more.pop("labels", {})
    return {
        "apiVersion": VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name, "labels": labels},
        "spec": {"schedulingPolicy": policy, **more},
    }


def kai_group(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": 1, "queue": "other"},
    }


def pod(name: str, group: str | None = "g", node: str = "", **more: Any) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": more.pop("gpus", 1)}
    spec: dict[str, Any] = {"containers": [{"name": "a", "resources": {"limits": limits}}]}
    if group is not None:
        spec["schedulingGroup"] = {"podGroupName": group}
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def node(name: str, gpus: int, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"nvidia.com/gpu": gpus, "pods": 99}},
    }


def workload(*templates: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": VERSION,
        "kind": "Workload",
        "metadata": {"name": "w"},
        "spec": {"podGroupTemplates": list(templates)},
    }


def write(folder: Path, *objects: dict[str, Any]) -> list[str]:
    path = folder / "objects.json"
    path.write_text("\n---\n".join(json.dumps(each) for each in objects))
    return [str(path)]


def gangs(folder: Path, *objects: dict[str, Any]) -> dict[str, Gang]:
    found = gather(read_texts(write(folder, *objects)).documents)
    assert [] == [each.message for each in found.problems if each.severity == "error"]
    return {each.name: each for each in found.gangs}


def problems(folder: Path, *objects: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    found = gather(read_texts(write(folder, *objects)).documents)
    return [(each.severity, each.subject, each.field, each.message) for each in found.problems]


def bound(paths: list[str]) -> dict[str, str]:
    """By pod: the node that it is given."""
    scene = load_scene(paths)
    return {each.pod: each.node for each in plan(scene.snapshot, scene.policy).binds}


def test_a_gang_needs_its_minimum_and_one_pod_of_a_basic_group_is_enough(tmp_path: Path) -> None:
    found = gangs(tmp_path, group("g", 3), group("b", None), pod("x"), pod("y", "b"))
    assert (3, 1) == (found["g"].minimum, found["b"].minimum)
    assert ["x"] == [each.name for each in found["g"].pods]


def test_its_queue_is_that_of_its_label_or_else_of_its_oldest_pod(tmp_path: Path) -> None:
    label = "kai.scheduler/queue"
    found = gangs(
        tmp_path,
        group("own", labels={label: "a"}),
        pod("x", "own", labels={label: "z"}),
        group("theirs"),
        pod("y", "theirs", labels={label: "c"}, creationTimestamp="2026-01-02T00:00:00Z"),
        pod("z", "theirs", labels={label: "b"}, creationTimestamp="2026-01-01T00:00:00Z"),
    )
    assert ("a", "b") == (found["own"].queue, found["theirs"].queue)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, 50),
        # What an apiserver writes where no class is named.
        ({"priority": 0}, 50),
        ({"priorityClassName": "build", "priority": 7}, 100),
        ({"priorityClassName": "unknown", "priority": 7}, 7),
        ({"priority": -3}, -3),
    ],
)
def test_its_priority_is_that_of_its_class_or_its_number(tmp_path, spec, expected) -> None:
    assert expected == gangs(tmp_path, group(**spec))["g"].priority


def test_all_pods_are_on_nodes_with_one_value_of_the_label_whatever_topologies_there_are(
    tmp_path: Path,
) -> None:
    together = {"topology": [{"key": "rack"}]}
    topologies = [
        {
            "apiVersion": "kai.scheduler/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": name},
            "spec": {"levels": [{"nodeLabel": "zone"}]},
        }
        for name in ("t", "u")
    ]
    nodes = [node("a1", 1, rack="a"), node("a2", 1, rack="a"), node("b1", 2), node("c1", 9)]
    pods = [pod("x"), pod("y"), pod("z")]
    work = (group("g", 2, schedulingConstraints=together), *pods)
    placed = bound(write(tmp_path, *work, *nodes, *topologies))
    assert ["a1", "a2"] == sorted(placed.values())


def test_where_no_domain_of_the_label_has_room_that_is_the_reason(tmp_path: Path) -> None:
    together = {"topology": [{"key": "rack"}]}
    work = (group("g", 2, schedulingConstraints=together), pod("x"), pod("y"))
    nodes = (node("a1", 1, rack="a"), node("b1", 1, rack="b"))
    paths = write(tmp_path, *work, *nodes)
    assert {} == bound(paths)
    assert "in one rack" in why(paths, "g").certificate.sentence


def test_what_is_disrupted_whole_has_nothing_that_is_given_back_pod_by_pod(tmp_path: Path) -> None:
    pods = [pod(f"p{number}", node="n1") for number in range(3)]
    for mode, least in (("Pod", 1), ("PodGroup", 3)):
        found = gangs(tmp_path, group("g", 1, disruptionMode=mode), *pods, pod("waits"))
        assert least == found["g"].minimum


def test_a_group_of_kai_may_have_the_same_name(tmp_path: Path) -> None:
    found = gangs(tmp_path, group("g", 1), kai_group("g"), pod("x"))
    assert {"g (native)": ("x",), "g": ()} == {
        name: tuple(each.name for each in gang.pods) for name, gang in found.items()
    }


def test_a_pod_that_names_two_gangs_is_an_error(tmp_path: Path) -> None:
    both = pod("x", annotations={"pod-group-name": "g"})
    found = problems(tmp_path, group("g", 1), kai_group("g"), both)
    assert [("error", "Pod/x", "spec.schedulingGroup")] == [each[:3] for each in found]


def test_a_pod_whose_group_is_not_there_waits_for_it(tmp_path: Path) -> None:
    field = "spec.schedulingGroup.podGroupName"
    assert [("warning", "Pod/x", field)] == [
        each[:3] for each in problems(tmp_path, kai_group("g"), pod("x"))
    ]


def test_a_group_is_compared_with_the_template_that_it_was_made_from(tmp_path: Path) -> None:
    template = {"name": "t", "schedulingPolicy": {"gang": {"minCount": 2}}}

    def told(min_count: int, name: str) -> list[tuple[str, str, str, str]]:
        reference = {"workload": {"workloadName": "w", "podGroupTemplateName": name}}
        made = group("g", min_count, podGroupTemplateRef=reference)
        return problems(tmp_path, made, workload(template))

    at = "spec.podGroupTemplateRef.workload"
    assert [] == told(2, "t")
    (other,) = told(3, "t")
    assert ("warning", "PodGroup/g (native)", at) == other[:3]
    assert "schedulingPolicy is not that of template 't'" in other[3]
    (missing,) = told(2, "u")
    assert ("error", f"{at}.podGroupTemplateName") == (missing[0], missing[2])
    assert "Workload w has no template 'u', but t" == missing[3]


def test_what_is_wrong_with_a_workload_is_named(tmp_path: Path) -> None:
    template = {"name": "t", "schedulingPolicy": {"gang": {"minCount": 2}}}
    found = problems(tmp_path, workload(template, template))
    assert [("Workload/w (native)", "spec.podGroupTemplates[1].name")] == [
        each[1:3] for each in found
    ]
    (empty,) = problems(tmp_path, workload())
    assert "has 0 templates, but must have 1 to 8" == empty[3]
