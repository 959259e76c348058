"""An object means the same, whether it is read from a file or from a line of a watch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.errors import BoughError
from bough.formats.kai.objects import read_kai
from bough.formats.kubernetes.nodes import read_namespaces, read_nodes
from bough.formats.live import objects
from bough.formats.live.kai import (
    live_native_pod_group,
    live_pod_group,
    live_priority_class,
    live_queue,
    live_topology,
)
from bough.formats.live.nodes import live_namespace, live_node
from bough.formats.live.pods import live_member
from bough.formats.yaml.documents import Document, read_documents, read_text
from bough.model.problem import Severity

ROOT = Path(__file__).parents[2]
#: By kind and group: as what a line is decoded, and what becomes of it.
KINDS = {
    ("Pod", "v1"): (objects.LivePod, live_member),
    ("Node", "v1"): (objects.LiveNode, live_node),
    ("Namespace", "v1"): (objects.LiveNamespace, live_namespace),
    ("PodGroup", "scheduling.run.ai/v2alpha2"): (objects.LivePodGroup, live_pod_group),
    ("PodGroup", "scheduling.k8s.io/v1alpha2"): (
        objects.LiveNativePodGroup,
        live_native_pod_group,
    ),
    ("Queue", "scheduling.run.ai/v2"): (objects.LiveQueue, live_queue),
    ("Topology", "kai.scheduler/v1alpha1"): (objects.LiveTopology, live_topology),
    ("PriorityClass", "scheduling.k8s.io/v1"): (objects.LivePriorityClass, live_priority_class),
}


def from_file(document: Document) -> Any:
    """What the readers of files make of it; `None`: they refuse it."""
    nodes, namespaces, kai = (
        read_nodes([document]),
        read_namespaces([document]),
        read_kai([document]),
    )
    problems = [*nodes.problems, *namespaces.problems, *kai.problems]
    if any(each.severity is Severity.ERROR for each in problems):
        return None
    made = (
        *nodes.nodes,
        *namespaces.labels.values(),
        *kai.pods,
        *kai.pod_groups,
        *kai.queues,
        *kai.topologies,
        *kai.priority_classes,
    )
    assert 1 == len(made)
    return made[0]


def from_line(value: Any) -> Any:
    """What is made of the same object in a line of a watch."""
    decoded, read = KINDS[value["kind"], value["apiVersion"]]
    line = json.dumps(value, default=lambda each: str(each) if isinstance(each, Decimal) else each)
    made = read(msgspec.json.decode(line.encode(), type=decoded))
    if hasattr(made, "problems"):
        assert () == made.problems
        return made.made
    return made


def written_objects() -> Iterator[Document]:
    for path in sorted(ROOT.rglob("*.yaml")):
        if any(part.startswith(".") for part in path.relative_to(ROOT).parts):
            continue
        try:
            documents = read_documents([str(path)])
        except BoughError:
            continue
        for each in documents:
            value = each.value
            if isinstance(value, dict) and (value.get("kind"), value.get("apiVersion")) in KINDS:
                yield each


def test_every_object_in_the_files_of_the_repository_means_the_same_on_a_watch():
    seen: set[str] = set()
    compared = 0
    for document in written_objects():
        expected = from_file(document)
        if expected is not None:
            assert expected == from_line(document.value), f"{document.source}:{document.line}"
            assert isinstance(document.value, dict)
            seen.add(f"{document.value['kind']} {document.value['apiVersion']}")
            compared += 1
    assert {" ".join(kind) for kind in KINDS} - {"Namespace v1"} <= seen
    assert compared > 50


names = st.sampled_from(["a", "b-1", "x.y"])
texts = st.sampled_from(["", "a", "gpu", "rack-1"])
times = st.sampled_from(["2026-01-31T23:59:59Z", "2026-02-01T00:00:00.123456Z"])
amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "rdma/hca"]),
    st.sampled_from(["0", "1", "2", 3, "1k", "1Gi"]),
    max_size=3,
)
resources = st.fixed_dictionaries({}, optional={"requests": amounts, "limits": amounts})
containers = st.lists(
    st.fixed_dictionaries(
        {"name": names},
        optional={"resources": resources, "restartPolicy": st.sampled_from(["Always"])},
    ),
    max_size=2,
)
matches = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"key": names, "operator": st.sampled_from(["In", "NotIn"])}
            | {"values": st.lists(texts, min_size=1, max_size=2)}
        ),
        st.fixed_dictionaries({"key": names, "operator": st.sampled_from(["Exists"])}),
    ),
    max_size=2,
)
required = "requiredDuringSchedulingIgnoredDuringExecution"
terms = st.lists(
    st.fixed_dictionaries({}, optional={"matchExpressions": matches, "matchFields": matches}),
    max_size=2,
)
between_pods = st.fixed_dictionaries(
    {}, optional={required: st.lists(st.just({"topologyKey": "x"}), max_size=1)}
)
affinities = st.fixed_dictionaries(
    {},
    optional={
        "nodeAffinity": st.fixed_dictionaries(
            {}, optional={required: st.fixed_dictionaries({"nodeSelectorTerms": terms})}
        ),
        "podAffinity": between_pods,
        "podAntiAffinity": between_pods,
    },
)
tolerations = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "key": names,
            "operator": st.sampled_from(["Equal", "Exists"]),
            "value": texts,
            "effect": st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
            "tolerationSeconds": st.integers(0, 3),
        },
    ),
    max_size=2,
)
labels = st.dictionaries(
    st.sampled_from(
        [
            "kai.scheduler/subgroup-name",
            "kai.scheduler/task-priority",
            "kai.scheduler/queue",
            "project",
            "priorityClassName",
            "kueue.x-k8s.io/queue-name",
            "other",
        ]
    ),
    st.sampled_from(["", "1", "-2", "a", "team"]),
    max_size=4,
)
pods = st.fixed_dictionaries(
    {
        "apiVersion": st.just("v1"),
        "kind": st.just("Pod"),
        "metadata": st.fixed_dictionaries(
            {"name": names},
            optional={
                "namespace": st.sampled_from(["default", "team"]),
                "labels": labels,
                "annotations": st.fixed_dictionaries({}, optional={"pod-group-name": names}),
                "creationTimestamp": times,
                "deletionTimestamp": times,
                "uid": names,
                "resourceVersion": texts,
            },
        ),
        "spec": st.fixed_dictionaries(
            {"containers": containers},
            optional={
                "initContainers": containers,
                "overhead": amounts,
                "resources": resources,
                "nodeName": names,
                "schedulerName": names,
                "priorityClassName": names,
                "nodeSelector": st.dictionaries(names, texts, max_size=2),
                "affinity": affinities,
                "tolerations": tolerations,
                "topologySpreadConstraints": st.lists(
                    st.fixed_dictionaries(
                        {"topologyKey": names},
                        optional={
                            "whenUnsatisfiable": st.sampled_from(
                                ["ScheduleAnyway", "DoNotSchedule"]
                            )
                        },
                    ),
                    max_size=2,
                ),
                "resourceClaims": st.lists(st.just({"name": "gpu"}), max_size=1),
                "schedulingGates": st.lists(st.just({"name": "gate"}), max_size=1),
                "volumes": st.lists(
                    st.sampled_from(
                        [
                            {"name": "a", "emptyDir": {}},
                            {"name": "b", "persistentVolumeClaim": {"claimName": "c"}},
                            {"name": "d", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
                        ]
                    ),
                    max_size=2,
                ),
                "schedulingGroup": st.fixed_dictionaries({}, optional={"podGroupName": names}),
            },
        ),
    },
    optional={
        "status": st.fixed_dictionaries(
            {},
            optional={
                "phase": st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"]),
                "startTime": times,
            },
        )
    },
)


@given(pods)
def test_any_pod_means_the_same_in_a_file_and_on_a_watch(pod: dict[str, Any]):
    (document,) = read_text(json.dumps(pod), "a file")
    expected = from_file(document)
    if names_two_gangs(pod):
        assert expected is None
        assert "names a PodGroup, and the annotation" in why_it_waits(pod)
    else:
        assert expected is not None
        assert expected == from_line(pod)


def names_two_gangs(pod: dict[str, Any]) -> bool:
    of_kai = pod["metadata"].get("annotations", {}).get("pod-group-name")
    native = pod["spec"].get("schedulingGroup", {}).get("podGroupName")
    return bool(of_kai and native)


def why_it_waits(pod: dict[str, Any]) -> str:
    """The reason that is told: the first, so without what else the pod asks for."""
    spec = {**pod["spec"], "affinity": {}, "topologySpreadConstraints": [], "resourceClaims": []}
    return from_line({**pod, "spec": spec}).pod.unsupported


native_groups = st.fixed_dictionaries(
    {
        "apiVersion": st.just("scheduling.k8s.io/v1alpha2"),
        "kind": st.just("PodGroup"),
        "metadata": st.fixed_dictionaries(
            {"name": names},
            optional={
                "namespace": st.sampled_from(["default", "team"]),
                "labels": st.fixed_dictionaries(
                    {},
                    optional={
                        "kai.scheduler/queue": texts,
                        "kai.scheduler/preemptibility": st.sampled_from(
                            ["", "preemptible", "non-preemptible"]
                        ),
                    },
                ),
                "creationTimestamp": times,
            },
        ),
        "spec": st.fixed_dictionaries(
            {
                "schedulingPolicy": st.one_of(
                    st.just({"basic": {}}),
                    st.builds(lambda n: {"gang": {"minCount": n}}, st.integers(1, 9)),
                )
            },
            optional={
                "schedulingConstraints": st.fixed_dictionaries(
                    {}, optional={"topology": st.lists(st.just({"key": "rack"}), max_size=1)}
                ),
                "priorityClassName": texts,
                "priority": st.integers(-5, 200),
                "disruptionMode": st.sampled_from(["Pod", "PodGroup"]),
                "podGroupTemplateRef": st.just(
                    {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}
                ),
            },
        ),
    },
    optional={"status": st.just({"conditions": [{"type": "PodGroupScheduled"}]})},
)


@given(native_groups)
def test_any_native_pod_group_means_the_same_in_a_file_and_on_a_watch(group: dict[str, Any]):
    (document,) = read_text(json.dumps(group), "a file")
    expected = from_file(document)
    assert expected is not None
    assert expected == from_line(group)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"schedulingPolicy": {}}, "spec.schedulingPolicy"),
        ({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}, "spec.schedulingPolicy"),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, "spec.schedulingPolicy.gang.minCount"),
        (
            {
                "schedulingPolicy": {"basic": {}},
                "schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]},
            },
            "spec.schedulingConstraints.topology",
        ),
        ({"schedulingPolicy": {"basic": {}}, "disruptionMode": "None"}, "spec.disruptionMode"),
    ],
)
def test_what_is_wrong_with_a_native_pod_group_is_named_alike_by_both_readers(spec, field):
    written = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "team"},
        "spec": spec,
    }
    (document,) = read_text(json.dumps(written), "a file")
    line = msgspec.json.decode(json.dumps(written).encode(), type=objects.LiveNativePodGroup)
    expected = [("PodGroup/team/g (native)", field)]
    in_file, on_watch = read_kai([document]).problems, live_native_pod_group(line).problems
    assert expected == [(each.subject, each.field) for each in in_file]
    assert expected == [(each.subject, each.field) for each in on_watch]


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        ("limits", {"nvidia.com/gpu": "many"}, "an amount of nvidia.com/gpu that cannot be read"),
        ("requests", {"cpu": "-1"}, "an amount of cpu that cannot be read: '-1' is negative"),
    ],
)
def test_a_pod_whose_amounts_cannot_be_read_waits_with_that_reason(place, value, reason):
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "main", "resources": {place: value}}]},
    }
    assert from_line(pod).pod.unsupported.startswith(reason)


def test_a_pod_that_asks_for_a_part_of_a_gpu_waits_with_that_reason():
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "a", "annotations": {"gpu-fraction": "0.5"}},
        "spec": {"containers": []},
    }
    assert "parts of a GPU are not supported" in from_line(pod).pod.unsupported


def test_fields_that_a_newer_apiserver_adds_are_passed_over():
    node = {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": "n", "new": {"deep": [1]}},
        "spec": {"new": 1},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}, "new": "x"},
    }
    assert 8 == from_line(node).capacity.gpus


def test_a_gang_with_values_that_cannot_be_read_is_a_problem_that_names_them():
    group = msgspec.json.decode(
        json.dumps(
            {
                "metadata": {"name": "g", "namespace": "team"},
                "spec": {"preemptibility": "maybe", "stalenessGracePeriod": "soon"},
            }
        ).encode(),
        type=objects.LivePodGroup,
    )
    assert {
        ("PodGroup/team/g", "spec.preemptibility"),
        ("PodGroup/team/g", "spec.stalenessGracePeriod"),
    } == {(each.subject, each.field) for each in live_pod_group(group).problems}
