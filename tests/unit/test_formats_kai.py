from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from bough.errors import Invalid
from bough.formats.kai.objects import KaiObjects, read_kai
from bough.formats.yaml.documents import read_file
from bough.formats.yaml.times import parse_duration_s
from bough.model.cluster import Match, Resources, Toleration, Topology, TopologyLevel
from bough.model.fair_queue import FairAmount, FairQueue
from bough.model.gang import Pod, PodState, TopologyConstraint
from bough.model.pod_group import (
    MemberPod,
    PodGroup,
    Preemptibility,
    PriorityClass,
    SubGroupSetSpec,
    SubGroupSpec,
    TopologyConstraints,
)

RACK = TopologyConstraint(required="rack")


@pytest.fixture
def read(tmp_path: Path):
    def read(text: str, *, lenient: bool = False) -> KaiObjects:
        path = tmp_path / "objects.yaml"
        path.write_text(text, encoding="utf-8")
        return read_kai(read_file(str(path)), lenient=lenient)

    return read


def problems(found: KaiObjects) -> list[tuple[int, str, str, str]]:
    return [(each.line, each.subject, each.field, each.message) for each in found.problems]


def test_a_pod_group_is_read_with_all_its_fields(read):
    found = read("""
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: training, namespace: team}
spec:
  minMember: 2
  queue: team-a
  priorityClassName: build
  preemptibility: non-preemptible
  markUnschedulable: true
  schedulingBackoff: 1
  preemptionDelay: 1m30s
  stalenessGracePeriod: 60s
  parallelism: 3
  topologyConstraint:
    topology: cluster
    requiredTopologyLevel: block
    preferredTopologyLevel: rack
  subGroups:
  - name: decode
    minSubGroup: 1
  - name: workers
    parent: decode
    minMember: 4
    topologyConstraint: {requiredTopologyLevel: rack}
status: {phase: Pending}
""")
    expected = PodGroup(
        name="training",
        namespace="team",
        queue="team-a",
        min_member=2,
        subgroups=(
            SubGroupSpec("decode", min_sub_group=1),
            SubGroupSpec("workers", "decode", 4, constraint=RACK),
        ),
        constraint=TopologyConstraint("cluster", "block", "rack"),
        priority_class="build",
        preemptibility=Preemptibility.NON_PREEMPTIBLE,
        mark_unschedulable=True,
        scheduling_backoff=1,
        preemption_delay_s=90,
        staleness_grace_s=60,
    )
    assert ((expected,), []) == (found.pod_groups, problems(found))


def test_the_other_spelling_of_topology_is_read(read):
    found = read("""
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: pg}
spec:
  schedulingBackoff: -1
  topologyConstraints:
    global: {preferredTopologyLevel: zone}
    subGroups:
      decode: {requiredTopologyLevel: rack}
    subGroupSets:
    - subGroups: [decode, prefill]
      constraint: {requiredTopologyLevel: block}
""")
    expected = TopologyConstraints(
        fallback=TopologyConstraint(preferred="zone"),
        subgroups={"decode": RACK},
        sets=(SubGroupSetSpec(("decode", "prefill"), TopologyConstraint(required="block")),),
    )
    assert (PodGroup("pg", constraints=expected),) == found.pod_groups
    assert [] == problems(found)


def test_unknown_fields_of_a_pod_group_are_reported_by_path(read):
    text = """\
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: pg}
spec:
  minMembers: 2
  subGroups:
  - name: a
    min: 1
  topologyConstraints:
    subGroups:
      a: {requiredTopologyLevel: rack, level: block}
"""
    assert [
        (5, "PodGroup/pg", "spec.minMembers", "unknown field; did you mean minMember?"),
        (8, "PodGroup/pg", "spec.subGroups[0].min", "unknown field"),
        (11, "PodGroup/pg", "spec.topologyConstraints.subGroups.a.level", "unknown field"),
    ] == sorted(problems(read(text)))
    severities = {each.severity.value for each in read(text, lenient=True).problems}
    assert {"warning"} == severities


def test_wrong_values_of_a_pod_group_are_reported_together(read):
    found = read("""\
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: pg}
spec:
  minMember: two
  preemptibility: sometimes
  schedulingBackoff: 5
  preemptionDelay: soon
  topologyConstraints: {subGroupSets: [{subGroups: [a]}]}
""")
    assert [
        (5, "spec.minMember", "expected a whole number, not the text 'two'"),
        (
            6,
            "spec.preemptibility",
            "expected one of preemptible, non-preemptible, not the text 'sometimes'",
        ),
        (7, "spec.schedulingBackoff", "is 5, but must be 1, or -1 to keep trying"),
        (8, "spec.preemptionDelay", "'soon' is not a duration; write it like 90s, 15m or 1h30m"),
        (9, "spec.topologyConstraints.subGroupSets[0].constraint", "is missing"),
    ] == sorted((line, field, message) for line, _, field, message in problems(found))


