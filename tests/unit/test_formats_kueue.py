"""Objects of Kueue in all their spellings."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bough.formats.composer import compose
from bough.formats.documents import Document
from bough.formats.kueue import Read, read_organisation
from bough.model.admission import (
    AdmissionCheck,
    AdmissionMode,
    AdmissionRules,
    BorrowWithinCohort,
    ConcurrentAdmission,
    FlavorFungibility,
    FlavorPreference,
    FlavorSearch,
    MigrationMode,
    Preemption,
    PreemptionWithinQueue,
    QueueingStrategy,
    ReclaimWithinCohort,
    StopPolicy,
)
from bough.model.cluster import Match, Taint, TaintEffect, Toleration
from bough.model.problem import Severity
from bough.model.quota import Cohort, FlavorQuotas, Queue, Quota, ResourceGroup
from bough.model.workload import (
    Admission,
    Assignment,
    CheckState,
    Flavor,
    LocalQueue,
    PodSet,
    PodTemplate,
    SliceConstraint,
    TopologyRequest,
    Workload,
    WorkloadCondition,
)

API = "apiVersion: kueue.x-k8s.io/v1beta2\n"


def read(text: str, *, lenient: bool = False) -> Read:
    documents = [Document(value, "x.yaml", line) for value, line in compose(text, "x.yaml")]
    return read_organisation(documents, lenient=lenient)


def read_clean(text: str) -> Read:
    result = read(text)
    assert result.problems == []
    return result


def messages(text: str, *, lenient: bool = False) -> list[tuple[str, str, str, int]]:
    return [
        (each.subject, each.field, each.message, each.line)
        for each in read(text, lenient=lenient).problems
    ]


def test_a_cohort_is_read_with_its_quotas():
    text = (
        API
        + """\
kind: Cohort
metadata: {name: research}
spec:
  parentName: company
  fairSharing: {weight: 0.75}
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: default
      resources:
      - {name: cpu, nominalQuota: 1.5, borrowingLimit: 500m, lendingLimit: 0}
      - {name: memory, nominalQuota: 16Gi}
"""
    )
    quotas = {"cpu": Quota(1500, 500, 0), "memory": Quota(16 << 30)}
    groups = (ResourceGroup(("cpu", "memory"), (FlavorQuotas("default", quotas),)),)
    assert read_clean(text).organisation.cohorts == (
        Cohort("research", "company", groups, Fraction(3, 4)),
    )


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v1beta2"])
@pytest.mark.parametrize("field", ["parent", "parentName"])
def test_a_cohort_s_parent_has_two_names(version: str, field: str):
    text = f"apiVersion: kueue.x-k8s.io/{version}\nkind: Cohort\nmetadata: {{name: a}}\n"
    organisation = read_clean(f"{text}spec: {{{field}: b}}").organisation
    assert organisation.cohorts == (Cohort("a", "b"),)


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
@pytest.mark.parametrize("field", ["cohort", "cohortName"])
def test_a_queue_s_cohort_has_two_names(version: str, field: str):
    text = f"apiVersion: kueue.x-k8s.io/{version}\nkind: ClusterQueue\nmetadata: {{name: a}}\n"
    organisation = read_clean(f"{text}spec: {{{field}: b}}").organisation
    assert organisation.queues == (Queue("a", "b"),)


@pytest.mark.parametrize("spec", ["", "spec: {}", "spec: {parentName: ''}", "spec: null"])
def test_a_cohort_may_say_nothing(spec: str):
    organisation = read_clean(f"{API}kind: Cohort\nmetadata: {{name: a}}\n{spec}").organisation
    assert organisation.cohorts == (Cohort("a"),)


def test_a_queue_is_read_with_its_rules():
    text = (
        API
        + """\
kind: ClusterQueue
metadata: {name: a}
spec:
  queueingStrategy: StrictFIFO
  namespaceSelector:
    matchLabels: {team: x}
    matchExpressions:
    - {key: env, operator: NotIn, values: [test]}
  flavorFungibility:
    whenCanBorrow: TryNextFlavor
    whenCanPreempt: TryNextFlavor
    preference: PreemptionOverBorrowing
  preemption:
    withinClusterQueue: LowerOrNewerEqualPriority
    reclaimWithinCohort: Any
    borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 100}
  admissionChecksStrategy:
    admissionChecks:
    - {name: budget, onFlavors: [h100]}
  stopPolicy: Hold
  admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}
  concurrentAdmissionPolicy:
    migration:
      mode: RetainFirstAdmission
      constraints: {lastAcceptableFlavorName: a100}
