"""Reading workloads of Kueue, and what is wrong with any object."""

from __future__ import annotations

import pytest

from bough.model.problem import Severity
from bough.model.quota import Cohort
from bough.model.workload import (
    Admission,
    Assignment,
    CheckState,
    PodSet,
    PodTemplate,
    SliceConstraint,
    TopologyRequest,
    Workload,
    WorkloadCondition,
)
from tests.kueue_text import API, messages, read, read_clean

WORKLOAD = (
    API
    + """\
kind: Workload
metadata:
  name: w
  namespace: n
  uid: u-1
  creationTimestamp: "1970-01-01T00:00:02Z"
  labels: {a: b}
spec:
  queueName: main
  priority: 7
  priorityClassRef: {group: kueue.x-k8s.io, kind: WorkloadPriorityClass, name: high}
  active: false
  maximumExecutionTimeSeconds: 60
  preemptionGates: [{name: gate}]
  podSets:
  - name: driver
    count: 1
    template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
  - name: workers
    count: 4
    minCount: 2
    topologyRequest:
      required: rack
      podSetGroupName: g
      podSetSliceRequiredTopology: host
      podSetSliceSize: 2
    template:
      metadata: {labels: {role: worker}}
      spec:
        nodeSelector: {zone: a}
        containers: [{name: c, resources: {requests: {cpu: 500m, gpu: 1}}}]
status:
  conditions:
  - type: QuotaReserved
    status: "True"
    reason: Fits
    message: ok
    lastTransitionTime: "1970-01-01T00:00:03Z"
    observedGeneration: 1
  - {type: PodsReady, status: "False"}
  admission:
    clusterQueue: q
    podSetAssignments:
    - {name: driver, flavors: {cpu: f}, resourceUsage: {cpu: 1}, count: 1}
    - {name: workers, flavors: {cpu: f, gpu: g}, resourceUsage: {cpu: 2, gpu: 4}, count: 4,
       topologyAssignment: {levels: [rack], slices: []}, delayedTopologyRequest: Pending}
  requeueState: {count: 2, requeueAt: "1970-01-01T00:00:09Z"}
  reclaimablePods: [{name: workers, count: 1}]
  admissionChecks:
  - {name: budget, state: Ready, message: fine, lastTransitionTime: "1970-01-01T00:00:04Z"}
  resourceRequests: [{name: workers}]
  schedulingStats: {evictions: []}
  nominatedClusterNames: [east]
  unhealthyNodes: [{name: node-1}]
  preemptionGates: [{name: gate, position: Closed, lastTransitionTime: "1970-01-01T00:00:04Z"}]
"""
)


def test_a_workload_is_read_with_what_it_holds():
    workers = PodTemplate({"cpu": 500, "gpu": 1}, {"zone": "a"}, labels={"role": "worker"})
    topology = TopologyRequest("rack", group="g", slices=(SliceConstraint("host", 2),))
    assert read_clean(WORKLOAD).organisation.workloads == (
        Workload(
            name="w",
            namespace="n",
            pod_sets=(
                PodSet("driver", 1, PodTemplate({"cpu": 1000})),
                PodSet("workers", 4, workers, 2, topology),
            ),
            local_queue="main",
            priority=7,
            priority_class="high",
            active=False,
            maximum_execution_s=60,
            preemption_gates=("gate",),
            uid="u-1",
            created_ms=2000,
            labels={"a": "b"},
            admission=Admission(
                "q",
                (
                    Assignment("driver", {"cpu": "f"}, {"cpu": 1000}, 1),
                    Assignment("workers", {"cpu": "f", "gpu": "g"}, {"cpu": 2000, "gpu": 4}, 4),
                ),
            ),
            conditions=(
                WorkloadCondition("QuotaReserved", True, "Fits", "ok", 3000),
                WorkloadCondition("PodsReady", False),
            ),
            checks=(CheckState("budget", "Ready", 4000),),
            reclaimable_pods={"workers": 1},
            requeues=2,
            requeue_at_ms=9000,
            nominated_clusters=("east",),
        ),
    )


def test_a_workload_of_the_older_version_is_read():
    text = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: w, namespace: n}
spec:
  priorityClassName: high
  priorityClassSource: kueue.x-k8s.io/workloadpriorityclass
  priority: 3
  podSets: [{count: 1, template: {spec: {containers: []}}}]
status: {accumulatedPastExexcutionTimeSeconds: 5}
"""
    (workload,) = read_clean(text).organisation.workloads
    assert (workload.priority_class, workload.pod_sets[0].name) == ("high", "main")


def test_a_workload_needs_pod_sets():
    text = f"{API}kind: Workload\nmetadata: {{name: w}}\nspec: {{queueName: q}}"
    assert messages(text) == [
        ("Workload/default/w", "spec.podSets", "a workload needs at least one pod set", 4)
    ]


def test_unknown_fields_are_errors_with_path_and_line():
    text = (
        API
        + """\