def test_a_queue_is_read_in_the_units_of_the_model(read):
    found = read("""
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team-a}
spec:
  displayName: Team A
  parentQueue: research
  priority: 200
  preemptMinRuntime: 5m
  reclaimMinRuntime: 1h
  resources:
    gpu: {quota: 2.5, limit: -1, overQuotaWeight: 3}
    cpu: {quota: -1, limit: 4000}
    memory: {quota: 100, limit: -1, overQuotaWeight: 1}
""")
    expected = FairQueue(
        name="team-a",
        parent="research",
        priority=200,
        gpus=FairAmount(Fraction(5, 2), None, Fraction(3)),
        cpu_milli=FairAmount(None, Fraction(4000)),
        memory_bytes=FairAmount(Fraction(100_000_000), None, Fraction(1)),
        preempt_min_runtime_s=300,
        reclaim_min_runtime_s=3600,
        display_name="Team A",
    )
    message = "2.5 counts as 2: only whole GPUs are counted"
    warning = (12, "Queue/team-a", "spec.resources.gpu.quota", message)
    assert ((expected,), [warning]) == (found.queues, problems(found))


def test_a_queue_deserves_and_may_use_nothing_that_it_does_not_say(read):
    found = read("""
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team-a}
spec: {resources: {gpu: {}}}
""")
    assert (FairQueue("team-a"),) == found.queues
    assert (Fraction(0), Fraction(0), 100) == (
        found.queues[0].gpus.limit,
        found.queues[0].cpu_milli.quota,
        found.queues[0].priority,
    )


def test_what_is_wrong_with_a_queue(read):
    found = read("""\
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: a}
spec: {}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: b}
spec:
  resources:
    gpu: {quota: -2, overQuotaWeight: -1}
""")
    assert [
        (4, "Queue/a", "spec.resources", "is missing"),
        (11, "Queue/b", "spec.resources.gpu.overQuotaWeight", "is -1, but must not be negative"),
        (
            11,
            "Queue/b",
            "spec.resources.gpu.quota",
            "is -2, but must not be negative; -1 means no limit",
        ),
    ] == sorted(problems(found))


def test_a_topology_is_read_with_its_aliases(read):
    found = read("""
apiVersion: kai.scheduler/v1alpha1
kind: Topology
metadata: {name: cluster}
spec:
  levels:
  - {nodeLabel: example.com/block, alias: block}
  - {nodeLabel: kubernetes.io/hostname}
""")
    levels = (TopologyLevel("example.com/block", "block"), TopologyLevel("kubernetes.io/hostname"))
    assert ((Topology("cluster", levels),), []) == (found.topologies, problems(found))


def test_a_pod_is_read_with_what_it_asks_for(read):
    found = read("""
apiVersion: v1
kind: Pod
metadata:
  name: worker-0
  namespace: team
  labels: {kai.scheduler/subgroup-name: workers, kai.scheduler/task-priority: "7"}
  annotations: {pod-group-name: training}
spec:
  schedulerName: kai-scheduler
  nodeSelector: {disk: ssd}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: zone, operator: In, values: [a, b]}]
  tolerations: [{key: gpu, operator: Exists}]
  containers:
  - name: main
    resources:
      requests: {nvidia.com/gpu: 8, cpu: 1500m, memory: 1Gi, rdma/hca: 1}
""")
    expected = MemberPod(
        pod=Pod(
            name="team/worker-0",
            subgroup="workers",
            requests=Resources(8, 1500, 1 << 30, 1, (("rdma/hca", 1),)),
            node_selector={"disk": "ssd"},
            affinity=((Match("zone", "In", ("a", "b")),),),
            tolerations=(Toleration("gpu", "Exists"),),
            rank=7,
        ),
        group="team/training",
        namespace="team",
        queue="default-queue",
    )
    assert ((expected,), []) == (found.pods, problems(found))