status: {pendingWorkloads: 3}
"""
    )
    (queue,) = read_clean(text).organisation.queues
    assert queue.rules == AdmissionRules(
        queueing=QueueingStrategy.STRICT_FIFO,
        namespaces=(Match("team", "In", ("x",)), Match("env", "NotIn", ("test",))),
        fungibility=FlavorFungibility(
            FlavorSearch.TRY_NEXT_FLAVOR,
            FlavorSearch.TRY_NEXT_FLAVOR,
            FlavorPreference.PREEMPTION_OVER_BORROWING,
        ),
        preemption=Preemption(
            PreemptionWithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY,
            ReclaimWithinCohort.ANY,
            BorrowWithinCohort.LOWER_PRIORITY,
            100,
        ),
        checks=(AdmissionCheck("budget", ("h100",)),),
        stop=StopPolicy.HOLD,
        mode=AdmissionMode.USAGE_BASED,
        concurrent=ConcurrentAdmission(MigrationMode.RETAIN_FIRST_ADMISSION, "a100"),
    )


@pytest.mark.parametrize(
    ("selector", "namespaces"),
    [("", None), ("namespaceSelector: {}", ()), ("namespaceSelector: null", None)],
)
def test_no_namespace_selector_lets_nobody_in_and_an_empty_one_everybody(
    selector: str, namespaces: tuple[Match, ...] | None
):
    text = f"{API}kind: ClusterQueue\nmetadata: {{name: a}}\nspec: {{{selector}}}"
    (queue,) = read_clean(text).organisation.queues
    assert queue.rules.namespaces == namespaces


def test_the_old_words_of_flavor_fungibility_and_checks_are_read():
    text = (
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\nspec:\n"
        "  flavorFungibility: {whenCanBorrow: Borrow, whenCanPreempt: Preempt}\n"
        "  admissionChecks: [budget]\n"
    )
    (queue,) = read_clean(text).organisation.queues
    stop = FlavorSearch.MAY_STOP_SEARCH
    assert queue.rules.fungibility == FlavorFungibility(stop, stop)
    assert queue.rules.checks == (AdmissionCheck("budget"),)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("queueingStrategy", "FIFO"),
        ("stopPolicy", "Stop"),
        ("preemption: {withinClusterQueue", "Any}"),
        ("preemption: {reclaimWithinCohort", "LowerOrNewerEqualPriority}"),
        ("preemption: {borrowWithinCohort: {policy", "Any}}"),
        ("flavorFungibility: {whenCanBorrow", "Preempt}"),
        ("flavorFungibility: {whenCanPreempt", "Borrow}"),
        ("flavorFungibility: {preference", "Both}"),
        ("admissionScope: {admissionMode", "Fair}"),
        ("concurrentAdmissionPolicy: {migration: {mode", "Never}}"),
    ],
)
def test_a_word_that_is_not_in_the_list_is_an_error(field: str, value: str):
    text = f"{API}kind: ClusterQueue\nmetadata: {{name: a}}\nspec: {{{field}: {value}}}"
    (problem,) = read(text).problems
    assert problem.message.startswith("expected one of ")
    assert value.rstrip("}") in problem.message


def test_a_flavor_is_read():
    text = (
        API
        + """\
kind: ResourceFlavor
metadata: {name: h100}
spec:
  nodeLabels: {gpu: h100}
  nodeTaints: [{key: gpu, value: h100, effect: NoExecute, timeAdded: "2026-01-01T00:00:00Z"}]
  tolerations: [{key: gpu, operator: Exists, effect: "", tolerationSeconds: 5}]
  topologyName: racks
"""
    )
    assert read_clean(text).organisation.flavors == (
        Flavor(
            "h100",
            {"gpu": "h100"},
            (Taint("gpu", "h100", TaintEffect.NO_EXECUTE),),
            (Toleration("gpu", "Exists"),),
            "racks",
        ),
    )


def test_a_local_queue_is_read_into_the_default_namespace():
    spec = "{clusterQueue: b, stopPolicy: HoldAndDrain}"
    text = f"{API}kind: LocalQueue\nmetadata: {{name: a}}\nspec: {spec}"
    assert read_clean(text).organisation.local_queues == (
        LocalQueue("a", "default", "b", StopPolicy.HOLD_AND_DRAIN),
    )


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
            "'ClusterQeue' is no kind of kueue.x-k8s.io; did you mean ClusterQueue?",
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