kind: ClusterQueue
metadata: {name: a}
spec:
  cohrtName: b
  resourceGroups:
  - coveredResources: [gpu]
    flavors:
    - name: f
      resources:
      - name: gpu
        nominalQuota: 1
        lendingLimt: 3
"""
    )
    path = "spec.resourceGroups[0].flavors[0].resources[0].lendingLimt"
    assert messages(text) == [
        ("ClusterQueue/a", "spec.cohrtName", "unknown field; did you mean cohortName?", 5),
        ("ClusterQueue/a", path, "unknown field; did you mean lendingLimit?", 13),
    ]
    assert {each.severity for each in read(text, lenient=True).problems} == {Severity.WARNING}


def test_a_wrong_amount_names_path_value_and_line():
    text = (
        API
        + """\
kind: Cohort
metadata: {name: a}
spec:
  resourceGroups:
  - coveredResources: [gpu]
    flavors:
    - name: f
      resources:
      - name: gpu
        nominalQuota: 1.5
"""
    )
    assert messages(text) == [
        (
            "Cohort/a",
            "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota",
            "'1.5' is finer than a whole unit of gpu, the smallest amount that is counted",
            11,
        )
    ]


def test_a_resource_twice_for_a_flavor_is_an_error():
    text = (
        API
        + """\
kind: Cohort
metadata: {name: a}
spec:
  resourceGroups:
  - coveredResources: [gpu]
    flavors:
    - name: f
      resources:
      - {name: gpu, nominalQuota: 1}
      - {name: gpu, nominalQuota: 2}
"""
    )
    assert [message for _, _, message, _ in messages(text)] == [
        "gpu is listed twice for this flavor"
    ]


def test_an_object_that_is_declared_twice_is_an_error_and_counts_once():
    text = f"{API}kind: Cohort\nmetadata: {{name: a}}\n"
    result = read(f"{text}---\n{text}spec: {{parentName: b}}")
    assert result.organisation.cohorts == (Cohort("a"),)
    assert [(each.field, each.message, each.line) for each in result.problems] == [
        ("metadata.name", "is declared twice, first in x.yaml, line 1", 7)
    ]


def test_a_cohort_and_a_queue_may_have_the_same_name():
    cohort = f"{API}kind: Cohort\nmetadata: {{name: a}}\n"
    text = f"{cohort}---\n{cohort.replace('Cohort', 'ClusterQueue')}"
    assert set(read_clean(text).documents) == {"Cohort/a", "ClusterQueue/a"}


def test_objects_of_other_groups_are_passed_over_with_a_warning():
    result = read("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {x: 1}\n")
    assert [(each.severity, each.message) for each in result.problems] == [
        (Severity.WARNING, "Deployment of apps/v1 is not an object of Kueue; passed over")
    ]


def test_kinds_without_quota_are_passed_over_with_a_warning():
    result = read(f"{API}kind: AdmissionCheck\nmetadata: {{name: a}}\n")
    assert [each.severity for each in result.problems] == [Severity.WARNING]


def test_an_unknown_kind_is_an_error():
    assert messages(f"{API}kind: ClusterQeue\nmetadata: {{name: a}}\n") == [
        (
            "ClusterQeue",
            "kind",
            "'ClusterQeue' is not a kind of kueue.x-k8s.io; did you mean ClusterQueue?",
            2,
        )
    ]


def test_an_unknown_version_is_an_error():
    text = f"{API}kind: LocalQueue\nmetadata: {{name: a}}\nspec: {{clusterQueue: b}}\n"
    known = "known are kueue.x-k8s.io/v1beta2, kueue.x-k8s.io/v1beta1"
    message = f"kueue.x-k8s.io/v2 is not known for a LocalQueue; {known}"
    assert messages(text.replace("v1beta2", "v2")) == [
        ("LocalQueue/default/a", "apiVersion", message, 1)
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a: 1", [("apiVersion", "is missing"), ("kind", "is missing")]),
        ("kind: Cohort", [("apiVersion", "is missing")]),
        ("- a", [("", "expected a mapping, not a list")]),
        ("just text", [("", "expected a mapping, not the text 'just text'")]),
        ("{}", [("", "the document is an empty mapping; say apiVersion and kind")]),
        ("kind: 5\napiVersion: []", [
            ("apiVersion", "expected text, not a list"),
            ("kind", "expected text, not the number 5; put it in quotes"),
        ]),
        (f"{API}kind: Cohort", [("metadata", "is missing"), ("metadata.name", "is missing")]),
    ],
)  # fmt: skip
def test_what_is_no_object_is_an_error(text: str, found: list[tuple[str, str]]):
    assert [(field, message) for _, field, message, _ in messages(text)] == found