@pytest.mark.parametrize(
    ("metadata", "spec", "status", "expected"),
    [
        ("", "", "", PodState.PENDING),
        ("", "schedulingGates: [{name: wait}]", "", PodState.GATED),
        ("", "nodeName: n", "phase: Pending", PodState.RUNNING),
        ("", "nodeName: n", "phase: Running", PodState.RUNNING),
        (
            ", deletionTimestamp: 2026-01-01T00:00:00Z",
            "nodeName: n",
            "phase: Running",
            PodState.RELEASING,
        ),
        ("", "nodeName: n", "phase: Succeeded", PodState.SUCCEEDED),
        (
            ", deletionTimestamp: 2026-01-01T00:00:00Z",
            "nodeName: n",
            "phase: Failed",
            PodState.FAILED,
        ),
    ],
)
def test_how_far_a_pod_is(read, metadata: str, spec: str, status: str, expected: PodState):
    found = read(f"""
apiVersion: v1
kind: Pod
metadata: {{name: p{metadata}}}
spec: {{containers: [], {spec}}}
status: {{{status}}}
""")
    assert ([expected], []) == ([member.pod.state for member in found.pods], problems(found))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("kai.scheduler/queue: team, project: old", "team"),
        ("project: old", "old"),
        ("", "default-queue"),
    ],
)
def test_a_pod_on_its_own_names_its_queue(read, labels: str, expected: str):
    found = read(f"""
apiVersion: v1
kind: Pod
metadata: {{name: p, labels: {{{labels}}}}}
spec: {{containers: []}}
""")
    assert [(None, expected)] == [(member.group, member.queue) for member in found.pods]


def test_a_pod_on_its_own_says_how_important_it_is(read):
    found = read("""
apiVersion: v1
kind: Pod
metadata:
  name: p
  creationTimestamp: "1970-01-01T00:00:05Z"
  labels: {priorityClassName: build, kai.scheduler/preemptibility: preemptible}
spec: {containers: [], priorityClassName: other}
""")
    (member,) = found.pods
    assert ("build", Preemptibility.PREEMPTIBLE, 5000) == (
        member.priority_class,
        member.preemptibility,
        member.created_ms,
    )


def test_an_unknown_preemptibility_of_a_pod_is_reported(read):
    found = read("""\
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {kai.scheduler/preemptibility: maybe}}
spec: {containers: []}
""")
    field = 'metadata.labels["kai.scheduler/preemptibility"]'
    message = "'maybe' must be preemptible or non-preemptible"
    assert [(3, "Pod/p", field, message)] == problems(found)


def test_a_priority_class_is_read(read):
    found = read("""
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 150
globalDefault: true
description: for people who cannot wait
""")
    assert ((PriorityClass("urgent", 150, default=True),), []) == (
        found.priority_classes,
        problems(found),
    )


def test_what_is_odd_about_a_pod(read):
    found = read("""\
apiVersion: v1
kind: Pod
metadata:
  name: p
  labels: {kai.scheduler/task-priority: high}
  annotations: {gpu-fraction: "0.5"}
spec:
  containers: []
status: {phase: Running}
""")
    assert [
        (
            5,
            'metadata.labels["kai.scheduler/task-priority"]',
            "'high' is not a whole number, so that the pod has no rank",
        ),
        (
            6,
            'metadata.annotations["gpu-fraction"]',
            "parts of a GPU are not supported; ask for whole GPUs",
        ),
        (7, "spec.nodeName", "is missing, although the pod runs"),
    ] == sorted((line, field, message) for line, _, field, message in problems(found))


def test_the_default_namespace_is_not_written(read):
    text = """
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, annotations: {pod-group-name: pg}}
spec: {containers: []}
"""
    assert [("p", "pg")] == [(member.pod.name, member.group) for member in read(text).pods]


def test_an_object_that_is_declared_twice_is_reported(read):
    text = "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: pg}\n"
    found = read(f"{text}---\n{text}")
    (problem,) = found.problems
    assert (7, "PodGroup/pg", "metadata.name") == (problem.line, problem.subject, problem.field)
    assert problem.message.endswith("objects.yaml, line 1")
    assert 1 == len(found.pod_groups)


def test_other_objects_are_passed_over(read):
    found = read("""\
apiVersion: v1
kind: Node
metadata: {name: n}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
---
{}
""")
    assert [
        (5, "Deployment", "", True),
        (9, "", "", False),
    ] == [
        (line, who, field, "is passed over" in text) for line, who, field, text in problems(found)
    ]


def test_another_version_of_a_known_kind_is_reported(read):
    text = "apiVersion: scheduling.run.ai/v1\nkind: PodGroup\nmetadata: {name: pg}\n"
    expected = (
        "scheduling.run.ai/v1 is not known for a PodGroup; known is scheduling.run.ai/v2alpha2"
    )
    assert [(1, "PodGroup", "apiVersion", expected)] == problems(read(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("90s", 90), ("1h30m", 5400), ("1.5h", 5400), ("2000ms", 2), ("4h0m0s", 14400)],
)
def test_durations(text: str, expected: int):
    assert expected == parse_duration_s(text)


@pytest.mark.parametrize("text", ["", "5", "-1s", "1d", "1s ", "500ms", "s", "1" * 200 + "s"])
def test_what_is_no_duration_in_seconds(text: str):
    with pytest.raises(Invalid):
        parse_duration_s(text)
